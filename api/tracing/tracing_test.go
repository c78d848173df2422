package tracing_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"writ.example/writ/api/tracing"
)

// TestOpen_SendsSpans checks the spans that a collector gets.
func TestOpen_SendsSpans(t *testing.T) {
	got := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sent := new(collector.ExportTraceServiceRequest)
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, sent) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		got <- sent
	}))
	defer server.Close()
	provider, err := tracing.Open(t.Context(), server.URL+"/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	_, span := tracing.Start(t.Context(), provider.Tracer(tracing.Name), "POST", "/v1/policy/evaluate", parent)
	tracing.End(span, 503, "req_1", "unavailable")
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := (<-got).String()
	for _, want := range []string{"POST /v1/policy/evaluate", "http.route", "unavailable", "req_1", "503", "service.name"} {
		if !strings.Contains(text, want) {
			t.Errorf("the spans lack %s: %s", want, text)
		}
	}
}

func TestOpen_RefusesOtherURLs(t *testing.T) {
	for _, at := range []string{"", "localhost:4318", "ftp://h/v1/traces", "http://u:p@h/v1/traces", "http://"} {
		if _, err := tracing.Open(t.Context(), at); err == nil {
			t.Errorf("Open(%q) succeeds", at)
		}
	}
}
