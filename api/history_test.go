package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"writ.example/writ/storage"
)

func TestDecision_Resources_AuthorizationFilters(t *testing.T) {
	h := start(t)
	t0 := h.clock.Now()
	h.decideOneAMinute()
	at := func(minutes int) string {
		return url.QueryEscape(t0.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339))
	}
	for query, want := range map[string]int{
		"":                                    4,
		"decision=allow":                      1,
		"decision=deny":                       1,
		"decision=approval_required":          2,
		"agent_id=other":                      2,
		"agent_id=other&action_type=http_get": 1,
		"policy_id=" + policyID:               4,
		"policy_id=123e4567-e89b-12d3-a456-42661417": 0,
		"action_type=deploy":                         2,
		"code=action.denied":                         1,
		"code=policy.allowed":                        1,
		"code=agent.mismatch&agent_id=other":         2,
		"code=none":                                  0,
		"rule_id=" + policyID:                        0,
		"session_id=" + policyID:                     0,
		"approval_id=" + policyID:                    0,
		"intent_id=" + policyID:                      0,
		"credential=nobody":                          0,
		"from=" + at(1):                              3,
		"to=" + at(1):                                1,
		"from=" + at(1) + "&to=" + at(3):             2,
		"limit=500&agent_id=nobody":                  0,
	} {
		t.Run(query, func(t *testing.T) {
			list := read[page[storage.Record]](h.do("GET", "/v1/authorizations?"+query, h.operator(acme), nil).wantStatus(http.StatusOK))
			if len(list.Data) != want {
				t.Errorf("%d rows, want %d: %v", len(list.Data), want, list.Data)
			}
		})
	}
	row := read[page[storage.Record]](h.do("GET", "/v1/authorizations?limit=1", h.operator(acme), nil)).Data[0]
	for query, want := range map[string]int{
		"intent_id=" + strings.ToUpper(row.IntentID):                       1,
		"credential=" + url.QueryEscape(row.Credential):                    4,
		"intent_id=" + row.IntentID + "&decision=allow&code=action.denied": 0,
	} {
		list := read[page[storage.Record]](h.do("GET", "/v1/authorizations?"+query, h.operator(acme), nil).wantStatus(http.StatusOK))
		if len(list.Data) != want {
			t.Errorf("%s: %d rows, want %d", query, len(list.Data), want)
		}
	}
	for query, field := range map[string]string{
		"decision=maybe": "decision", "from=yesterday": "from", "to=1": "to", "agent_id=": "agent_id",
		"from=2026-11-21T00:00:00+02:00": "from", // a + in a query means a space
		"from=" + at(2) + "&to=" + at(1): "to", "agent_id=%01": "agent_id", "agent=x": "agent",
	} {
		h.do("GET", "/v1/authorizations?"+query, h.operator(acme), nil).wantField(field)
	}
}

func TestListAuthorizations_PagesNewestFirst(t *testing.T) {
	h := start(t)
	h.register(acme)
	var want []string
	for range 7 {
		got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
		want = append([]string{got.DecisionID}, want...)
		h.clock.advance(time.Second)
	}
	var ids []string
	for path := "/v1/authorizations?limit=3"; path != ""; {
		r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK)
		var list page[storage.Record]
		r.into(&list)
		for _, row := range list.Data {
			ids = append(ids, row.DecisionID)
		}
		path = nextPath(t, r)
	}
	if fmt.Sprint(ids) != fmt.Sprint(want) {
		t.Errorf("ids = %v, want %v", ids, want)
	}
}

func TestDecision_Audit_RecordingAnAction(t *testing.T) {
	h := start(t)
	h.register(acme)
	decided := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	key, _ := h.key(acme, "actions:record")
	body := obj{"decision_id": decided.DecisionID, "outcome": "executed", "amount_minor": 120, "currency": "EUR", "external_ref": "ch_1"}
	row := read[storage.Record](h.do("POST", "/v1/actions/record", key, body).wantStatus(http.StatusOK))
	if row.Settlement == nil || row.Settlement.Outcome != "executed" || *row.Settlement.AmountMinor != 120 || row.DecisionID != decided.DecisionID {
		t.Errorf("row = %+v, want the settlement", row)
	}
	h.clock.advance(time.Hour)
	h.do("POST", "/v1/actions/record", key, body).wantStatus(http.StatusOK)
	body["outcome"] = "failed"
	h.do("POST", "/v1/actions/record", key, body).wantProblem(http.StatusConflict, codeConflict)
	if rows := h.history(acme); len(rows) != 1 || rows[0].Settlement == nil || rows[0].Settlement.ExternalRef != "ch_1" {
		t.Errorf("history = %+v, want one settled row", rows)
	}
	for field, change := range map[string]obj{
		"decision_id":  {"decision_id": "x"},
		"outcome":      {"outcome": "done"},
		"amount_minor": {"amount_minor": -1},
		"currency":     {"currency": "eur"},
		"external_ref": {"external_ref": ""},
		"note":         {"note": "x"},
	} {
		bad := obj{"decision_id": decided.DecisionID, "outcome": "executed"}
		for k, v := range change {
			bad[k] = v
		}
		h.do("POST", "/v1/actions/record", key, bad).wantField(field)
	}
}

