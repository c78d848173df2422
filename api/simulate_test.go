package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// trial returns the body of a simulation with its own policy and rules. changes replace members. A
// change to nil removes the member.
func trial(in obj, changes ...obj) obj {
	body := obj{"policy": policy(acme), "rules": []any{}, "intent": in}
	for _, c := range changes {
		for k, v := range c {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
	}
	return body
}

func (h *harness) simulate(token string, body any) *reply {
	h.t.Helper()
	return h.do("POST", "/v1/policy/simulate", token, body)
}

// TestSimulate_DecidesAndStoresNothing checks that a simulation decides like an evaluation. It
// stores no row, no meter and no change. Its answer approves nothing and contains no metadata.
func TestSimulate_DecidesAndStoresNothing(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"action_type":"deploy","metadata.env":"prod"}`, `{"decision":"deny","reason":"frozen"}`)
	before := h.usage(acme)
	in, _ := intent(obj{"metadata": obj{"env": "prod", "note": "a-private-value"}})["intent"].(obj)
	for name, tc := range map[string]struct {
		body obj
		want string
	}{
		"stored":              {obj{"intent": in}, "deny rule.deny"},
		"stored policy":       {obj{"intent": in, "policy_id": policyID, "rules": []any{}}, "allow policy.allowed"},
		"own policy":          {trial(in, obj{"rules": nil, "policy": policy(acme, obj{"allowed_action_types": []string{}})}), "deny action.not_allowed rule.deny"},
		"own rules":           {trial(in, obj{"rules": []any{obj{"name": "n", "condition": `{}`, "action": `{"decision":"approval_required"}`}}}), "approval_required rule.approval_required"},
		"an inactive rule":    {trial(in, obj{"rules": []any{obj{"name": "n", "condition": `{}`, "action": `{"decision":"deny"}`, "isActive": false}}}), "allow policy.allowed"},
		"disabled":            {trial(in, obj{"agent": "disabled"}), "deny agent.disabled"},
		"used up":             {trial(in, obj{"usage_exceeded": true}), "deny usage.limit"},
		"registration wanted": {trial(in, obj{"require_registered_agents": true}), "deny agent.unregistered"},
	} {
		var got simulated
		r := h.simulate(h.operator(acme), tc.body).wantStatus(http.StatusOK)
		r.into(&got)
		codes := got.Decision.String()
		for _, reason := range got.Reasons {
			code, _, _ := strings.Cut(reason, ":")
			codes += " " + code
		}
		if codes != tc.want || !got.DryRun || got.Explanation.Decision != got.Decision {
			t.Errorf("%s: %s, want %s", name, r.body, tc.want)
		}
		if strings.Contains(string(r.body), "a-private-value") || strings.Contains(string(r.body), "approved") || strings.Contains(string(r.body), "receipt") {
			t.Errorf("%s: the answer holds a value of the metadata, or looks like a decision: %s", name, r.body)
		}
	}
	if rows := h.history(acme); len(rows) != 0 {
		t.Errorf("simulations left %d rows", len(rows))
	}
	if diff := cmp.Diff(before, h.usage(acme)); diff != "" {
		t.Errorf("simulations changed the meters (-before +after):\n%s", diff)
	}
	h.disable(acme, "ci")
	got := read[simulated](h.simulate(h.operator(acme), trial(in)).wantStatus(http.StatusOK))
	if got.Decision.String() != "deny" {
		t.Errorf("with the agent's stored status: %s, want deny", got.Decision)
	}
}

// TestSimulate_ShowsWhatIsStoredToThoseWhoMayReadIt checks that a simulation shows stored documents
// only to a credential that may read those documents. It never shows documents of another
// organization.
func TestSimulate_ShowsWhatIsStoredToThoseWhoMayReadIt(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"metadata.key":"the-rule-of-acme"}`, `{"decision":"deny"}`)
	in, _ := intent()["intent"].(obj)
	for _, tc := range []struct {
		scopes []string
		body   obj
		lacks  string
	}{
		{[]string{"policy:evaluate"}, trial(in), ""},
		{[]string{"policy:evaluate"}, trial(in, obj{"rules": nil}), "rules:read"},
		{[]string{"policy:evaluate"}, trial(in, obj{"policy": nil}), "policy:read"},
		{[]string{"policy:evaluate", "rules:read"}, obj{"intent": in}, "policy:read"},
		{[]string{"policy:evaluate", "policy:read", "rules:read"}, obj{"intent": in}, ""},
		{[]string{"policy:read", "rules:read"}, trial(in), "policy:evaluate"},
	} {
		key, _ := h.key(acme, tc.scopes...)
		r := h.simulate(key, tc.body)
		if tc.lacks == "" {
			r.wantStatus(http.StatusOK)
			continue
		}
		if p := r.wantProblem(http.StatusForbidden, codeInsufficientScope); !strings.Contains(p.Detail, tc.lacks) || strings.Contains(string(r.body), "the-rule-of-acme") {
			t.Errorf("with %v: %s, want the scope %s", tc.scopes, r.body, tc.lacks)
		}
	}
	h.simulate(h.operator(rival), obj{"intent": in}).wantProblem(http.StatusNotFound, "policy_not_found")
	if r := h.simulate(h.operator(rival), trial(in, obj{"rules": nil})).wantStatus(http.StatusOK); strings.Contains(string(r.body), "the-rule-of-acme") {
		t.Errorf("another organization sees the rule: %s", r.body)
	}
	key, _ := h.bound("team-a/*", "policy:evaluate")
	h.simulate(key, trial(in)).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

