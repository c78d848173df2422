package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestTraces checks the spans of a request: the steps of its decision are below it, it belongs to the
// caller's trace, and it has nothing of the body.
func TestTraces(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(spans)).Tracer("writ")
	h := start(t, func(c *setup) { c.Tracer, c.Service.Tracer = tracer, tracer })
	h.register("acme")
	spans.Reset()
	const canary = "canary-7f3e"
	h.do("POST", "/v1/policy/evaluate", h.operator("acme"), intent(obj{"resource": "prod/" + canary, "metadata": obj{"k": canary}}),
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").wantStatus(http.StatusOK)
	got := spans.GetSpans()
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
		if trace := s.SpanContext.TraceID().String(); trace != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of the trace %s", s.Name, trace)
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, canary) {
			t.Errorf("the span has a value of the body: %s", text)
		}
	}
	if want := []string{"load", "decide", "commit", "POST /v1/policy/evaluate"}; !slices.Equal(names, want) {
		t.Fatalf("the spans are %v, want %v", names, want)
	}
	for _, step := range got[:3] {
		if step.Parent.SpanID() != got[3].SpanContext.SpanID() {
			t.Errorf("%s is not below the request", step.Name)
		}
	}
	if rows := h.history("acme"); strings.Contains(fmt.Sprintf("%+v", rows), "0af7651916") {
		t.Error("the row has the traceparent")
	}

	spans.Reset()
	h.do("GET", "/v1/policies", "", nil).wantProblem(http.StatusUnauthorized, "unauthorized")
	if refused := fmt.Sprintf("%+v", spans.GetSpans()); !strings.Contains(refused, "unauthorized") || !strings.Contains(refused, "401") {
		t.Errorf("the span of a refused request has no code: %s", refused)
	}
}
