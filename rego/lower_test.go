package rego

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

func samplePolicy() *engine.ActionPolicy {
	limit := int64(250000)
	return &engine.ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 3, OrganizationID: "acme", AgentID: "team-a/*",
		AllowedActionTypes: []string{"deploy", "sql.*", "http_post"}, DeniedActionTypes: []string{"sql.drop"},
		AllowedResourcePatterns: []string{"prod/**", "https://api.example.com/**"}, BlockedResourcePatterns: []string{"prod/secrets/**"},
		MaxCostMinor: &limit, Currency: "EUR", Status: engine.StatusActive, UpdatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
}

func sampleRule(id, name, condition, action string) engine.Rule {
	return engine.Rule{
		ID: id, Name: name, Condition: condition, Action: action, Priority: engine.DefaultPriority, IsActive: true,
		CreatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
}

func sampleRules() []engine.Rule {
	return []engine.Rule{
		sampleRule("rule-1", "Costly deploys need a person", `{"action_type":"deploy","resource":"prod/**","cost.amount_minor":{"$gt":5000}}`, `{"decision":"approval_required"}`),
		sampleRule("rule-2", "No writes on Sundays", `{"rego":"time.weekday(time.parse_rfc3339_ns(input.intent.issued_at)) == \"Sunday\""}`, `{"decision":"deny","reason":"nobody is there to help"}`),
		sampleRule("rule-3", "Rehearsals", `{"cel":"intent.metadata.env == 'dr' || intent.resource.startsWith('prod/dr/')"}`, `{"decision":"allow"}`),
		sampleRule("rule-4", "The finance module", `{"rego":"package finance\n\n# who may\nteams := {\"a\", \"b\"}\n\nmatch if {\n\tsome team in data.finance.teams\n\tstartswith(input.agent.id, team)\n}"}`, `{"decision":"deny"}`),
	}
}

// TestLower_Golden compares the module with testdata/lowered.txtar, and checks that opa fmt leaves
// it unchanged.
func TestLower_Golden(t *testing.T) {
	files := must.Get(Lower(samplePolicy(), sampleRules(), nil))(t)
	var all string
	for _, f := range files {
		all += fmt.Sprintf("-- %s --\n%s", f.Name, f.Source)
		out, err := format.Source(f.Name, []byte(f.Source))
		if err != nil || string(out) != f.Source {
			t.Errorf("opa fmt of %s = %v and\n%s\nwant\n%s", f.Name, err, out, f.Source)
		}
	}
	golden(t, "lowered.txtar", all)
}

// TestLower_IsStrictAndAnnotated checks that the module compiles in the compiler's strict mode, and
// that it has annotations.
func TestLower_IsStrictAndAnnotated(t *testing.T) {
	files := must.Get(Lower(samplePolicy(), sampleRules(), nil))(t)
	modules := map[string]*ast.Module{}
	for _, f := range files {
		modules[f.Name] = must.Get(ast.ParseModuleWithOpts(f.Name, f.Source, parserOptions()))(t)
	}
	c := ast.NewCompiler().WithStrict(true).WithDefaultRegoVersion(ast.RegoV1)
	if c.Compile(modules); c.Failed() {
		t.Fatal(c.Errors)
	}
	var entryPoints []string
	for _, a := range modules[mainFile].Annotations {
		if a.Scope == "package" && (a.Title != "Policy "+policyID+", version 3" || a.Custom["policy_id"] != policyID || a.Custom["organization_id"] != "acme") {
			t.Errorf("the package's annotations = %+v", a)
		}
		if a.Entrypoint {
			path := a.GetTargetPath()
			entryPoints = append(entryPoints, string(path[len(path)-1].Value.(ast.String)))
		}
	}
	if want := []string{"decision", "allow", "codes", "reasons"}; !cmp.Equal(entryPoints, want) {
		t.Errorf("entry points = %v, want %v", entryPoints, want)
	}
}

// TestLower_WithAnIncompleteInput checks that the module denies if a plain OPA leaves a member out
// of the input.
func TestLower_WithAnIncompleteInput(t *testing.T) {
	files := must.Get(Lower(samplePolicy(), nil, nil))(t)
	c, _, err := compileFiles(files, querySchema())
	if err != nil {
		t.Fatal(err)
	}
	const whole = `{"intent": {"intent_id": "i", "policy_id": "p", "issued_at": "2026-01-02T03:04:05Z",
			"action_type": "deploy", "agent_id": "team-a/x", "resource": "prod/{x}", "cost": {"amount_minor": 5, "currency": "EUR"}},
		"policy": {"policy_id": "p", "version": 3, "organization_id": "acme", "agent_id": "team-a/*", "status": "active"},
		"agent": {"id": "team-a/x", "status": "active"}, "organization": {"stopped": false}, "usage": {"exceeded": false}, "require_registered_agents": false,
		"readings": {"blocked": [{"text": "prod/{x}", "readers": ["raw", "posix"]}], "allowed": [{"text": "prod/{x}", "readers": ["posix"]}], "stops": ""},
		"decided_at": "2026-01-02T03:04:05Z"}`
	without := func(member, to string) string { return strings.Replace(whole, member, to, 1) }
	tests := []struct{ name, input, decision, reason string }{
		{"whole", whole, "allow", "policy.allowed: version 3 of the policy allows it"},
		{"no readings", without(`"readings"`, `"reading"`), "deny", "resource.unreadable: the input does not say how the resource is read"},
		{"no readings of a block", without(`"blocked"`, `"block"`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"no readings of an allowance", without(`"allowed"`, `"allow"`), "deny", "resource.unreadable: the input does not say how the resource is read"},
		{"readings without readers", without(`"readers": ["raw", "posix"]`, `"readers": []`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"readings that are strings", without(`{"text": "prod/{x}", "readers": ["raw", "posix"]}`, `"prod/{x}"`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"unknown readers", without(`"readers": ["raw", "posix"]`, `"readers": ["raw", "posixx"]`), "deny", "resource.unreadable: the input does not say how the resource is read"},
		{"an amount of null", without(`"amount_minor": 5`, `"amount_minor": null`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"no time", without(`"decided_at"`, `"decided"`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"no policy", without(`"policy":`, `"other":`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"no stops", without(`, "stops": ""`, ``), "deny", "resource.unreadable: the input does not say how the resource is read"},
		{"nothing", `{}`, "deny", "agent.disabled: the agent is disabled"},
		{"no action type", strings.Replace(whole, `"action_type": "deploy", `, "", 1), "deny", "action.not_allowed: the action type matches no allowed type"},
		{"no agent", strings.Replace(whole, `"agent": {"id": "team-a/x", "status": "active"}, `, "", 1), "deny", "agent.disabled: the agent is disabled"},
		{"no organization", without(`"organization": {"stopped": false}, `, ""), "deny", "organization.stopped: the organization is stopped"},
		{"an organization stopped by a text", without(`"stopped": false`, `"stopped": "no"`), "deny", "organization.stopped: the organization is stopped"},
		{"no usage", strings.Replace(whole, `"usage": {"exceeded": false}, `, "", 1), "deny", "usage.limit: the usage limit of the organization's plan is reached"},
		{"no amount", strings.Replace(whole, `"amount_minor": 5, `, "", 1), "deny", "cost.exceeded: the cost is above the cap of 250000 minor units"},
		{"no currency", strings.Replace(whole, `, "currency": "EUR"`, "", 1), "deny", "cost.currency: the cost is not in EUR"},
		{"empty readings", without(`[{"text": "prod/{x}", "readers": ["raw", "posix"]}]`, `[]`), "deny", "check.error: the input is not what writ makes of an intent"},
		{"another agent", strings.ReplaceAll(whole, "team-a/x", "team-b/x"), "approval_required", "agent.mismatch: version 3 of the policy governs the agent \"team-a/*\", another one needs approval"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			input := ast.MustParseTerm(tt.input).Value
			if got := askFor(t, c, "decision", input); got != tt.decision {
				t.Errorf("decision = %v, want %s", got, tt.decision)
			}
			reasons, ok := askFor(t, c, "reasons", input).([]any)
			if !ok || !slices.Contains(reasons, any(tt.reason)) {
				t.Errorf("reasons = %v, want one of them to be %q", reasons, tt.reason)
			}
			if got := askFor(t, c, "allow", input); got != (tt.decision == "allow") {
				t.Errorf("allow = %v, want %v", got, tt.decision == "allow")
			}
		})
	}
}

// document returns a reference to a document of p's module.
func document(p *engine.ActionPolicy, name string) ast.Ref {
	return ast.MustParseRef("data." + PackageName(p.PolicyID) + "." + name)
}

// askFor returns a document of samplePolicy's module as JSON.
func askFor(t *testing.T, c *ast.Compiler, name string, input ast.Value) any {
	t.Helper()
	return ask(t, c, document(samplePolicy(), name).String(), input)
}

// ask returns a document as JSON, or nil if it is undefined.
func ask(t *testing.T, c *ast.Compiler, ref string, input ast.Value) any {
	t.Helper()
	q := must.Get(prepare(c, ast.MustParseRef(ref), 100))(t)
	v := must.Get(q.ask(input, inTime(time.Now, time.Minute)))(t)
	if v == nil {
		return nil
	}
	return must.Get(ast.JSON(v))(t)
}

// TestDecision_Rules_ApprovalByAnErrorLiftsNoDeny checks this decision:
// "an approval_required asks for approval, yet the rules below it are asked on and
// their deny wins (both findings are reported)", in both renderings.
func TestDecision_Rules_ApprovalByAnErrorLiftsNoDeny(t *testing.T) {
	rule := func(id, condition, decision string, priority int64) engine.Rule {
		r := sampleRule(id, id, condition, `{"decision":"`+decision+`"}`)
		r.Priority = priority
		return r
	}
	rules := []engine.Rule{
		rule("approval", `{"cel":"intent.metadata.env == 'prod' || intent.resource.matches('^prod/x') && intent.metadata.window == 'night'"}`, "approval_required", 3),
		rule("allow", `{"metadata.lift":"yes"}`, "allow", 2),
		rule("deny", `{"resource":"prod/**"}`, "deny", 1),
	}
	c := newComparison(t, samplePolicy(), rules)
	for _, tc := range []struct {
		resource string
		metadata map[string]string
		want     string
	}{
		{"prod/a", nil, "rule.approval_required rule.deny"},
		{"prod/a", map[string]string{"env": "dev"}, "rule.deny"},
		{"prod/a", map[string]string{"env": "prod"}, "rule.approval_required"},
		{"prod/x", map[string]string{"window": "night"}, "rule.approval_required"},
		{"prod/./x", map[string]string{"window": "day"}, "rule.approval_required rule.deny"},
		{"prod/%78", map[string]string{"lift": "yes"}, "rule.approval_required"},
		{"https://api.example.com/", nil, "rule.approval_required"},
	} {
		in := &engine.Input{Agent: engine.AgentActive, Intent: &engine.Intent{
			IntentID: "1b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", PolicyID: samplePolicy().PolicyID, AgentID: "team-a/x", ActionType: "deploy",
			Resource: tc.resource, Metadata: tc.metadata, IssuedAt: "2026-01-02T03:04:05Z",
		}}
		result, problem := c.compare(in)
		if problem != "" {
			t.Errorf("%s %v: %s", tc.resource, tc.metadata, problem)
		}
		var codes []string
		for _, f := range result.Findings {
			if f.RuleID != "" {
				codes = append(codes, string(f.Code))
			}
		}
		if got := strings.Join(codes, " "); got != tc.want {
			t.Errorf("codes of %s with %v = %s, want %s", tc.resource, tc.metadata, got, tc.want)
		}
	}
}
