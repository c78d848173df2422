package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

const allowAction = `{"decision":"allow"}`

func TestRules_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	var made, got engine.Rule
	h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": "{}", "action": allowAction}).wantStatus(http.StatusCreated).into(&made)
	want := engine.Rule{
		ID: made.ID, Name: "n", Condition: "{}", Action: allowAction, Priority: 100, IsActive: true,
		CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now(),
	}
	same(t, "created", want, made)
	h.clock.advance(time.Minute)
	path := "/v1/rules/" + made.ID
	t.Run("an empty PATCH changes nothing", func(t *testing.T) {
		for _, body := range []any{nil, "", "{}", obj{}} {
			h.do("PATCH", path, op, body).wantStatus(http.StatusOK).into(&got)
			same(t, fmt.Sprintf("PATCH with %q", body), want, got)
		}
	})
	t.Run("omitted fields stay unchanged", func(t *testing.T) {
		want.Priority, want.Description, want.UpdatedAt = -5, "why", h.clock.Now()
		got = engine.Rule{}
		h.do("PATCH", path, op, obj{"priority": -5, "description": "why"}).wantStatus(http.StatusOK).into(&got)
		same(t, "PATCH", want, got)
	})
	t.Run("a list holds it", func(t *testing.T) {
		rules := read[[]engine.Rule](h.do("GET", "/v1/rules", op, nil).wantStatus(http.StatusOK))
		same(t, "GET", []engine.Rule{want}, rules)
	})
	t.Run("deleted it is gone", func(t *testing.T) {
		if r := h.do("DELETE", path, op, nil).wantStatus(http.StatusNoContent); len(r.body) != 0 {
			t.Errorf("DELETE body = %q, want none", r.body)
		}
		h.do("DELETE", path, op, nil).wantProblem(http.StatusNotFound, "rule_not_found")
		h.do("PATCH", path, op, nil).wantProblem(http.StatusNotFound, "rule_not_found")
	})
}

