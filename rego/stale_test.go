package rego

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// with returns an object with other members, at any depth, as OPA's object.union does.
func with(v ast.Value, members string) ast.Value {
	return union2(ast.NewTerm(v), ast.MustParseTerm(members)).Value
}

func union2(a, b *ast.Term) *ast.Term {
	x, ok1 := a.Value.(ast.Object)
	y, ok2 := b.Value.(ast.Object)
	if !ok1 || !ok2 {
		return b
	}
	merged, _ := x.MergeWith(y, func(a, b *ast.Term) (*ast.Term, bool) { return union2(a, b), false })
	return ast.NewTerm(merged)
}

// TestLower_DecidesByNoStaleReadings changes the resource in the input of another intent. The module must
// decide as for the changed intent, or deny.
func TestLower_DecidesByNoStaleReadings(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(25) {
		g := newGenerator(1000 + seed)
		p := g.policy()
		rules, failing := g.rules()
		if failing {
			continue
		}
		c := newComparison(t, p, rules)
		for range 60 {
			in := g.input()
			input := must.Get(Input(p, in))(t)
			changed := *in.Intent
			changed.Resource = g.resource()
			in.Intent = &changed
			input = with(input, `{"intent": {"resource": `+marshal(changed.Resource)+`}}`)
			codes, err := c.query.found(c.query.codes, input)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, reproduce(t, p, rules, in))
			}
			want := codesOf(engine.Evaluate(c.policy, c.rules, in))
			stale := slices.Contains(codes, engine.CodeCheckError)
			switch {
			case stale && isPlain(changed.Resource):
				t.Errorf("seed %d: %q is plain, and the codes are %v, want %v", seed, changed.Resource, codes, want)
			case stale:
				count["check.error"]++
			case !slices.Equal(codes, want):
				t.Errorf("seed %d: the codes of %q are %v, want %v\n%s", seed, changed.Resource, codes, want, reproduce(t, p, rules, in))
			default:
				count["as the engine"]++
			}
		}
	}
	if count["check.error"] < 100 || count["as the engine"] < 300 {
		t.Errorf("the inputs are lopsided: %v", count)
	}
}

// TestLower_DecidesByNothingStale changes members of the intent in an input that was derived offline.
// The module must decide as for the changed intent, or deny. Its rules read lists of metadata values, names
// of the agent, counters and the time of the decision.
func TestLower_DecidesByNothingStale(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(25) {
		g := newGenerator(2000 + seed)
		p := g.policy()
		g.relax(p)
		rules, failing := g.rules()
		if failing {
			continue
		}
		rules = append(rules, g.staleRules()...)
		c := newComparison(t, p, rules)
		for range 60 {
			in := g.input()
			in.DecidedAt, in.Session.CompiledSession, in.Names = time.Time{}, nil, engine.AgentNames{}
			in.Counts = engine.Alone(c.rules.Counters(), in.Intent)
			input := must.Get(derivedOffline(policyTerm(p), in))(t)
			changed, other := *in.Intent, g.intent()
			member := g.one("metadata", "agent_id", "action_type", "cost", "issued_at")
			switch member {
			case "metadata":
				changed.Metadata = other.Metadata
			case "agent_id":
				changed.AgentID = other.AgentID
			case "action_type":
				changed.ActionType = other.ActionType
			case "cost":
				changed.Cost = other.Cost
			case "issued_at":
				changed.IssuedAt = other.IssuedAt
			}
			in.Intent = &changed
			object, _ := input.(ast.Object)
			object.Insert(keyIntent, intentTerm(&changed, ast.StringTerm(changed.AgentID), ast.StringTerm(changed.Resource)))
			codes, err := c.query.found(c.query.codes, object)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, reproduce(t, p, rules, in))
			}
			in = decidedOffline(in)
			in.Counts = engine.Alone(c.rules.Counters(), in.Intent)
			switch want := codesOf(engine.Evaluate(c.policy, c.rules, in)); {
			case slices.Contains(codes, engine.CodeCheckError):
				count[member+" check.error"]++
			case !slices.Equal(codes, want):
				t.Errorf("seed %d: with another %s the codes are %v, want %v\n%s", seed, member, codes, want, reproduce(t, p, rules, in))
			default:
				count[member+" as the engine"]++
			}
		}
	}
	for _, member := range []string{"metadata", "agent_id", "action_type", "cost", "issued_at"} {
		if count[member+" check.error"] < 5 || count[member+" as the engine"] < 5 {
			t.Errorf("the inputs are lopsided: %v", count)
			break
		}
	}
}

