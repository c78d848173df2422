package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

const organizationPath = "/v1/organization/status"

func (h *harness) stopEverything(org string) organizationState {
	h.t.Helper()
	return read[organizationState](h.do("PATCH", organizationPath, h.operator(org), obj{"status": "stopped"}).wantStatus(http.StatusOK))
}

func (h *harness) resumeEverything(org string) organizationState {
	h.t.Helper()
	return read[organizationState](h.do("PATCH", organizationPath, h.operator(org), obj{"status": "active"}).wantStatus(http.StatusOK))
}

// TestDecision_Organization_Stopped checks check 0: a stop denies with a row and a receipt, no rule
// overrides it, every other finding is reported, and another organization decides on.
func TestDecision_Organization_Stopped(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	h.rule(acme, `{}`, `{"decision":"allow"}`)
	before := intent()
	wantDecision(t, h.evaluate(acme, before), "allow")
	state := h.stopEverything(acme)
	if state.Status != organizationStopped || !state.StoppedAt.Equal(h.clock.Now()) || !strings.HasPrefix(state.StoppedBy, "operator:") {
		t.Errorf("PATCH = %+v, want who stopped it, and when", state)
	}
	for range 2 {
		got := read[result](h.evaluate(acme, intent(obj{"action_type": "sql.drop"})).wantStatus(http.StatusOK))
		want := []engine.Code{engine.CodeOrganizationStopped, engine.CodeActionDenied, engine.CodeActionNotAllowed, engine.CodeRuleAllow}
		for i, code := range want {
			if i >= len(got.Reasons) || !strings.HasPrefix(got.Reasons[i], string(code)+":") {
				t.Fatalf("reasons = %q, want them to begin with %q", got.Reasons, want)
			}
		}
		if err := receipt.Verify(got.Receipt, h.trusted, h.clock.Now()); err != nil || got.Receipt.Decision != "deny" {
			t.Errorf("receipt of a deny = %+v, %v", got.Receipt, err)
		}
		row := read[storage.Record](h.do("GET", "/v1/authorizations/"+got.DecisionID, h.operator(acme), nil).wantStatus(http.StatusOK))
		if !row.Found(engine.CodeOrganizationStopped) {
			t.Errorf("the row has %+v, want %s", row.Findings, engine.CodeOrganizationStopped)
		}
	}
	wantDecision(t, h.evaluate(acme, before), "allow") // what was decided before stands
	wantDecision(t, h.evaluate(rival, intent()), "allow")
	h.do("GET", organizationPath, h.operator(rival), nil).wantStatus(http.StatusOK).into(&state)
	if state.Status != organizationActive {
		t.Errorf("another organization is %+v, want active", state)
	}
	stopped := intent()
	wantDecision(t, h.evaluate(acme, stopped), "deny")
	if got := h.resumeEverything(acme); got != (organizationState{Status: organizationActive}) {
		t.Errorf("PATCH = %+v, want active", got)
	}
	wantDecision(t, h.evaluate(acme, stopped), "deny") // so does this
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

// TestDecision_Organization_InForceWhenItAnswers checks the status that a credential reads and the next
// decision after each PATCH.
func TestDecision_Organization_InForceWhenItAnswers(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.key(acme, "agents:write")
	var first organizationState
	for range 3 {
		h.do("PATCH", organizationPath, key, obj{"status": "stopped"}).wantStatus(http.StatusOK).into(&first)
		wantDecision(t, h.evaluate(acme, intent()), "deny")
		h.clock.advance(time.Minute)
		same(t, "a second stop", first, h.stopEverything(acme))
		same(t, "GET", first, read[organizationState](h.do("GET", organizationPath, key, nil).wantStatus(http.StatusOK)))
		for range 2 {
			h.resumeEverything(acme)
		}
		wantDecision(t, h.evaluate(acme, intent()), "allow")
	}
	for _, body := range []any{obj{}, obj{"status": "disabled"}, obj{"status": "Stopped"}, obj{"status": nil}, obj{"status": "stopped", "why": "x"}, ""} {
		h.do("PATCH", organizationPath, key, body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
	h.do("PATCH", organizationPath, key, obj{"status": "halted"}).wantField("status")
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

// TestDecision_Organization_EveryWayIn checks that every route that decides denies while the
// organization is stopped, and that a simulation does, unless it says otherwise.
func TestDecision_Organization_EveryWayIn(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.stopEverything(acme)
	op := h.operator(acme)
	code := string(engine.CodeOrganizationStopped) + ":"
	contract := intent()["intent"]
	covered := 0
	for _, rt := range h.server.routes() {
		if !rt.is(deciding) && rt.path != "/v1/policy/simulate" {
			continue
		}
		covered++
		path, body := h.sample(rt)
		token := op
		if rt.path == "/v1/hooks/claude" { // its policy and agent are the key's
			token = read[tokenSecret](h.mint(op, obj{
				"policy_id": policyID, "agent_id": "ci", "scopes": []string{"policy:evaluate", "facts:assert"},
			}).wantStatus(http.StatusCreated)).Token
		}
		r := h.do(rt.method, path, token, body)
		if !strings.Contains(string(r.body), code) || strings.Contains(string(r.body), `"decision":"allow"`) {
			t.Errorf("%s %s of a stopped organization = %d %s, want %s", rt.method, path, r.status, r.body, code)
		}
	}
	if covered < 7 {
		t.Errorf("%d routes decide, want 7", covered)
	}
	for _, mode := range []string{"all", "each"} {
		r := h.do("POST", batchPath, op, obj{"mode": mode, "intents": []any{intent()["intent"], intent()["intent"]}}).wantStatus(http.StatusOK)
		if n := strings.Count(string(r.body), `"reasons":["`+code); n != 2 {
			t.Errorf("a batch %s = %s, want 2 denies", mode, r.body)
		}
	}
	r := h.do("POST", "/v1/policy/simulate", op, obj{"intent": contract, "organization_stopped": false}).wantStatus(http.StatusOK)
	if !strings.Contains(string(r.body), `"decision":"allow"`) {
		t.Errorf("a simulation of an active organization = %s", r.body)
	}
}

// TestDecision_Organization_ApprovalsAreNotRedeemed checks that verdicts and records go on while the
// organization is stopped, that an approval allows nothing then and is not used up, and that a pending
// one stays pending.
func TestDecision_Organization_ApprovalsAreNotRedeemed(t *testing.T) {
	h := start(t)
	h.register(acme)
	allowed := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	h.rule(acme, `{"resource":"held"}`, persons)
	agent, _ := h.key(acme, "policy:evaluate")
	held := func() (body obj, id string) {
		body = intent(obj{"resource": "held"})
		got := read[result](h.do("POST", "/v1/policy/evaluate", agent, body).wantStatus(http.StatusOK))
		body["approval_id"] = got.DecisionID
		return body, got.DecisionID
	}
	status := func(id string) approval.Status {
		return read[approvalBody](h.do("GET", "/v1/approvals/"+id, h.operator(acme), nil).wantStatus(http.StatusOK)).Status
	}
	first, firstID := held()
	later, laterID := held()
	h.stopEverything(acme)
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", agent, later), "approval_required") // it is pending
	for _, id := range []string{firstID, laterID} {
		h.do("PATCH", "/v1/approvals/"+id, h.operator(acme), obj{"status": "approved"}).wantStatus(http.StatusOK)
	}
	got := read[result](h.do("POST", "/v1/policy/evaluate", agent, first).wantStatus(http.StatusOK))
	if got.Receipt.Decision != "deny" || !strings.HasPrefix(got.Reasons[0], "organization.stopped:") {
		t.Errorf("an approved intent of a stopped organization = %s %q, want a deny", got.Receipt.Decision, got.Reasons)
	}
	if s := status(firstID); s != approval.Approved {
		t.Errorf("the approval is %s, want approved", s)
	}
	h.do("POST", "/v1/actions/record", h.operator(acme), obj{"decision_id": allowed.DecisionID, "outcome": "executed"}).wantStatus(http.StatusOK)
	h.resumeEverything(acme)
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", agent, first), "deny") // decided once under this approval
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", agent, later), "allow")
	if s := status(laterID); s != approval.Used {
		t.Errorf("the approval that was redeemed after the stop is %s, want used", s)
	}
}

// TestDecision_Organization_Explained checks that a row is explained later, whether the organization
// was stopped when it was decided or not.
func TestDecision_Organization_Explained(t *testing.T) {
	h := start(t)
	h.register(acme)
	active := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK)).DecisionID
	h.stopEverything(acme)
	stopped := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK)).DecisionID
	explain := func() {
		for id, want := range map[string]string{active: "pass", stopped: "fail"} {
			row := h.explain(h.operator(acme), id)
			if row.Explanation == nil {
				t.Fatalf("unexplained: %s", row.Unexplained)
			}
			if c := row.Explanation.Checks[0]; c.Code != engine.CodeOrganizationStopped || c.Result != want {
				t.Errorf("the first check = %+v, want %s to %s", c, engine.CodeOrganizationStopped, want)
			}
		}
	}
	explain()
	h.resumeEverything(acme)
	explain()
}