// TestRules_IfMatch checks that a caller can neither overwrite nor delete a rule's change that the
// caller has not seen.
func TestRules_IfMatch(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	rule := read[engine.Rule](h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": "{}", "action": allowAction}).wantStatus(http.StatusCreated))
	path, tag := "/v1/rules/"+rule.ID, func() string { return `"` + rule.UpdatedAt.Format(time.RFC3339Nano) + `"` }
	first := tag()
	h.clock.advance(time.Millisecond)
	h.do("PATCH", path, op, obj{"priority": 1}, "If-Match", first).wantStatus(http.StatusOK).into(&rule)
	for _, stale := range []string{first, `"x"`, rule.ID} {
		h.do("PATCH", path, op, obj{"priority": 2}, "If-Match", stale).wantProblem(http.StatusPreconditionFailed, codeRuleChanged)
		h.do("PATCH", path, op, nil, "If-Match", stale).wantProblem(http.StatusPreconditionFailed, codeRuleChanged)
		h.do("DELETE", path, op, nil, "If-Match", stale).wantProblem(http.StatusPreconditionFailed, codeRuleChanged)
	}
	rules := read[[]engine.Rule](h.do("GET", "/v1/rules", op, nil).wantStatus(http.StatusOK))
	same(t, "refused changes changed the rule", []engine.Rule{rule}, rules)
	h.do("PATCH", path, op, obj{"priority": 3}, "If-Match", "*").wantStatus(http.StatusOK).into(&rule)
	h.do("DELETE", path, op, nil, "If-Match", tag()).wantStatus(http.StatusNoContent)
	h.do("DELETE", path, op, nil, "If-Match", tag()).wantProblem(http.StatusNotFound, "rule_not_found")
}

func TestRules_InvalidFields(t *testing.T) {
	h := start(t)
	id := h.rule(acme, `{}`, allowAction)
	valid := obj{"name": "n", "condition": "{}", "action": allowAction}
	for name, tc := range map[string]struct {
		change obj
		field  string
	}{
		"condition no form":        {obj{"condition": `"x"`}, "condition"},
		"condition not JSON":       {obj{"condition": `{`}, "condition"},
		"condition type error":     {obj{"condition": `{"cel":"intent.cost.amount_minor > 'x'"}`}, "condition"},
		"condition unknown op":     {obj{"condition": `{"resource":{"$like":"x"}}`}, "condition"},
		"action says nothing":      {obj{"action": `{}`}, "action"},
		"action unknown":           {obj{"action": `{"decision":"maybe"}`}, "action"},
		"empty name":               {obj{"name": ""}, "name"},
		"null name":                {obj{"name": nil}, "name"},
		"null priority":            {obj{"priority": nil}, "priority"},
		"priority too great":       {obj{"priority": 1_000_000_001}, "priority"},
		"priority too small":       {obj{"priority": -1_000_000_001}, "priority"},
		"fractional priority":      {obj{"priority": 1.5}, "priority"},
		"priority as text":         {obj{"priority": "1"}, "priority"},
		"unknown field":            {obj{"prio": 1}, "prio"},
		"server's field":           {obj{"id": "x"}, "id"},
		"name with control":        {obj{"name": "a\x01"}, "name"},
		"condition as object":      {obj{"condition": obj{}}, "condition"},
		"rego where there is none": {obj{"condition": `{"rego":"http.send({})"}`}, "condition"},
	} {
		t.Run(name, func(t *testing.T) {
			body := obj{}
			for k, v := range valid {
				body[k] = v
			}
			for k, v := range tc.change {
				body[k] = v
			}
			h.do("POST", "/v1/rules", h.operator(acme), body).wantField(tc.field)
			h.do("PATCH", "/v1/rules/"+id, h.operator(acme), tc.change).wantField(tc.field)
		})
	}
	for _, required := range []string{"name", "condition", "action"} {
		body := obj{"name": "n", "condition": "{}", "action": allowAction}
		delete(body, required)
		h.do("POST", "/v1/rules", h.operator(acme), body).wantField(required)
	}
	p := h.do("POST", "/v1/rules", h.operator(acme), obj{"condition": "[]", "action": "[]", "priority": 2_000_000_000}).
		wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if len(p.Errors) != 4 {
		t.Errorf("errors = %v, want four at once", p.Errors)
	}
	h.do("PATCH", "/v1/rules/"+id, h.operator(acme), "null").wantProblem(http.StatusBadRequest, codeInvalidRequest)
}

// TestDecision_Resources_A400NamesEveryInvalidMember checks "A 400 names every invalid member". A
// member is invalid if it is unknown, missing, or has a wrong type or value. Each invalid member is
// named once, and no valid member is named.
func TestDecision_Resources_A400NamesEveryInvalidMember(t *testing.T) {
	h := start(t)
	id := h.rule(acme, `{}`, allowAction)
	p := policy(acme)
	for name, tc := range map[string]struct {
		method, path string
		body         any
		want         []string
	}{
		"intent": {"POST", "/v1/policy/evaluate", obj{"policy_id": policyID, "x": 1, "intent": obj{
			"intent_id": "no uuid", "policy_id": policyID, "agent_id": 5, "acton_type": "sql.read", "resource": "a/b",
			"cost": obj{"amount_minor": "5", "currency": "eur"}, "metadata": obj{"a": "b", "n": 1, "fact.x": "y"}, "issued_at": "2026-11-02T10:00:00Z",
		}}, []string{
			"x", "intent.agent_id", "intent.acton_type", "intent.cost.amount_minor", "intent.metadata.n",
			"intent.intent_id", "intent.action_type", "intent.cost.currency",
		}},
		"no intent": {"POST", "/v1/policy/evaluate", obj{"intend": obj{}}, []string{"intend", "policy_id", "intent"}},
		"policy": {"POST", "/v1/policies/register", obj{"policy": obj{
			"policy_id": p["policy_id"], "version": "1", "organization_id": rival, "agent_id": "*",
			"allowed_action_types": "sql.*", "blocked_resource_pattern": []string{"a"}, "allowed_resource_patterns": []any{"a", 5, "b["},
			"status": "Active", "updated_at": "2026-11-02T10:00:00Z",
		}}, []string{
			"policy.version", "policy.allowed_action_types", "policy.blocked_resource_pattern", "policy.allowed_resource_patterns[1]",
			"policy.allowed_resource_patterns[2]", "policy.status", "policy.organization_id",
		}},
		"no policy": {"POST", "/v1/policies/register", obj{"polici": obj{}}, []string{"polici", "policy"}},
		"rule": {"POST", "/v1/rules", obj{"name": 5, "when": "{}", "action": `{"decision":"perhaps"}`, "isActive": true},
			[]string{"name", "when", "isActive", "condition"}},
		"change of a rule": {"PATCH", "/v1/rules/" + id, obj{"prio": 1, "name": "", "action": `{"decision":"perhaps"}`, "isActive": true},
			[]string{"prio", "name", "action"}},
		"token":           {"POST", "/v1/tokens", obj{"nam": "n", "scopes": []string{"all"}}, []string{"nam", "name", "scopes[0]"}},
		"agent":           {"POST", "/v1/agents", obj{"names": "n", "externalId": ""}, []string{"names", "name", "externalId"}},
		"status":          {"PATCH", "/v1/agents/" + h.agent(acme) + "/status", obj{"status": "off", "x": 1}, []string{"x", "status"}},
		"recorded action": {"POST", "/v1/actions/record", obj{"decision": "d", "outcome": "done"}, []string{"decision", "decision_id", "outcome"}},
		"no JSON":         {"POST", "/v1/rules", `{"name":"n","x":1,`, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.do(tc.method, tc.path, h.operator(acme), tc.body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
			var got []string
			for _, e := range p.Errors {
				got = append(got, e.Field)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\nerrors = %v", diff, p.Errors)
			}
		})
	}
	h.wantRows(acme, 0)
}

// TestRefusedBodies_NameABoundedNumberOfMembers checks that an answer names only a bounded number
// of invalid members.
func TestRefusedBodies_NameABoundedNumberOfMembers(t *testing.T) {
	h := start(t)
	patterns := make([]string, 200)
	for i := range patterns {
		patterns[i] = "["
	}
	body := obj{"policy": obj{"allowed_resource_patterns": patterns, "blocked_resource_patterns": patterns, "x": 1}}
	p := h.do("POST", "/v1/policies/register", h.operator(acme), body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if n := len(p.Errors); n != 50 {
		t.Errorf("%d errors, want 50", n)
	}
}

func TestDecision_Rules_ListInEvaluationOrderWithPages(t *testing.T) {
	h := start(t)
	var want []string
	for i, priority := range []int{50, 1000, -3, 50, 50} {
		h.clock.advance(time.Second)
		h.do("POST", "/v1/rules", h.operator(acme), obj{
			"name": fmt.Sprint(i), "condition": "{}", "action": allowAction, "priority": priority,
		}).wantStatus(http.StatusCreated)
	}
	want = []string{"1", "0", "3", "4", "2"}
	for limit := 1; limit <= 6; limit++ {
		var names []string
		path := fmt.Sprintf("/v1/rules?limit=%d", limit)
		for path != "" {
			r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK)
			var rules []engine.Rule
			r.into(&rules)
			if len(rules) > limit {
				t.Fatalf("page of %d rules, want at most %d", len(rules), limit)
			}
			for _, rule := range rules {
				names = append(names, rule.Name)
			}
			path = nextPath(t, r)
		}
		same(t, fmt.Sprintf("limit %d", limit), want, names)
	}
}

func TestRules_ACursorSurvivesTheRuleItNames(t *testing.T) {
	h := start(t)
	ids := make([]string, 4)
	for i := range ids {
		h.clock.advance(time.Second)
		ids[i] = h.rule(acme, `{}`, allowAction)
	}
	next := nextPath(t, h.do("GET", "/v1/rules?limit=2", h.operator(acme), nil))
	h.do("DELETE", "/v1/rules/"+ids[1], h.operator(acme), nil).wantStatus(http.StatusNoContent)
	rules := read[[]engine.Rule](h.do("GET", next, h.operator(acme), nil).wantStatus(http.StatusOK))
	if len(rules) != 2 || rules[0].ID != ids[2] || rules[1].ID != ids[3] {
		t.Errorf("page after the deleted rule = %v, want %v", rules, ids[2:])
	}
}

func TestRules_SameNamesInAnotherOrganizationAreUnseen(t *testing.T) {
	h := start(t)
	h.rule(rival, `{}`, `{"decision":"deny"}`)
	h.register(acme)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	if r := h.do("GET", "/v1/rules", h.operator(acme), nil); strings.TrimSpace(string(r.body)) != "[]" {
		t.Errorf("GET /v1/rules = %s, want []", r.body)
	}
}

func FuzzRuleCursor(f *testing.F) {
	f.Add(ruleCursor(engine.Rule{ID: "a b", Priority: -5, CreatedAt: time.Unix(1, 2)}))
	f.Add("MTAwIDEgYQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		r, err := parseRuleCursor(cursor)
		if err != nil {
			return
		}
		again, err := parseRuleCursor(ruleCursor(r))
		if err != nil || again.ID != r.ID || again.Priority != r.Priority || !again.CreatedAt.Equal(r.CreatedAt) {
			t.Fatalf("parseRuleCursor(ruleCursor(%v)) = %v, %v", r, again, err)
		}
	})
}

