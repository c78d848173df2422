package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func (h *harness) admin(path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.server.Admin().ServeHTTP(w, req)
	return w
}

func TestAdmin_ReadyzTurnsRedWithTheReason(t *testing.T) {
	h := start(t)
	if w := h.admin("/readyz"); w.Code != http.StatusOK {
		t.Errorf("/readyz = %d %s, want 200", w.Code, w.Body)
	}
	h.store.fail("Healthy", errors.New("disk full"))
	if w := h.admin("/readyz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "disk full") {
		t.Errorf("/readyz = %d %s, want 503 with the reason", w.Code, w.Body)
	}
	if text := h.admin("/metrics").Body.String(); !strings.Contains(text, "\nwrit_ready 0\n") {
		t.Error("writ_ready is not 0 while /readyz is red")
	}
	if w := h.admin("/livez"); w.Code != http.StatusOK {
		t.Errorf("/livez = %d, want 200", w.Code)
	}
	h.store.fail("Healthy", nil)
	if w := h.admin("/readyz"); w.Code != http.StatusOK {
		t.Errorf("/readyz = %d %s, want 200 again", w.Code, w.Body)
	}
	if w := h.admin("/v1/rules"); w.Code != http.StatusNotFound {
		t.Errorf("/v1/rules of the admin address = %d, want 404", w.Code)
	}
}

func TestAdmin_MetricsNameRoutesAndNeverCallers(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.key(acme)
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusOK)
	body := intent(obj{"action_type": "sql.drop", "agent_id": "agent-of-metrics"})
	for range 2 {
		h.do("POST", "/v1/policy/evaluate", key, body).wantStatus(http.StatusOK)
	}
	h.do("GET", "/v1/rules", "junk", nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/v1/rules", "", nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/nope-of-metrics", "", nil).wantStatus(http.StatusNotFound)
	h.do("PATCH", "/v1/rules/id-of-metrics", h.operator(acme), nil).wantStatus(http.StatusNotFound)
	w := h.admin("/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/openmetrics-text") {
		t.Errorf("Content-Type = %q, want OpenMetrics", got)
	}
	text := w.Body.String()
	for _, want := range []string{
		`writ_http_request_duration_seconds_count{method="POST",route="/v1/policy/evaluate",status="2xx"} 3`,
		`writ_http_request_duration_seconds_count{method="PATCH",route="/v1/rules/:ruleId",status="4xx"} 1`,
		`writ_http_request_duration_seconds_count{method="any",route="unmatched",status="4xx"} 1`,
		`writ_decisions_total{decision="allow"} 1`,
		`writ_decisions_total{decision="deny"} 1`,
		`writ_findings_total{code="action.denied"} 1`,
		`writ_decision_replays_total 1`,
		`writ_meter_ticks_total{limit="within",plan="free"} 2`,
		`writ_evaluation_duration_seconds_count 1`,
		`writ_compile_duration_seconds_count{kind="policy"} 1`,
		`writ_http_problems_total{code="unauthorized"} 2`,
		`writ_http_problems_total{code="not_found"} 1`,
		`writ_ready 1`,
		`writ_auth_failures_total{reason="missing"} 1`,
		`writ_auth_failures_total{reason="invalid_operator_token"} 1`,
		`writ_cache_gets_total{cache="policies",result="miss"} 1`,
		`writ_cache_gets_total{cache="api_keys",result="hit"} 2`,
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+".0\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, never := range []string{acme, "agent-of-metrics", "nope-of-metrics", "id-of-metrics", policyID} {
		if strings.Contains(text, never) {
			t.Errorf("metrics name %q", never)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
