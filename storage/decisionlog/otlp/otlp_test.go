package otlp_test

import (
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/decisionlog/otlp"
)

// receiver is a collector in this process. internal/system sends rows to a real one.
type receiver struct {
	mu     sync.Mutex
	got    []*logs.LogRecord
	name   string // of the service
	status int
	reject int64
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	var asked collector.ExportLogsServiceRequest
	unzipped, err := gzip.NewReader(r.Body)
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(unzipped); err == nil {
			err = proto.Unmarshal(body, &asked)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, of := range asked.GetResourceLogs() {
		c.name = of.GetResource().GetAttributes()[0].GetValue().GetStringValue()
		for _, scope := range of.GetScopeLogs() {
			c.got = append(c.got, scope.GetLogRecords()...)
		}
	}
	var answer collector.ExportLogsServiceResponse
	if c.reject > 0 {
		answer.PartialSuccess = &collector.ExportLogsPartialSuccess{RejectedLogRecords: c.reject, ErrorMessage: "too old"}
	}
	body, err := proto.Marshal(&answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

func open(t *testing.T, c *receiver, warn io.Writer) *otlp.Sink {
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	s, err := otlp.Open(t.Context(), server.URL+"/v1/logs", slog.New(slog.NewTextHandler(warn, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

var at = time.Date(2026, 11, 27, 20, 0, 0, 5, time.UTC)

func rows(n int) (all []decisionlog.Row) {
	for i := range n {
		id := strings.Repeat("d", i%7+1)
		all = append(all, decisionlog.Row{
			Record: &storage.Record{OrganizationID: "acme", DecisionID: id, Decision: engine.Deny, DecidedAt: at},
			JSON:   []byte(`{"decision_id":"` + id + `"}`),
		})
	}
	return all
}

func TestSink_SendsRowsInOrder(t *testing.T) {
	c := new(receiver)
	s, sent := open(t, c, io.Discard), rows(2500)
	if err := s.Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, row := range sent {
		want = append(want, string(row.JSON))
	}
	for _, r := range c.got {
		got = append(got, r.GetBody().GetStringValue())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the collector has %d rows, want %d in order", len(got), len(want))
	}
	attributes := make(map[string]string)
	for _, a := range c.got[3].GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if c.name != "writ" || attributes["writ.organization_id"] != "acme" || attributes["writ.decision_id"] != "dddd" ||
		attributes["writ.decision"] != "deny" || c.got[3].GetEventName() != otlp.EventName ||
		c.got[3].GetTimeUnixNano() != uint64(at.UnixNano()) {
		t.Errorf("record = %v of %q", c.got[3], c.name)
	}
}

func TestSink_FailsUnlessTheCollectorConfirms(t *testing.T) {
	c := new(receiver)
	s := open(t, c, io.Discard)
	for _, c.status = range []int{400, 429, 500, 503} {
		if err := s.Send(t.Context(), rows(1)); err == nil {
			t.Errorf("Send to a collector that answers %d = nil, want an error", c.status)
		}
	}
	c.status = 0
	if err := s.Send(t.Context(), rows(1)); err != nil || len(c.got) != 1 {
		t.Errorf("Send to a collector that is up again = %v, with %d rows there", err, len(c.got))
	}
}

// TestSink_NamesRejectedRows holds that rows which a collector rejects for good do not stop all others.
func TestSink_NamesRejectedRows(t *testing.T) {
	var warned strings.Builder
	s := open(t, &receiver{reject: 2}, &warned)
	if err := s.Send(t.Context(), rows(3)); err != nil {
		t.Errorf("Send = %v", err)
	}
	if !strings.Contains(warned.String(), "too old") || !strings.Contains(warned.String(), "2") {
		t.Errorf("the log has %q, want the number and the reason", warned.String())
	}
}

func TestOpen_RefusesWhatIsNoCollector(t *testing.T) {
	for _, at := range []string{"", "localhost:4318", "ftp://host/v1/logs", "http://", "http://user:zq7canary@host/v1/logs", "http://[::1"} {
		s, err := otlp.Open(t.Context(), at, nil)
		if err == nil || strings.Contains(err.Error(), "zq7canary") {
			t.Errorf("Open(%q) = %v, %v, want an error without the password", at, s, errors.Unwrap(err))
		}
	}
}