func TestRules_PlanLimit(t *testing.T) {
	h := start(t, freePlan(func(p *engine.Plan) { p.Rules = 2 }))
	create := func() *reply {
		return h.do("POST", "/v1/rules", h.operator(acme), obj{"name": "n", "condition": "{}", "action": `{"decision":"deny"}`})
	}
	var first engine.Rule
	create().wantStatus(http.StatusCreated).into(&first)
	create().wantStatus(http.StatusCreated)
	create().wantProblem(http.StatusForbidden, codePlanLimit)
	h.do("PATCH", "/v1/rules/"+first.ID, h.operator(acme), obj{"isActive": false}).wantStatus(http.StatusOK)
	create().wantProblem(http.StatusForbidden, codePlanLimit)
	usage := read[usageBody](h.do("GET", "/v1/usage/summary", h.operator(acme), nil).wantStatus(http.StatusOK))
	if got, want := usage.Meters.Rules, (planMeter{Used: 2, Limit: 2}); got != want {
		t.Errorf("rules of the usage summary = %+v, want %+v", got, want)
	}
	h.do("DELETE", "/v1/rules/"+first.ID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	create().wantStatus(http.StatusCreated)
}

// TestRules_OthersWriteWhileAChangeIsCompiled checks that no other write, such as the kill switch,
// waits while a condition is compiled. Compiling takes up to tens of milliseconds. A concurrent
// change is not lost, and the merged rule is validated.
func TestRules_OthersWriteWhileAChangeIsCompiled(t *testing.T) {
	var h *harness
	var meanwhile []func() // each compilation calls the first function and removes it
	h = start(t, func(c *setup) {
		c.Service.CompileRego = func(source string) (engine.RegoCondition, error) {
			if len(meanwhile) > 0 {
				f := meanwhile[0]
				meanwhile = meanwhile[1:]
				f()
			}
			return rego.CompileCondition(source)
		}
	})
	agent, id, op := h.agent(rival), h.rule(acme, "{}", allowAction), h.operator(acme)
	path := "/v1/rules/" + id
	meanwhile = []func(){
		func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			set := make(chan error, 1)
			go func() {
				_, err := h.docs.SetAgentStatus(ctx, rival, agent, engine.AgentDisabled, h.clock.Now(), 0)
				set <- err
			}()
			select {
			case err := <-set:
				must(t, err)
			case <-ctx.Done():
				t.Error("the kill switch waits while a rule is compiled")
			}
		},
		func() {
			_, err := h.docs.UpdateRule(context.Background(), acme, id, func(r engine.Rule) (engine.Rule, error) {
				r.Description = "meanwhile"
				return r, nil
			})
			must(t, err)
		},
	}
	var got engine.Rule
	h.do("PATCH", path, op, obj{"condition": `{"rego":"input.intent.action_type == \"x\""}`}).wantStatus(http.StatusOK)
	h.do("PATCH", path, op, obj{"condition": `{"rego":"input.intent.action_type == \"y\""}`}).wantStatus(http.StatusOK).into(&got)
	if len(meanwhile) > 0 || got.Description != "meanwhile" || !strings.Contains(got.Condition, `\"y\"`) {
		t.Errorf("the rule became %+v with %d things left to do, want both changes", got, len(meanwhile))
	}
	h.do("PATCH", path, op, obj{"condition": `{"rego":"input.nothing["}`}).wantStatus(http.StatusBadRequest)
}