func TestSimulate_NamesAllMistakes(t *testing.T) {
	h := start(t)
	in, _ := intent()["intent"].(obj)
	rule := func(changes obj) obj {
		r := obj{"name": "n", "condition": "{}", "action": `{"decision":"deny"}`}
		for k, v := range changes {
			r[k] = v
		}
		return r
	}
	for field, body := range map[string]obj{
		"intent":                              trial(in, obj{"intent": nil}),
		"intent.resource":                     trial(intent(obj{"resource": " x"})["intent"].(obj)),
		"intent.policy_id":                    trial(in, obj{"policy": policy(acme, obj{"policy_id": "0c0ffee0-0000-4000-8000-0000000000ff"})}),
		"policy_id":                           trial(in, obj{"policy_id": policyID}),
		"policy.status":                       trial(in, obj{"policy": policy(acme, obj{"status": "on"})}),
		"policy.allowed_resource_patterns[0]": trial(in, obj{"policy": policy(acme, obj{"allowed_resource_patterns": []string{"[a"}})}),
		"agent":                               trial(in, obj{"agent": "asleep"}),
		"rules[1].condition":                  trial(in, obj{"rules": []any{rule(nil), rule(obj{"condition": `{"cel":"1"}`})}}),
		"rules[0].name":                       trial(in, obj{"rules": []any{rule(obj{"name": ""})}}),
		"rules[0].isactive":                   trial(in, obj{"rules": []any{rule(obj{"isactive": false})}}),
		"dry_run":                             trial(in, obj{"dry_run": true}),
	} {
		h.simulate(h.operator(acme), body).wantField(field)
	}
	r := h.simulate(h.operator(acme), trial(in, obj{"agent": "asleep", "rules": []any{rule(obj{"condition": "x"})}}))
	r.wantField("agent")
	r.wantField("rules[0].condition")
	var many []any
	for range 3 * condition.MaxMistakes {
		many = append(many, rule(obj{"condition": "x"}))
	}
	if p := h.simulate(h.operator(acme), trial(in, obj{"rules": many})).wantProblem(http.StatusBadRequest, codeInvalidRequest); len(p.Errors) != condition.MaxMistakes {
		t.Errorf("%d mistakes are named, want %d", len(p.Errors), condition.MaxMistakes)
	}
}

// TestSimulate_IsBounded checks that one request can compile and explain only a bounded amount of
// rules. Even short rules in Rego are large once compiled.
func TestSimulate_IsBounded(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Service.CompileRego = rego.CompileCondition
		c.Limits = DefaultLimits()
		c.Limits.Handle, c.Service.Queue = time.Minute, time.Minute // a busy machine compiles for long under the race detector
	})
	in, _ := intent()["intent"].(obj)
	var large, trees []any
	for range 200 {
		large = append(large, obj{"name": "n", "condition": `{"rego":"input.intent.action_type == \"x\""}`, "action": `{"decision":"deny"}`})
	}
	h.simulate(h.operator(acme), trial(in, obj{"rules": large})).wantField("rules")

	h.register(acme)
	condition := `{"metadata.key":{"$in":["` + strings.Repeat("x", 14<<10) + `"]}}`
	const rules = 22 // slightly more rules than one answer explains
	for range rules {
		h.rule(acme, condition, `{"decision":"deny"}`)
	}
	got := read[simulated](h.simulate(h.operator(acme), trial(in, obj{"rules": nil})).wantStatus(http.StatusOK))
	x := got.Explanation
	if shown := 256<<10/len(condition) + 1; len(x.Rules) != shown || x.RulesLeftOut != rules-shown {
		t.Errorf("%d rules are explained and %d left out, want %d explained", len(x.Rules), x.RulesLeftOut, shown)
	}
	for range 100 {
		trees = append(trees, obj{"name": "n", "condition": `{"action_type":"x"}`, "action": `{"decision":"deny"}`})
	}
	got = simulated{}
	h.simulate(h.operator(acme), trial(in, obj{"rules": trees})).wantStatus(http.StatusOK).into(&got)
	if len(got.Explanation.Rules) != len(trees) {
		t.Errorf("%d rules are explained, want all %d", len(got.Explanation.Rules), len(trees))
	}
}
