package engine

import (
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/internal/must"
)

// TestCheck_TreesMeanWhatRuns checks that the condition in Check.Holds gives the same result as the
// check's Go code.
func TestCheck_TreesMeanWhatRuns(t *testing.T) {
	g := newGenerator(1)
	one := func(list ...string) string { return conditiontest.Pick(g.Generator, list...) }
	some := func(list ...string) (some []string) {
		for range g.IntN(4) {
			some = append(some, one(list...))
		}
		return some
	}
	bit := map[bool]int64{true: 1}
	asked := map[bool]int{}
	for range 2_000 {
		p := testPolicy()
		p.UpdatedAt = time.Now()
		p.Status = Status(one("active", "revoked"))
		p.AgentID = one("*", "bot", "team-a/*", "team-a/**", "{bot,team-b/x}")
		p.AllowedActionTypes = append(some("deploy", "sql.*", "*.read", "s*l*d", "*"), "never")
		p.DeniedActionTypes = some("SQL.write", "pay", "sql_*", "de*y", "d.e.p", "*l.*")
		p.AllowedResourcePatterns = some("prod/**", "**/db", "https://*.example.com/**", "prod/*", "d?")
		p.BlockedResourcePatterns = some("prod/d?", "**/db", "https://api.example.com/v1/*", "{prod,staging}/db")
		p.Currency = one("", "EUR")
		if g.IntN(2) == 0 {
			p.MaxCostMinor = new(int64(g.IntN(4)))
		}
		s := &Session{
			ID: "s", PolicyID: p.PolicyID, AgentID: one("bot", "team-a/x"), Status: SessionStatus(one("active", "closed")),
			AllowedActionTypes: append(some("deploy", "sql.*"), "pay"), AllowedResourcePatterns: append(some("prod/**", "d?"), "staging/*"),
			MaxCostMinor: new(int64(g.IntN(4))), ExpiresAt: time.Now(),
		}
		compiled := must.Get(CompilePolicy(p))(t)
		session := must.Get(CompileSession(s))(t)
		in := &Input{
			Intent: g.intent(), DecidedAt: g.Intent().DecidedAt, Agent: AgentStatus(one("active", "disabled", "")), RequireRegistered: g.IntN(2) == 0,
			Usage: Usage{g.IntN(2) == 0}, Stopped: g.IntN(2) == 0, Session: InSession{session, g.IntN(2) == 0},
		}
		e := newEvaluation(p, in)
		readings := must.Get(in.Intent.Readings())(t)
		e.SetReadings(readings)
		e.SetInt(condition.UsageExceeded, bit[in.Usage.Exceeded])
		e.SetInt(condition.OrganizationStopped, bit[in.Stopped])
		e.SetInt(condition.RequireRegistered, bit[in.RequireRegistered])
		e.SetInt(condition.SessionClosed, bit[s.Status != SessionActive])
		e.SetInt(condition.SessionExpired, bit[in.Session.Expired])
		e.SetInt(condition.SessionOwn, bit[in.Session.Own(in)])
		ask := func(c Check, s *scope) {
			tree, err := condition.Plan(c.Holds)
			if err != nil {
				t.Fatalf("%s: %v", c.Code, err)
			}
			want, err := tree.Eval(e.Frame)
			if got, failed := c.row.ask(s, &e); got != want || err != nil || failed != nil {
				t.Fatalf("%s of %+v is %t, %v, and %s says %t, %v", c.Code, in.Intent, got, failed, c.Holds.CEL(), want, err)
			}
			asked[want]++
		}
		for _, c := range Checks(p) {
			ask(c, compiled.scope)
		}
		for _, c := range s.checks() {
			ask(c, session.scope)
		}
		e.Free()
	}
	if asked[true] < 5000 || asked[false] < 5000 {
		t.Errorf("%d checks held and %d failed: too few", asked[true], asked[false])
	}
}

