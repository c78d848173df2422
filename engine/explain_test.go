package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
)

// policy returns a policy whose lists often match the generated intents.
func (g generator) policy() *ActionPolicy {
	some := func(list ...string) (out []string) {
		for _, s := range list {
			if g.IntN(2) == 0 {
				out = append(out, s)
			}
		}
		return out
	}
	p := explainedPolicy()
	p.AgentID = []string{"*", "*", "team-a/*", "bot"}[g.IntN(4)]
	p.AllowedActionTypes = append([]string{"*"}, some("deploy", "sql.*", "pay")...)[g.IntN(2):]
	p.DeniedActionTypes = some("SQL.*", "sql.write", "none")
	p.BlockedResourcePatterns = some("prod/*", "**/db", "https://other.example.com/**")
	p.AllowedResourcePatterns = some("**", "{prod,staging}/**", "https://api.example.com/**")
	if g.IntN(2) == 0 {
		limit := int64(g.IntN(4))
		p.MaxCostMinor, p.Currency = &limit, "EUR"
	}
	if g.IntN(9) == 0 {
		p.Status = StatusSuspended
	}
	return p
}

// secret is in the metadata of every intent and in no condition.
const secret = "a-private-value"

func (g generator) input() *Input {
	in := &Input{Intent: g.intent(), DecidedAt: g.Intent().DecidedAt, Agent: []AgentStatus{AgentActive, AgentUnregistered, AgentDisabled}[g.IntN(3)]}
	in.RequireRegistered, in.Usage.Exceeded = g.IntN(9) == 0, g.IntN(9) == 0
	if in.Intent.Metadata != nil {
		in.Intent.Metadata["team"] = secret
	}
	return in
}

// TestDecision_Explain_SaysWhatWasDecided checks traces of generated policies, rules and intents.
// A trace changes no result. The explanation says what was decided and why. It contains no value
// of the metadata.
func TestDecision_Explain_SaysWhatWasDecided(t *testing.T) {
	g := newGenerator(3)
	seen := map[string]int{}
	for range 400 {
		doc := g.policy()
		p := must.Get(CompilePolicy(doc))(t)
		var rules []Rule
		for i := range g.IntN(8) {
			rules = append(rules, g.rule(i))
		}
		rs := CompileRules(rules, stubOptions())
		trace := &Trace{}
		for range 4 {
			in := g.input()
			want := Evaluate(p, rs, in)
			in.Trace = trace
			if diff := cmp.Diff(want, Evaluate(p, rs, in)); diff != "" {
				t.Fatalf("a trace changed the result (-without +with):\n%s", diff)
			}
			if problem := checkExplanation(trace, doc, in, want, seen); problem != "" {
				text, _ := json.MarshalIndent([]any{doc, rules, in.Intent, trace.Explain()}, "", " ")
				t.Fatalf("%s\n%s", problem, text)
			}
		}
	}
	for _, what := range []string{"match", "no_match", "error", "not_asked", "true", "false", "leaf error", "because", "reading", "entries"} {
		if seen[what] < 100 {
			t.Errorf("%s was seen %d times, want at least 100 to mean something", what, seen[what])
		}
	}
}

// checkExplanation returns the mistakes in an explanation, or "".
func checkExplanation(trace *Trace, p *ActionPolicy, in *Input, want Result, seen map[string]int) string {
	x := trace.Explain()
	text, err := json.Marshal(x)
	var words strings.Builder
	if err == nil {
		err = x.WriteText(&words)
	}
	switch {
	case err != nil:
		return err.Error()
	case strings.Contains(string(text)+words.String(), secret):
		return "the explanation holds a value of the metadata"
	case x.Decision != want.Decision:
		return fmt.Sprintf("explained as %v, decided as %v", x.Decision, want.Decision)
	}
	for i, f := range want.Findings {
		if got := x.Findings[i]; got.Code != f.Code || got.Outcome != f.Outcome || got.Reason != f.Reason || got.RuleID != f.RuleID || got.Decides != (f.Outcome == want.Decision) {
			return fmt.Sprintf("finding %d is explained as %v", i, got)
		}
	}
	for i := range x.Checks {
		if problem := checkCheck(&trace.Checks[i], &x.Checks[i], p, in.Intent, want, seen); problem != "" {
			return fmt.Sprintf("check %s: %s", x.Checks[i].Code, problem)
		}
	}
	for i := range x.Rules {
		if problem := checkAsked(&trace.Rules[i], &x.Rules[i], want, seen); problem != "" {
			return fmt.Sprintf("rule %d: %s", i, problem)
		}
	}
	return ""
}