// TestDecision_Organization_BoundKeys checks that a key that is bound to an agent cannot stop its
// organization or resume it.
func TestDecision_Organization_BoundKeys(t *testing.T) {
	h := start(t)
	bound := h.boundBefore("ci", Scopes()...)
	for _, status := range []string{"stopped", "active"} {
		h.do("PATCH", organizationPath, bound, obj{"status": status}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	}
	h.do("GET", organizationPath, bound, nil).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

// TestDecision_Organization_Changes checks that the log of changes names the operators that stopped and resumed.
func TestDecision_Organization_Changes(t *testing.T) {
	h := start(t)
	key, id := h.key(acme, "agents:write")
	h.do("PATCH", organizationPath, key, obj{"status": "stopped"}).wantStatus(http.StatusOK)
	h.stopEverything(acme)
	h.resumeEverything(acme)
	must(t, h.ledger.SignChanges(t.Context(), h.store))
	var of []ledger.Change
	for _, c := range read[page[changeItem]](h.do("GET", "/v1/changes", h.operator(acme), nil).wantStatus(http.StatusOK)).Data {
		if c.Kind == "organization" {
			of = append(of, c.Change)
		}
	}
	if len(of) != 2 || of[0].ID != "status" || of[0].Digest != "" || !strings.HasPrefix(of[0].Actor, "operator:") ||
		of[1].ID != "status" || of[1].Digest == "" || !strings.Contains(of[1].Actor, id) {
		t.Errorf("changes = %+v, want a resumption by the operator and a stop by the key %s", of, id)
	}
	h.do("PATCH", organizationPath, h.operator(rival), obj{"status": "active"}).wantStatus(http.StatusOK)
	if got := read[page[changeItem]](h.do("GET", "/v1/changes", h.operator(rival), nil).wantStatus(http.StatusOK)).Data; len(got) > 0 {
		t.Errorf("an organization that was active has the changes %+v", got)
	}
}