// TestCheck_ThatPanicsDenies checks that a check that panics denies.
func TestCheck_ThatPanicsDenies(t *testing.T) {
	e := testEvaluation(t, intentWith(nil))
	r := checkRow{code: CodePolicyInactive, holds: func(*scope, evaluation) bool { panic("no") }}
	found := r.evaluate(nil, e, 0, nil)
	if len(found) != 1 || found[0].Code != CodeCheckError || found[0].Outcome != Deny {
		t.Errorf("a check that panics finds %+v, want %s", found, CodeCheckError)
	}
	p := testPolicy()
	p.AllowedActionTypes, p.UpdatedAt = []string{"*"}, time.Now()
	compiled := must.Get(CompilePolicy(p))(t)
	compiled.scope = nil
	if got := Evaluate(compiled, nil, &Input{Intent: intentWith(nil), Agent: AgentActive}).Decision; got != Deny {
		t.Errorf("Evaluate of a policy without its lists = %v, want deny", got)
	}
}

// TestScope_IsSharedByEqualPoliciesAlone checks that policies share a compiled scope only if their
// checks are the same.
func TestScope_IsSharedByEqualPoliciesAlone(t *testing.T) {
	compiled := func(edit func(p *ActionPolicy)) *Policy {
		p := testPolicy()
		p.AllowedActionTypes, p.UpdatedAt = []string{"a", "b"}, time.Now()
		edit(p)
		c := must.Get(CompilePolicy(p))(t)
		return c
	}
	first := compiled(func(*ActionPolicy) {})
	if same := compiled(func(p *ActionPolicy) { p.Version, p.OrganizationID = 4, "other" }); same.scope != first.scope {
		t.Error("a later version with the same checks has a scope of its own")
	}
	scopes := map[*scope]bool{first.scope: true}
	for i, edit := range []func(p *ActionPolicy){
		func(p *ActionPolicy) { p.AgentID = "team-a/*" },
		func(p *ActionPolicy) { p.AllowedActionTypes = []string{"a"} },
		func(p *ActionPolicy) { p.AllowedActionTypes = []string{"ab"} },
		func(p *ActionPolicy) { p.DeniedActionTypes = []string{"a", "b"} },
		func(p *ActionPolicy) { p.AllowedResourcePatterns = []string{"a", "b"} },
		func(p *ActionPolicy) { p.AllowedResourcePatterns = []string{`a" "b`} },
		func(p *ActionPolicy) { p.BlockedResourcePatterns = []string{"a", "b"} },
		func(p *ActionPolicy) { p.MaxCostMinor = new(int64(7)) },
	} {
		c := compiled(edit)
		if scopes[c.scope] {
			t.Errorf("policy %d shares the scope of another", i)
		}
		scopes[c.scope] = true
	}
}

// TestCompileRules_SharesConditions checks that stored rules with one condition share it, that rules of the other side
// do not, and that a new rule is told of its mistakes however many stored rules have them.
func TestCompileRules_SharesConditions(t *testing.T) {
	rule := func(id, doc, decision string) []Rule {
		return []Rule{{ID: id, Name: id, Condition: doc, Action: `{"decision":"` + decision + `"}`, IsActive: true}}
	}
	cond := func(rules []Rule) *condition.Condition {
		t.Helper()
		set := CompileRules(rules, Options{})
		if broken := set.Broken(); len(broken) > 0 {
			t.Fatalf("Broken = %v, want none", broken)
		}
		return set.Rules()[0].cond
	}
	const doc = `{"cel":"intent.resource.startsWith('prod/')"}`
	if a, b := cond(rule("a", doc, "deny")), cond(rule("b", strings.Clone(doc), "approval_required")); a != b {
		t.Error("two rules with one condition have two compiled ones")
	}
	if a, b := cond(rule("a", doc, "deny")), cond(rule("b", doc, "allow")); a == b {
		t.Error("a rule that allows has the condition of one that denies")
	}
	const mistaken = `{"all":[{"field":"metadata.build","op":"gt","value":"5"}]}` // compares texts
	cond(rule("a", mistaken, "deny"))
	if _, err := CompileRule(rule("b", mistaken, "deny")[0], Options{}); err == nil {
		t.Error("CompileRule of a likely mistake that is stored elsewhere = nil, want an error")
	}
}