func checkCheck(found *Checked, x *ExplainedCheck, p *ActionPolicy, in *Intent, want Result, seen map[string]int) string {
	i := slices.IndexFunc(want.Findings, func(f Finding) bool { return f.Code == x.Code })
	if (x.Result == "fail") != (i >= 0) {
		return fmt.Sprintf("result %s, found %v", x.Result, i >= 0)
	}
	lists := map[string][]string{
		"policy.allowed_action_types": p.AllowedActionTypes, "policy.denied_action_types": p.DeniedActionTypes,
		"policy.allowed_resource_patterns": p.AllowedResourcePatterns, "policy.blocked_resource_patterns": p.BlockedResourcePatterns,
	}
	list, blocks := lists[found.Field], strings.Contains(found.Field, "denied") || strings.Contains(found.Field, "blocked")
	if len(found.Entries) > 0 {
		seen["entries"]++
	}
	switch {
	case list == nil:
		return ""
	case blocks && (x.Result == "fail") != (len(found.Entries) > 0):
		return fmt.Sprintf("result %s by %v", x.Result, found.Entries)
	case blocks && i >= 0 && !strings.Contains(want.Findings[i].Reason, condition.Quote(x.Value)):
		return fmt.Sprintf("%s is %s, the reason is %s", x.Field, x.Value, want.Findings[i].Reason)
	case !blocks && x.Result == "pass" && len(found.Entries) == 0:
		return "holds by no entry"
	case strings.Contains(found.Field, "resource") && (x.Result == "fail") != (found.Reading.Text != ""):
		return fmt.Sprintf("result %s by the reading %v", x.Result, found.Reading)
	}
	for i, pattern := range list {
		if matches := matchesAlone(found.Field, pattern, in); matches != slices.Contains(found.Entries, i) {
			return fmt.Sprintf("entry %d, %s, matches: %v, in %v", i, pattern, matches, found.Entries)
		}
	}
	return ""
}

// matchesAlone reports whether the list field matches with pattern as its only entry. It compiles
// an allowed pattern as one of a block. Here that makes no difference, because the resources have
// the same readings for both sides.
func matchesAlone(field, pattern string, in *Intent) bool {
	switch field {
	case "policy.allowed_action_types":
		set, err := glob.CompileActions([]string{pattern})
		return err == nil && set.Match(in.ActionType) >= 0
	case "policy.denied_action_types":
		c, err := condition.Plan(asks(condition.ActionType, condition.ActionDenied, pattern))
		if err != nil {
			return false
		}
		e := newEvaluation(testPolicy(), &Input{Intent: in})
		defer e.Free()
		ok, err := c.Eval(e.Frame)
		return err == nil && ok
	}
	side := resource.ForAllow
	if strings.Contains(field, "blocked") {
		side = resource.ForBlock
	}
	list, err := glob.Compile([]string{pattern}, side)
	readings, failed := in.Readings()
	if err != nil || failed != nil {
		return false
	}
	matches := false
	for i := range readings.Len(side) {
		index, _ := list.MatchAny(readings.At(side, i))
		matches = matches || index >= 0
	}
	return matches
}