// TestDecision_Audit_ExecutedWithoutBeingAllowedIsMarkedAndCounted checks "executed for a decision that did not allow
// is accepted, marked unapproved: true in the row's settlement, counted by a metric and alerted on: it is the one sign
// of an integration that does not enforce."
func TestDecision_Audit_ExecutedWithoutBeingAllowedIsMarkedAndCounted(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"agent_id": "ci"})
	key, _ := h.key(acme, "actions:record")
	counted := 0
	for _, tc := range []struct {
		decision string
		change   obj
		outcome  string
		marked   bool
		after    time.Duration // time from the decision to the settlement, by the recording server's clock
	}{
		{"allow", obj{}, "executed", false, time.Second},
		{"deny", obj{"action_type": "sql.drop"}, "executed", true, time.Second},
		{"deny", obj{"action_type": "sql.drop"}, "skipped", false, time.Second},
		{"deny", obj{"action_type": "sql.drop"}, "failed", false, time.Second},
		{"approval_required", obj{"agent_id": "other"}, "executed", true, time.Second},
		{"deny", obj{"action_type": "sql.drop"}, "executed", true, -2 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%s after %s, %v", tc.outcome, tc.decision, tc.after), func(t *testing.T) {
			body := obj{"decision_id": h.decision(h.operator(acme), tc.change), "outcome": tc.outcome}
			if tc.marked {
				counted++
			}
			for _, again := range []bool{false, true} {
				if h.clock.advance(tc.after); again && tc.after < 0 {
					h.clock.advance(-3 * tc.after)
				}
				r := h.do("POST", "/v1/actions/record", key, body).wantStatus(http.StatusOK)
				if got := strings.Contains(string(r.body), `"unapproved":true`); got != tc.marked {
					t.Errorf("again %v: %s, want unapproved: true in the settlement: %v", again, r.body, tc.marked)
				}
			}
			row := h.history(acme)[0]
			if row.Decision.String() != tc.decision || row.Settlement.Unapproved != tc.marked {
				t.Errorf("row = %s, unapproved %v, want %s, %v", row.Decision, row.Settlement.Unapproved, tc.decision, tc.marked)
			}
			if got := testutil.ToFloat64(h.server.metrics.unapproved); got != float64(counted) {
				t.Errorf("writ_unapproved_actions_total = %v, want %d: each once", got, counted)
			}
			if logged := strings.Contains(h.log.String(), row.DecisionID); logged != tc.marked {
				t.Errorf("the log names the decision: %v, want %v", logged, tc.marked)
			}
		})
	}
}

// decideOneAMinute makes four decisions of acme, one minute apart, and one decision of rival. For
// each of acme's decisions there is a filter that selects only that decision.
func (h *harness) decideOneAMinute() {
	h.t.Helper()
	h.register(acme, obj{"agent_id": "ci"})
	h.register(rival)
	for _, change := range []obj{
		{}, {"action_type": "sql.drop"}, {"agent_id": "other"}, {"agent_id": "other", "action_type": "http_get"},
	} {
		h.evaluate(acme, intent(change)).wantStatus(http.StatusOK)
		h.clock.advance(time.Minute)
	}
	h.evaluate(rival, intent()).wantStatus(http.StatusOK)
}

// TestDecision_Audit_NamesAreKeptWhole checks "names whole, but cut at a `?` that a `key=` follows".
func TestDecision_Audit_NamesAreKeptWhole(t *testing.T) {
	h := start(t)
	h.register(acme)
	for _, tc := range []struct{ sent, kept string }{
		{"/data/what?.txt", "/data/what?.txt"}, {"/data/what", "/data/what"}, {"/data/what?token=abc", "/data/what"},
		{"https://h.example/what?.txt", "https://h.example/what"},
	} {
		id := h.decision(h.operator(acme), obj{"resource": tc.sent})
		row := read[storage.Record](h.do("GET", "/v1/authorizations/"+id, h.operator(acme), nil).wantStatus(http.StatusOK))
		if row.Resource != tc.kept {
			t.Errorf("the row of %s has the resource %s, want %s", tc.sent, row.Resource, tc.kept)
		}
	}
}
