package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
)

// session makes a session of org for the agent ci and returns its id. changes replace members of
// the request.
func (h *harness) session(org string, changes obj) (id string) {
	h.t.Helper()
	body := obj{"policy_id": policyID, "agent_id": "ci", "ttl": 600}
	maps.Copy(body, changes)
	made := read[engine.Session](h.do("POST", "/v1/sessions", h.operator(org), body).wantStatus(http.StatusCreated))
	return made.ID
}

// in returns a copy of body that names session.
func in(session string, body obj) obj {
	body["session_id"] = session
	return body
}

func (h *harness) wantCodes(body obj, want ...string) {
	h.t.Helper()
	got := read[result](h.evaluate(acme, body).wantStatus(http.StatusOK))
	var codes []string
	for _, reason := range got.Reasons {
		code, _, _ := strings.Cut(reason, ":")
		codes = append(codes, code)
	}
	if !slices.Equal(codes, want) || got.Approved != (want[0] == "policy.allowed") {
		h.t.Errorf("approved %v, codes %v, want %v", got.Approved, got.Reasons, want)
	}
}

func TestSessions_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.register(acme)
	var made, got engine.Session
	h.do("POST", "/v1/sessions", op, obj{
		"policy_id": strings.ToUpper(policyID), "agent_id": "ci", "allowed_action_types": []string{"deploy"},
		"allowed_resource_patterns": []string{"prod/**"}, "max_cost_minor": 5, "ttl": 90,
	}).wantStatus(http.StatusCreated).into(&made)
	five := int64(5)
	want := engine.Session{
		ID: made.ID, PolicyID: policyID, AgentID: "ci", AllowedActionTypes: []string{"deploy"}, AllowedResourcePatterns: []string{"prod/**"},
		MaxCostMinor: &five, Status: engine.SessionActive, CreatedAt: h.clock.Now(), ExpiresAt: h.clock.Now().Add(90 * time.Second),
	}
	same(t, "created", want, made)
	h.do("GET", "/v1/sessions/"+made.ID, op, nil).wantStatus(http.StatusOK).into(&got)
	same(t, "GET", want, got)
	h.clock.advance(time.Second)
	want.Status, want.ClosedAt = engine.SessionClosed, h.clock.Now()
	for range 2 { // closing a closed session changes nothing
		got = engine.Session{}
		h.do("PATCH", "/v1/sessions/"+made.ID, op, obj{"status": "closed"}).wantStatus(http.StatusOK).into(&got)
		same(t, "closed", want, got)
		h.clock.advance(time.Second)
	}
	h.do("PATCH", "/v1/sessions/"+made.ID, op, obj{"status": "active"}).wantField("status")
	all := read[page[engine.Session]](h.do("GET", "/v1/sessions", op, nil).wantStatus(http.StatusOK))
	same(t, "GET /v1/sessions", []engine.Session{want}, all.Data)
}

// TestDecision_Agents_GoOnWithTheirSession checks "An agent is one" of decisions.md. A session
// belongs to all names of its agent, and to no other agent. This remains true if the agent
// registers during the session.
func TestDecision_Agents_GoOnWithTheirSession(t *testing.T) {
	h := start(t)
	h.register(acme)
	before := h.session(acme, obj{"agent_id": "Bot-9"})
	agent := read[engine.Agent](h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "x", "externalId": "bot-9"}).wantStatus(http.StatusCreated))
	h.agent(acme)
	for _, session := range []string{before, h.session(acme, obj{"agent_id": "bot-9"}), h.session(acme, obj{"agent_id": strings.ToUpper(agent.ID)})} {
		for _, name := range []string{"bot-9", "BOT-9", "ｂot-9", agent.ID, strings.ToUpper(agent.ID)} {
			h.wantCodes(in(session, intent(obj{"agent_id": name})), "policy.allowed")
		}
		for _, name := range []string{"bot-8", "bot9", "bot-99", "ci", h.agent(acme)} {
			h.wantCodes(in(session, intent(obj{"agent_id": name})), "session.not_allowed")
		}
	}
}