func checkAsked(a *Asked, x *ExplainedRule, want Result, seen map[string]int) string {
	seen[x.Result]++
	if ruled := slices.ContainsFunc(want.Findings, func(f Finding) bool { return f.RuleID == a.Rule.rule.ID }); ruled != x.Decides {
		return fmt.Sprintf("decides: %v, is one of the result: %v", x.Decides, ruled)
	}
	clause := a.Rule.cond.Clause()
	switch {
	case a.Verdict == NotAsked || clause == nil:
		if a.Leaves != nil {
			return "has leaves, and was not asked"
		}
		return ""
	case len(a.Leaves) != len(a.Rule.Leaves()):
		return "lacks leaves"
	}
	for _, l := range x.Leaves {
		seen[strings.TrimSpace(map[string]string{"error": "leaf "}[l.Result]+l.Result)]++
	}
	if x.Reading != nil {
		seen["reading"]++
	}
	if got := clause.Value(func(i int) condition.Truth { return a.Leaves[i].Verdict.truth() }); got != a.Verdict.truth() {
		return fmt.Sprintf("the leaves make it %v; it said %v", got, a.Verdict)
	}
	switch {
	case x.Because == nil:
		if a.Verdict != Matched && len(x.Leaves) > 0 && !constant(clause) {
			return "no leaf is named"
		}
	case a.Verdict == Matched || (x.Leaves[*x.Because].Result == "error") != (a.Verdict == Failed):
		return fmt.Sprintf("because of leaf %d", *x.Because)
	default:
		seen["because"]++
	}
	return ""
}

// constant reports whether a part of c has no leaf, so that c may have a value without one.
func constant(c *condition.Clause) bool {
	return c.Kind != condition.Leaf && len(c.Kids) == 0 || slices.ContainsFunc(c.Kids, constant)
}

// TestExplanation_Text checks the whole text of the explanation of one intent.
func TestExplanation_Text(t *testing.T) {
	doc := explainedPolicy()
	limit := int64(4999)
	doc.AllowedResourcePatterns, doc.MaxCostMinor = []string{"stage/**", "prod/**"}, &limit
	doc.DeniedActionTypes = []string{"sql.*"}
	p := must.Get(CompilePolicy(doc))(t)
	rs := CompileRules([]Rule{
		stored("a", "allow", `{"cel":"intent.action_type == 'deploy.web' && intent.metadata.none == 'x'"}`, 4),
		stored("b", "deny", `{"action_type":"deploy.api","metadata.env":"prod"}`, 3),
		stored("c", "approval_required", `{"cel":"resource_glob('prod/*/api', intent.resource)"}`, 2),
		stored("d", "deny", `{}`, 1),
	}, Options{})
	in := &Input{Intent: intentWith(nil), Trace: &Trace{}}
	Evaluate(p, rs, in)
	var b strings.Builder
	must.Do(t, in.Trace.Explain().WriteText(&b))
	const want = `decided by: cost.exceeded

resource, as written: prod/web/api
resource, as read:    prod/web/api (posix)

checks of the policy:
  ok    organization.stopped !organization.stopped
  ok    policy.inactive      policy.status == "active"
        status: active
  ok    agent.disabled       agent.status in ["active", "unregistered"]
  ok    agent.unregistered   !deployment.require_registered_agents || agent.status != "unregistered"
  ok    action.denied        !action_denied("sql.*", intent.action_type)
  ok    action.not_allowed   action_matches("*", intent.action_type)
        allowed_action_types[0]: *; got deploy.web
  ok    resource.not_allowed resource_every("resource_glob", ["stage/**", "prod/**"])
        allowed_resource_patterns[1]: prod/**
  FAILS cost.exceeded        !has(intent.cost) || intent.cost.amount_minor <= 4999
        max_cost_minor: 4999; got 5000
  ok    usage.limit          !usage.exceeded

active rules, highest priority first:
  error        4 allow             name of a
       intent.action_type == 'deploy.web' && intent.metadata.none == 'x'
       error: no such key: intent.metadata.none
       true  intent.action_type == "deploy.web"
     > error intent.metadata.none == "x": no such key: intent.metadata.none
  no match     3 deny              name of b
       intent.action_type == "deploy.api" && "env" in intent.metadata && intent.metadata["env"] == "prod"
     > false intent.action_type == "deploy.api"
       true  "env" in intent.metadata && intent.metadata["env"] == "prod"
  matches      2 approval_required name of c (reported)
       resource_glob('prod/*/api', intent.resource)
       of the resource as prod/web/api (raw, posix)
  not asked    1 deny              name of d
       true
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
