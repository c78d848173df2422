package reference

import (
	"slices"
	"strings"
	"testing"
)

// base returns a case whose outcome is allow.
func base() *Case {
	return &Case{
		Policy: Policy{AgentID: "a", AllowedTypes: []string{"*"}, Status: "active"},
		Intent: Intent{AgentID: "a", ActionType: "sql.write", Resource: "prod/db", Cost: &Cost{500, "EUR"}, Metadata: map[string]string{"env": "prod", "n": "12.5", "word": "abc", "tags": `["a", "b"]`}},
	}
}

func codes(t *testing.T, c *Case) string {
	t.Helper()
	o, err := Evaluate(c)
	if err != nil {
		t.Fatalf("Evaluate: %v", err)
	}
	return o.Decision + " " + strings.Join(o.Codes, " ")
}

func TestChecks(t *testing.T) {
	limit := int64(499)
	equal := int64(500)
	for _, c := range []struct {
		name   string
		change func(*Case)
		want   string
	}{
		{"nothing objects", func(*Case) {}, "allow policy.allowed"},
		{"1: a suspended policy", func(c *Case) { c.Policy.Status = "suspended" }, "deny policy.inactive"},
		{"0: the organization is stopped", func(c *Case) { c.Stopped = true }, "deny organization.stopped"},
		{"2: the kill switch", func(c *Case) { c.Agents = []Agent{{ID: "a", Status: "disabled"}} }, "deny agent.disabled"},
		{"2: ids are equal after NFKC and case folding", func(c *Case) { c.Agents = []Agent{{ID: "a", Status: "active"}, {ID: "Ａ", Status: "disabled"}} }, "deny agent.disabled"},
		{"2: an external id", func(c *Case) { c.Agents = []Agent{{ID: "x", ExternalID: "A", Status: "disabled"}} }, "deny agent.disabled"},
		{"2: an unregistered agent passes", func(c *Case) { c.Agents = []Agent{{ID: "b", Status: "disabled"}} }, "allow policy.allowed"},
		{"2: unless registration is required, which compares exactly", func(c *Case) {
			c.RequireRegistered, c.Agents = true, []Agent{{ID: "A", Status: "active"}}
		}, "deny agent.unregistered"},
		{"3: another agent needs a person", func(c *Case) { c.Policy.AgentID = "A" }, "approval_required agent.mismatch"},
		{"3: a glob", func(c *Case) { c.Policy.AgentID, c.Intent.AgentID = "team-a/*", "team-a/x" }, "allow policy.allowed"},
		{"4: a denied type", func(c *Case) { c.Policy.DeniedTypes = []string{"sql.*"} }, "deny action.denied"},
		{"4: in another spelling", func(c *Case) { c.Policy.DeniedTypes = []string{"SQL__write"} }, "deny action.denied"},
		{"4: of the intent", func(c *Case) { c.Policy.DeniedTypes, c.Intent.ActionType = []string{"http.*"}, "HTTP..get" }, "deny action.denied"},
		{"4: with a * separators differ", func(c *Case) { c.Policy.DeniedTypes, c.Intent.ActionType = []string{"http.*"}, "http_get" }, "allow policy.allowed"},
		{"5: an empty list allows nothing", func(c *Case) { c.Policy.AllowedTypes = nil }, "deny action.not_allowed"},
		{"5: exactly", func(c *Case) { c.Policy.AllowedTypes = []string{"SQL.write"} }, "deny action.not_allowed"},
		{"6 and 7: every finding is reported", func(c *Case) {
			c.Policy.BlockedPatterns, c.Policy.AllowedPatterns = []string{"prod/**"}, []string{"dev/**"}
		}, "deny resource.blocked resource.not_allowed"},
		{"8: inclusive", func(c *Case) { c.Policy.MaxCostMinor = &equal }, "allow policy.allowed"},
		{"8: above", func(c *Case) { c.Policy.MaxCostMinor, c.Policy.Currency = &limit, "USD" }, "deny cost.currency cost.exceeded"},
		{"8: a currency without a maximum", func(c *Case) { c.Policy.Currency = "USD" }, "deny cost.currency"},
		{"8: without cost", func(c *Case) { c.Policy.MaxCostMinor, c.Intent.Cost = &limit, nil }, "allow policy.allowed"},
		{"9: the meter", func(c *Case) { c.UsageExceeded = true }, "deny usage.limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := base()
			c.change(cs)
			if got := codes(t, cs); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

var (
	always  = Cond{Op: "and"}
	never   = Cond{Op: "eq", Field: "action_type", Value: "x"}
	faulty  = Cond{Op: "gt", Field: "metadata.word", Value: 5.0}
	missing = Cond{Op: "eq", Field: "metadata.none", Value: "x"}
)

func rule(priority int, decision string, means Cond) Rule {
	return Rule{IsActive: true, Priority: priority, Decision: decision, Means: means, ID: decision}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"the highest priority decides", []Rule{rule(1, Deny, always), rule(2, ApprovalRequired, always)}, "approval_required rule.approval_required"},
		{"a winning allow overrides lower rules", []Rule{rule(1, Deny, always), rule(2, Allow, always)}, "allow rule.allow"},
		{"on a tie the most restrictive", []Rule{rule(2, Deny, always), rule(2, Allow, always)}, "deny rule.deny"},
		{"no match", []Rule{rule(2, Deny, never)}, "allow policy.allowed"},
		{"an error: a deny counts as matching", []Rule{rule(2, Deny, faulty), rule(1, Allow, always)}, "deny rule.deny"},
		{"an error: an allow counts as not matching", []Rule{rule(2, Allow, faulty), rule(1, Deny, always)}, "deny rule.deny"},
		{"an error never lifts a deny of a lower rule", []Rule{rule(2, ApprovalRequired, faulty), rule(1, Deny, always)}, "deny rule.approval_required rule.deny"},
		{"an error: an approval asks, whatever a lower rule allows", []Rule{rule(2, ApprovalRequired, faulty), rule(1, Allow, always)}, "approval_required rule.approval_required"},
		{"an error: on a tie the approval decides alone", []Rule{rule(2, ApprovalRequired, faulty), rule(2, Allow, always)}, "approval_required rule.approval_required"},
		{"an error: on a tie a deny decides alone", []Rule{rule(2, ApprovalRequired, faulty), rule(2, Deny, always)}, "deny rule.deny"},
		{"an error below what decides is not asked", []Rule{rule(2, Allow, always), rule(1, Deny, faulty)}, "allow rule.allow"},
		{"an inactive rule", []Rule{{Decision: Deny, Means: always}}, "allow policy.allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := base()
			cs.Rules = c.rules
			if got := codes(t, cs); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	cs := base()
	cs.Policy.BlockedPatterns, cs.Rules = []string{"prod/**"}, []Rule{rule(9, Allow, always)}
	if got := codes(t, cs); got != "deny resource.blocked rule.allow" {
		t.Errorf("nothing a rule says lifts a deny of the policy: got %s", got)
	}
}

// TestForms checks the meaning of a missing key in each form.
func TestForms(t *testing.T) {
	negated := Cond{Op: "not", Kids: []Cond{missing}}
	for _, c := range []struct {
		name string
		cond Cond
		want [4]truth
	}{
		{"a missing key", missing, [4]truth{no, no, broken, no}},
		{"negated", negated, [4]truth{yes, yes, broken, yes}},
		{"unequal", Cond{Op: "ne", Field: "metadata.none", Value: "x"}, [4]truth{yes, yes, broken, no}},
		{"beside what is false", Cond{Op: "and", Kids: []Cond{missing, never}}, [4]truth{no, no, no, no}},
		{"beside what is true", Cond{Op: "or", Kids: []Cond{missing, always}}, [4]truth{yes, yes, yes, yes}},
		{"no number", faulty, [4]truth{broken, broken, broken, broken}},
		{"a decimal", Cond{Op: "lt", Field: "metadata.n", Value: 12.6}, [4]truth{yes, yes, yes, yes}},
		{"every", Cond{Op: "every", Field: "metadata.tags", Value: []any{"a", "b", "c"}}, [4]truth{yes, yes, yes, yes}},
		{"every, not each", Cond{Op: "every", Field: "metadata.tags", Value: []any{"a"}}, [4]truth{no, no, no, no}},
		{"some", Cond{Op: "some", Field: "metadata.tags", Value: Cond{Op: "glob", Value: "b*"}}, [4]truth{yes, yes, yes, yes}},
		{"size", Cond{Op: "size", Field: "metadata.tags", Value: 2.0}, [4]truth{yes, yes, yes, yes}},
	} {
		for f := MatchObject; f <= Rego; f++ {
			e := evaluation{c: base()}
			if err := e.resource(); err != nil {
				t.Fatal(err)
			}
			r := rule(1, Deny, c.cond)
			r.Form = f
			if got, err := e.matches(r); err != nil || got != c.want[f] {
				t.Errorf("%s in form %d = %v, %v, want %v", c.name, f+1, got, err, c.want[f])
			}
		}
	}
}

// TestResourceInRules checks resources.md, 5: a comparison errs on the strict side. This must also
// hold under a negation, and in a rule that allows.
func TestResourceInRules(t *testing.T) {
	const raw = "https://h/pub/%2e%2e/admin" // the browser reads /admin; the literal reader reads /pub/../admin
	within := func(glob string) Cond { return Cond{Op: "glob", Field: "resource", Value: glob} }
	outside := func(glob string) Cond { return Cond{Op: "not", Kids: []Cond{within(glob)}} }
	for _, c := range []struct {
		decision string
		cond     Cond
		want     truth
	}{
		{Deny, within("https://h/admin"), yes},
		{Deny, within("https://h/pub/**"), yes},
		{Deny, outside("https://h/pub/**"), yes},
		{Deny, outside("https://h/**"), no},
		{Allow, within("https://h/pub/**"), no},
		{Allow, within("https://h/**"), yes},
		{Allow, outside("https://h/admin"), no},
		{Allow, outside("https://h/other"), yes},
	} {
		e := evaluation{c: base()}
		e.c.Intent.Resource = raw
		if err := e.resource(); err != nil {
			t.Fatal(err)
		}
		if got, err := e.matches(rule(1, c.decision, c.cond)); err != nil || got != c.want {
			t.Errorf("%s by %+v = %v, %v, want %v", c.decision, c.cond, got, err, c.want)
		}
	}
	e := evaluation{c: base()}
	e.c.Intent.Resource = "https://x/y?z=1"
	if err := e.resource(); err != nil {
		t.Fatal(err)
	}
	r := rule(1, Deny, Cond{Op: "ne", Field: "resource", Value: "https://x/y?z=1"})
	if got, err := e.matches(r); err != nil || got != no {
		t.Errorf("a match object denies the text that it excepts: %v, %v", got, err)
	}
	r.Form = CEL
	if got, err := e.matches(r); err != nil || got != yes {
		t.Errorf("a CEL rule also denies that text, by its reading without the query: %v, %v", got, err)
	}
}

// TestConditionText checks the text of a condition in the four forms.
func TestConditionText(t *testing.T) {
	c := Cond{Op: "and", Kids: []Cond{{Op: "gt", Field: "cost.amount_minor", Value: 5000.0}, {Op: "eq", Field: "metadata.env", Value: "prod"}}}
	one := func(n int) int { return n - 1 }
	want := []string{
		`{"$and":[{"cost.amount_minor":{"$gt":5000}},{"metadata.env":{"$eq":"prod"}}]}`,
		`{"all":[{"field":"cost.amount_minor","op":"gt","value":5000},{"field":"metadata.env","op":"eq","value":"prod"}]}`,
		`{"cel":"(intent.cost.amount_minor \u003e 5000) \u0026\u0026 (intent.metadata.env == \"prod\")"}`,
		`{"rego":"input.intent.cost.amount_minor \u003e 5000; input.intent.metadata.env == \"prod\""}`,
	}
	for f := MatchObject; f <= Rego; f++ {
		if got := c.Condition(f, one); got != want[f] {
			t.Errorf("Condition(%d) = %s, want %s", f, got, want[f])
		}
	}
	if got := cutList([]rune(`a, b,,`), true); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("cutList = %q", got)
	}
}