func TestSessions_Invalid(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.register(acme)
	body := func(changes obj) obj {
		all := obj{"policy_id": policyID, "agent_id": "ci", "ttl": 600}
		maps.Copy(all, changes)
		return all
	}
	for name, tc := range map[string]struct {
		body  obj
		field string
	}{
		"no policy":          {obj{"agent_id": "ci", "ttl": 1}, "policy_id"},
		"no agent":           {obj{"policy_id": policyID, "ttl": 1}, "agent_id"},
		"no ttl":             {obj{"policy_id": policyID, "agent_id": "ci"}, "ttl"},
		"no time":            {body(obj{"ttl": 0}), "ttl"},
		"more than a week":   {body(obj{"ttl": 604801}), "ttl"},
		"no action types":    {body(obj{"allowed_action_types": []string{}}), "allowed_action_types"},
		"an action type":     {body(obj{"allowed_action_types": []string{"a b"}}), "allowed_action_types[0]"},
		"no patterns":        {body(obj{"allowed_resource_patterns": []string{}}), "allowed_resource_patterns"},
		"a pattern":          {body(obj{"allowed_resource_patterns": []string{"["}}), "allowed_resource_patterns[0]"},
		"a negative cost":    {body(obj{"max_cost_minor": -1}), "max_cost_minor"},
		"an id of its own":   {body(obj{"session_id": uuid.NewString()}), "session_id"},
		"blocked patterns":   {body(obj{"blocked_resource_patterns": []string{"x"}}), "blocked_resource_patterns"},
		"a secret in a list": {body(obj{"allowed_resource_patterns": []string{"https://x.example/?token=ghp_" + strings.Repeat("A1b2C3", 6)}}), "allowed_resource_patterns[0]"},
	} {
		t.Run(name, func(t *testing.T) { h.do("POST", "/v1/sessions", op, tc.body).wantField(tc.field) })
	}
	h.do("POST", "/v1/sessions", op, body(obj{"policy_id": uuid.NewString()})).wantProblem(http.StatusNotFound, "policy_not_found")
	h.do("POST", "/v1/sessions", h.operator(rival), body(nil)).wantProblem(http.StatusNotFound, "policy_not_found")
	for name, id := range map[string]any{"empty": "", "no UUID": "x", "a number": 1, "null": nil} {
		t.Run("session_id: "+name, func(t *testing.T) {
			e := intent()
			e["session_id"] = id
			h.evaluate(acme, e).wantField("session_id")
		})
	}
}

// TestSessions_Narrow checks that a session can forbid actions that the policy allows. It cannot
// allow any action that the policy forbids.
func TestSessions_Narrow(t *testing.T) {
	h := start(t)
	h.register(acme)
	narrow := h.session(acme, obj{"allowed_action_types": []string{"deploy", "sql.*"}, "allowed_resource_patterns": []string{"prod/**"}, "max_cost_minor": 5})
	cost := func(amount int) obj { return obj{"cost": obj{"amount_minor": amount, "currency": "EUR"}} }
	h.wantCodes(in(narrow, intent()), "policy.allowed")
	h.wantCodes(in(strings.ToUpper(narrow), intent(cost(5))), "policy.allowed")
	h.wantCodes(in(narrow, intent(cost(6))), "session.not_allowed")
	h.wantCodes(in(narrow, intent(obj{"action_type": "http_get"})), "session.not_allowed")
	h.wantCodes(in(narrow, intent(obj{"resource": "staging/x"})), "session.not_allowed")
	h.wantCodes(in(narrow, intent(obj{"resource": "prod/../staging/x"})), "session.not_allowed")
	h.wantCodes(in(narrow, intent(obj{"action_type": "sql.read"})), "action.not_allowed")
	h.wantCodes(in(narrow, intent(obj{"action_type": "http_get", "resource": "x"}, cost(9))), "session.not_allowed", "session.not_allowed", "session.not_allowed")
	h.wantCodes(intent(obj{"action_type": "http_get"}), "policy.allowed")
	h.wantCodes(in(h.session(acme, nil), intent(obj{"action_type": "http_get"})), "policy.allowed")
}

// TestSessions_OfOthers checks "another agent's session denies with session.not_allowed, an unknown one is 404".
func TestSessions_OfOthers(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	h.wantCodes(in(h.session(acme, obj{"agent_id": "other"}), intent()), "session.not_allowed")
	h.register(acme, obj{"policy_id": "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d21"})
	h.wantCodes(in(h.session(acme, obj{"policy_id": "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d21"}), intent()), "session.not_allowed")
	for name, id := range map[string]string{"nobody's": uuid.NewString(), "rival's": h.session(rival, nil)} {
		t.Run(name, func(t *testing.T) {
			h.evaluate(acme, in(id, intent())).wantProblem(http.StatusNotFound, "session_not_found")
			h.do("POST", "/v1/governance/authorize", h.operator(acme), in(id, intent())).wantProblem(http.StatusNotFound, "session_not_found")
			h.do("POST", "/v1/policy/simulate", h.operator(acme), obj{"session_id": id, "intent": intent()["intent"]}).wantProblem(http.StatusNotFound, "session_not_found")
			for _, mode := range []string{"all", "each"} {
				r := h.do("POST", batchPath, h.operator(acme), obj{"mode": mode, "session_id": id, "intents": []any{intent()["intent"]}})
				if !strings.Contains(string(r.body), "session_not_found") {
					t.Errorf("%s: %d %s, want session_not_found", mode, r.status, r.body)
				}
			}
		})
	}
}

