package suite

import (
	"strings"
	"testing"

	"writ.example/writ/internal/must"
)

// TestRun_TheExample runs the suite that the documentation shows. All 9 cases hold, in Rego too.
func TestRun_TheExample(t *testing.T) {
	report := run(t, new(Loader), "testdata/payments_test.yaml", Options{Rego: true})
	if got := len(report.Results); got != 9 {
		t.Errorf("there are %d cases, want 9", got)
	}
	for _, r := range report.Failed() {
		t.Errorf("%s: %s\n%q", r.ID(), r, r.Explained)
	}
}

// TestRun_EveryMember runs a suite that uses every member, and checks that every case holds.
func TestRun_EveryMember(t *testing.T) {
	const text = `suite: everything
policies: [p.yaml, {policy_id: 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11, version: 7, organization_id: o, agent_id: "*", allowed_action_types: ["*"], denied_action_types: [db.drop], blocked_resource_patterns: ["db://prod/**"], max_cost_minor: 100, status: active, updated_at: 2026-11-01T09:00:00Z}]
rules: [r.yaml, {name: In line, condition: {metadata.fact.case: closed}, action: {decision: allow}, priority: 900, isActive: true}]
now: 2026-11-02T10:00:00Z
intents:
  read: {agent_id: bot, action_type: db.read, resource: "db://stage/a", cost: {amount_minor: 5, currency: EUR}, metadata: {env: prod, window: none}}
  write: {extends: read, action_type: db.write, cost: {amount_minor: 7}, metadata: {fact.case: open}}
  plain: {extends: write, cost: null, metadata: {env: null, window: null, fact.case: null}}
tests:
  - {name: merged, intent: write, want: approval_required, codes: [rule.approval_required], rule: Writes wait, error: false}
  - {name: removed, intent: plain, want: deny, codes: [rule.deny], error: true, rule: low}
  - {name: a rule of the suite, intent: write, set: {metadata.fact.case: closed}, want: allow, rule: In line}
  - {name: set replaces, intent: write, set: {metadata: {env: stage, window: none}, cost: {amount_minor: 101, currency: USD}}, want: deny, codes: [cost.exceeded]}
  - name: state
    intent: read
    table:
      columns: [agent, usage_exceeded, require_registered_agents, intent, want, codes, rule, error]
      rows:
        - [active, false, true, read, allow, [policy.allowed], null, false]
        - [unregistered, false, true, read, deny, [agent.unregistered], null, false]
        - [disabled, true, false, write, deny, [usage.limit, agent.disabled, rule.approval_required], Writes wait, false]
  - {name: crossed, intent: read, each: {action_type: [db.read, db.drop], resource: ["db://prod/a", "db://prod/b", "db://prod/b"]}, usage_exceeded: false, want: deny}
`
	report := runText(t, text, Options{Rego: true})
	var names []string
	for _, r := range report.Results {
		if !r.Holds() {
			t.Errorf("%s: %s\n%q", r.ID(), &r, r.Explained)
		}
		names = append(names, r.ID())
	}
	if len(names) != 2*13 {
		t.Errorf("there are %d cases, want 13 by each policy: %q", len(names), names)
	}
	if got, want := names[12], "everything (p.yaml)/crossed/action_type=db.drop, resource=db://prod/b #2"; got != want {
		t.Errorf("the last case of the first policy is %s, want %s", got, want)
	}
	if got, want := names[13], "everything (s.yaml)/merged"; got != want {
		t.Errorf("the first case of the second policy is %s, want %s", got, want)
	}
}

// TestRun_Refused checks that an intent that is not valid is refused, with Rego and without.
func TestRun_Refused(t *testing.T) {
	for wants, problem := range map[string]string{
		`set: {cost: {amount_minor: -1, currency: EUR}}, want: refused`:             "",
		`set: {metadata.n: 5}, want: refused, message: "metadata.n: want a string"`: "",
		`set: {resource: null}, want: refused, message: resource`:                   "",
		`set: {resource: null}, want: refused, message: cost`:                       `want a message with "cost", it is intent.resource: is required`,
		`want: refused`: `want refused`,
		`table: {columns: [resource, want, message], rows: [[x, allow, null], [null, refused, resource]]}`: "",
	} {
		loader := loaderOf(map[string]string{"s.yaml": head + "tests: [{name: a, intent: read, " + wants + "}]", "p.yaml": policyText})
		suites, err := loader.Load("s.yaml")
		if err != nil {
			t.Errorf("a case with %s: Load = %v", wants, err)
			continue
		}
		report := must.Get(Run(t.Context(), suites, Options{Rego: true, Coverage: true}))(t)
		var got []string
		for _, r := range report.Failed() {
			got = append(got, r.Problems...)
		}
		if strings.Join(got, "; ") != problem {
			t.Errorf("a case with %s fails by %q, want %q", wants, got, problem)
		}
	}
}

// TestRun_SaysWhatFails checks that each wanted part of a result can make a case fail.
func TestRun_SaysWhatFails(t *testing.T) {
	for wants, problem := range map[string]string{
		`want: deny`:                       `want deny`,
		`want: allow, codes: [rule.allow]`: `want allow [rule.allow]`,
		`want: allow, codes: []`:           `want allow []`,
		`want: allow, rule: low`:           `no rule decides, want the rule "low"`,
		`want: approval_required, set: {action_type: db.write, metadata.env: prod, metadata.window: none}, rule: low`: `the rule "Writes wait" decides, want the rule "low"`,
		`want: allow, error: true`:                        `no condition is an error, want one`,
		`want: deny, set: {metadata: null}, error: false`: `1 conditions are errors, want none`,
	} {
		text := strings.Replace(head, "policy: p.yaml", "policy: p.yaml\nrules: r.yaml", 1)
		if !strings.Contains(wants, "set:") {
			wants += ", set: {metadata.window: none}"
		}
		report := runText(t, text+"tests: [{name: a, intent: read, "+wants+"}]", Options{Rego: true})
		if got := report.Results[0].Problems; len(got) != 1 || got[0] != problem {
			t.Errorf("a case with %s fails by %q, want %q", wants, got, problem)
		}
	}
}