// heavy is a condition in Rego that takes 10 MiB of memory.
type heavy struct{ engine.RegoCondition }

func (heavy) Match(*engine.RegoInput) (bool, error) { return false, nil }
func (heavy) Fits(engine.Decision) error            { return nil }
func (heavy) Lists() []string                       { return nil }
func (heavy) Documents() []string                   { return nil }
func (heavy) Libraries() []string                   { return nil }
func (heavy) Review() condition.Review              { return condition.Review{} }
func (heavy) Size() int                             { return 10 << 20 }
func (heavy) Reads() engine.RegoReads               { return engine.RegoReads{Resource: true, Agent: true} }

// TestRules_TakeABoundedAmountOfMemory checks that an organization's compiled rules cannot exceed
// the cache. Larger rules would be compiled for each decision, and would evict the rules of other
// organizations.
func TestRules_TakeABoundedAmountOfMemory(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Service.CompileRego = func(string) (engine.RegoCondition, error) { return heavy{}, nil }
		c.Service.CacheBytes = 256 << 20
	})
	op := h.operator(acme)
	body := obj{"name": "n", "condition": `{"rego":"true"}`, "action": allowAction}
	first := h.rule(acme, `{"rego":"true"}`, allowAction)
	h.rule(acme, `{"rego":"true"}`, allowAction)
	last := h.rule(acme, `{"rego":"true"}`, allowAction)
	h.do("POST", "/v1/rules", op, body).wantField("condition")
	small := h.rule(acme, `{}`, allowAction)
	h.rule(rival, `{"rego":"true"}`, allowAction)
	h.do("PATCH", "/v1/rules/"+small, op, obj{"condition": `{"rego":"true"}`}).wantField("condition")
	h.do("PATCH", "/v1/rules/"+last, op, obj{"condition": `{"rego":"false"}`, "name": "m"}).wantStatus(http.StatusOK)
	h.do("PATCH", "/v1/rules/"+first, op, obj{"isActive": false}).wantStatus(http.StatusOK)
	h.do("POST", "/v1/rules", op, body).wantStatus(http.StatusCreated)
	h.do("PATCH", "/v1/rules/"+first, op, obj{"isActive": true}).wantField("condition")
	h.do("PATCH", "/v1/rules/"+first, op, obj{"isActive": true, "condition": "{}"}).wantStatus(http.StatusOK)
}

// TestRules_TextsAreMeasuredInBytes checks the units of the lengths in openapi.yaml. An agent's
// name is measured in characters, and a rule's name in bytes.
func TestRules_TextsAreMeasuredInBytes(t *testing.T) {
	h := start(t)
	rule := obj{"condition": `{}`, "action": `{"decision":"deny"}`}
	rule["name"] = strings.Repeat("é", condition.MaxLabel/2)
	h.do("POST", "/v1/rules", h.operator(acme), rule).wantStatus(http.StatusCreated)
	rule["name"] = strings.Repeat("é", condition.MaxLabel/2+1)
	p := h.do("POST", "/v1/rules", h.operator(acme), rule).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if want := "is longer than 256 bytes"; len(p.Errors) != 1 || p.Errors[0].Message != want {
		t.Errorf("errors = %v, want one that says %s", p.Errors, want)
	}
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": strings.Repeat("é", 256)}).wantStatus(http.StatusCreated)
}