func TestSessions_End(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.session(acme, obj{"ttl": 60})
	h.clock.advance(59 * time.Second)
	h.wantCodes(in(id, intent()), "policy.allowed")
	h.clock.advance(time.Second)
	h.wantCodes(in(id, intent()), "session.expired")
	id = h.session(acme, nil)
	h.wantCodes(in(id, intent()), "policy.allowed")
	h.do("PATCH", "/v1/sessions/"+id, h.operator(acme), obj{"status": "closed"}).wantStatus(http.StatusOK)
	h.wantCodes(in(id, intent()), "session.closed")
	if n, err := h.docs.SweepSessions(context.Background(), acme, h.clock.Now().Add(24*time.Hour+time.Second)); n != 1 || err != nil {
		t.Fatalf("SweepSessions = %d, %v, want the one that expired", n, err)
	}
	h.wantCodes(in(id, intent()), "session.closed")
	if n, err := h.docs.SweepSessions(context.Background(), acme, h.clock.Now().Add(25*time.Hour)); n != 1 || err != nil {
		t.Fatalf("SweepSessions = %d, %v, want the other", n, err)
	}
	h.evaluate(acme, in(id, intent())).wantProblem(http.StatusNotFound, "session_not_found")
}

// TestSessions_ArePartOfTheIntent checks that the session is part of the intent. The same intent in another session, or
// without a session, is a different intent.
func TestSessions_ArePartOfTheIntent(t *testing.T) {
	h := start(t)
	h.register(acme)
	a, b := h.session(acme, nil), h.session(acme, nil)
	body := in(a, intent())
	h.wantCodes(body, "policy.allowed")
	if r := h.evaluate(acme, body).wantStatus(http.StatusOK); r.header.Get(headerReplayed) == "" {
		t.Error("the same intent in the same session is no replay")
	}
	h.evaluate(acme, in(b, maps.Clone(body))).wantProblem(http.StatusConflict, codeIntentConflict)
	delete(body, "session_id")
	h.evaluate(acme, body).wantProblem(http.StatusConflict, codeIntentConflict)
	rows := h.history(acme)
	if len(rows) != 1 || rows[0].SessionID != a {
		t.Errorf("rows = %+v, want one in session %s", rows, a)
	}
}

func TestSessions_InBatchesAndSimulations(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.session(acme, obj{"allowed_action_types": []string{"http_get"}})
	r := h.do("POST", batchPath, h.operator(acme), obj{"mode": "each", "session_id": id, "intents": []any{
		intent()["intent"], intent(obj{"action_type": "http_get"})["intent"],
	}}).wantStatus(http.StatusOK)
	if n := strings.Count(string(r.body), "session.not_allowed: "); n != 1 {
		t.Errorf("%d of two intents are denied by the session, want 1: %s", n, r.body)
	}
	r = h.do("POST", "/v1/policy/simulate", h.operator(acme), obj{"session_id": id, "intent": intent()["intent"]}).wantStatus(http.StatusOK)
	for _, want := range []string{`"decision":"deny"`, `"code":"session.not_allowed","result":"fail"`, `"field":"session.allowed_action_types"`, `"got":"deploy"`} {
		if !strings.Contains(string(r.body), want) {
			t.Errorf("simulation = %s, want %s in it", r.body, want)
		}
	}
}

// TestSessions_Credentials checks that a key with only the scope policy:evaluate can neither make
// nor change a session. A key that is bound to agents can make sessions only for these agents.
func TestSessions_Credentials(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.session(acme, nil)
	key, _ := h.key(acme, "policy:evaluate", "agents:read")
	h.do("POST", "/v1/sessions", key, obj{"policy_id": policyID, "agent_id": "ci", "ttl": 60}).wantProblem(http.StatusForbidden, codeInsufficientScope)
	h.do("PATCH", "/v1/sessions/"+id, key, obj{"status": "closed"}).wantProblem(http.StatusForbidden, codeInsufficientScope)
	bound, _ := h.bound("other", "sessions:write", "policy:evaluate")
	h.do("POST", "/v1/sessions", bound, obj{"policy_id": policyID, "agent_id": "ci", "ttl": 60}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	h.do("PATCH", "/v1/sessions/"+id, bound, obj{"status": "closed"}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	h.do("POST", "/v1/sessions", bound, obj{"policy_id": policyID, "agent_id": "other", "ttl": 60}).wantStatus(http.StatusCreated)
}
