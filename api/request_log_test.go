package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// requestLine is a line of the log about a request.
type requestLine struct {
	Level       string  `json:"level"`
	Msg         string  `json:"msg"`
	RequestID   string  `json:"request_id"`
	Route       string  `json:"route"`
	Status      int     `json:"status"`
	Code        string  `json:"code"`
	Credential  string  `json:"credential"`
	DurationMS  float64 `json:"duration_ms"`
	Traceparent string  `json:"traceparent"`
	Error       string  `json:"error"`
	Summed      int     `json:"summed"`
}

func linesOf(t *testing.T, log string) (lines []requestLine) {
	t.Helper()
	for text := range strings.Lines(log) {
		var line requestLine
		must(t, json.Unmarshal([]byte(text), &line))
		lines = append(lines, line)
	}
	return lines
}

func TestRequestLog(t *testing.T) {
	h := start(t)
	h.register("acme")
	key, id := h.key("acme", "policy:read", "history:read")
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, tc := range []struct {
		name, method, path, token, fault string
		want                             requestLine
	}{
		{"without a credential", "GET", "/v1/policies", "", "",
			requestLine{Level: "INFO", Msg: "request refused", Route: "GET /v1/policies", Status: 401, Code: "unauthorized"}},
		{"without the scope", "GET", "/v1/rules", key, "",
			requestLine{Level: "INFO", Msg: "request refused", Route: "GET /v1/rules", Status: 403, Code: "insufficient_scope", Credential: id}},
		{"with an unknown parameter", "GET", "/v1/policies?word=canary", key, "",
			requestLine{Level: "INFO", Msg: "request refused", Route: "GET /v1/policies", Status: 400, Code: "invalid_request", Credential: id}},
		{"to no endpoint", "GET", "/v1/canary", "", "",
			requestLine{Level: "INFO", Msg: "request refused", Route: "unmatched", Status: 404, Code: "not_found"}},
		{"with a store that fails", "GET", "/v1/authorizations", key, "ListRecords",
			requestLine{Level: "ERROR", Msg: "request failed", Route: "GET /v1/authorizations", Status: 500, Code: "internal", Credential: id}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.fault != "" {
				h.store.fail(tc.fault, errors.New("disk on fire"))
			}
			before := len(h.log.String())
			r := h.do(tc.method, tc.path, tc.token, nil, "Traceparent", trace).wantStatus(tc.want.Status)
			lines := linesOf(t, h.log.String()[before:])
			if len(lines) != 1 {
				t.Fatalf("the request has the lines %+v, want one", lines)
			}
			got := lines[0]
			if tc.fault != "" && !strings.Contains(got.Error, "disk on fire") {
				t.Errorf("the line names the error %q", got.Error)
			}
			tc.want.RequestID, tc.want.Traceparent, tc.want.Error = r.header.Get(headerRequestID), trace, got.Error
			if got != tc.want {
				t.Errorf("the line is\n%+v, want\n%+v", got, tc.want)
			}
		})
	}
	before := len(h.log.String())
	h.do("GET", "/v1/policies", h.operator("acme"), nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/rules", "", nil, "Traceparent", "canary").wantStatus(http.StatusUnauthorized)
	if log := h.log.String(); strings.Contains(log, "canary") || len(linesOf(t, log[before:])) != 1 {
		t.Errorf("the log has a line of a request that was answered, or a text of a caller:\n%s", log)
	}
}

// TestRequestLog_SumsUp sends more requests than have a line in a second, and fewer in the next.
func TestRequestLog_SumsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := requestLog{log: slog.New(slog.NewJSONHandler(&out, nil))}
		add := func(n int) {
			for range n {
				l.add(refused{route: "GET /", problem: &problem{Status: 404, Code: codeNotFound}})
			}
		}
		add(requestLines + 7)
		time.Sleep(time.Second)
		synctest.Wait()
		add(requestLines)
		time.Sleep(time.Minute)
		synctest.Wait()
		lines := linesOf(t, out.String())
		if len(lines) != 2*requestLines+1 || lines[requestLines].Summed != 7 {
			t.Errorf("there are %d lines, and line %d is %+v, want %d and a sum of 7",
				len(lines), requestLines, lines[min(requestLines, len(lines)-1)], 2*requestLines+1)
		}
	})
}