// staleRules returns rules that read what an input derives.
func (g *generator) staleRules() (rules []engine.Rule) {
	conditions := []string{
		`{"metadata.env":{"$some":["prod","dr"]}}`, `{"metadata.to":{"$every":["a@b.example","prod"]}}`, `{"metadata.env":{"$size":1}}`,
		`{"agent_id":{"$in":["bot","team-a/deployer"]}}`, `{"count":{"action_type":"deploy","window":"1h"},"gte":1}`,
		`{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"gt":5000}`,
		`{"rego":"time.weekday(time.parse_rfc3339_ns(input.decided_at)) == \"Friday\""}`, `{"cel":"decided_at > timestamp('2026-01-02T03:04:05Z')"}`,
	}
	for i, condition := range g.some(3, conditions) {
		r := sampleRule(fmt.Sprintf("stale-%d", i), fmt.Sprintf("stale %d", i), condition, g.one(`{"decision":"deny"}`, `{"decision":"approval_required"}`))
		r.Priority = int64(99 + g.r.IntN(3))
		rules = append(rules, r)
	}
	return rules
}

// TestRunTests_AskNothingStale runs tests that change an intent: by hand, and by data.writ.input.of.
func TestRunTests_AskNothingStale(t *testing.T) {
	rules := []engine.Rule{
		sampleRule("keys", "Keys", `{"resource":"prod/keys/**"}`, `{"decision":"deny"}`),
		sampleRule("team", "Team", `{"metadata.to":{"$some":["a@rival.example"]}}`, `{"decision":"deny"}`),
	}
	results, err := runTestsOf(t, rules, `
intent := data.intents.deploy.intent
to(x) := object.union(intent, {"metadata": {"to": x}})
test_plain if {
	policy.codes == {"rule.deny"} with input as data.intents.deploy with input.intent.resource as "prod/keys/a"
	data.writ.rules.keys.match with input as data.intents.deploy with input.intent.resource as "prod/keys/a"
	data.`+PackageName(policyID)+`.intent_read with input as data.intents.deploy
}
test_plain_not if not data.writ.rules.keys.match with input as data.intents.deploy
test_other if "check.error" in policy.codes with input as data.intents.deploy with input.intent.resource as "prod/./keys/a"
test_unknown if not data.writ.rules.keys.match with input as data.intents.deploy with input.intent.resource as "prod/./keys/a"
test_unknown_match if data.writ.rules.keys.match with input as data.intents.deploy with input.intent.resource as "prod/./keys/a"
test_unknown_values if not data.writ.rules.team.match with input as data.intents.deploy with input.intent.metadata.to as "A <a@RIVAL.example>"
test_of if {
	policy.codes == {"rule.deny"} with input as data.writ.input.of(object.union(intent, {"resource": "prod/./keys/a"}))
	policy.codes == {"rule.deny"} with input as data.writ.input.of(to("A <a@RIVAL.example>"))
	policy.decision == "allow" with input as data.writ.input.of(to("b@rival.example"))
	data.writ.input.of(intent) == object.union(data.intents.deploy, {"agent": {"status": "unregistered"}})
}
test_invalid if policy.decision == "deny" with input as data.writ.input.of(object.union(intent, {"resource": " x"}))
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"test_plain": "", "test_plain_not": "", "test_other": "", "test_unknown": errUnknown, "test_unknown_match": errUnknown,
		"test_unknown_values": errUnknown, "test_of": "", "test_invalid": "white space"}
	for _, r := range results {
		message, ok := want[r.Name]
		if delete(want, r.Name); !ok || (r.Outcome == TestPassed) != (message == "") || !strings.Contains(r.Message, message) {
			t.Errorf("%s: %s %s, want %q\n%s", r.Name, r.Outcome, r.Message, message, r.Output)
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no result of %v", want)
	}
	_, err = runTestsOf(t, nil, `test_x if writ.derives_input(data.intents.deploy.intent)`)
	if want := "deploys_test.rego:3:11: undefined function writ.derives_input: take data.writ.input.of"; err == nil || err.Error() != want {
		t.Errorf("RunTests = %v, want %s", err, want)
	}
}
