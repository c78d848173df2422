package rego

import (
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

func countingRules() []engine.Rule {
	return []engine.Rule{
		sampleRule("1", "1", `{"count":{"by":["agent_id"],"window":"1h"},"gt":20}`, `{"decision":"deny"}`),
		sampleRule("2", "2", `{"all":[{"not":{"count":{"action_type":"*","window":"1h"},"lte":5}},{"field":"metadata.env","op":"eq","value":"prod"}]}`, `{"decision":"approval_required"}`),
		sampleRule("3", "3", `{"any":[{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"lt":100},{"count":{"window":"2h"},"lte":3}]}`, `{"decision":"allow"}`),
	}
}

// TestCounters_CELAndRegoAgree checks that CEL and Rego decide alike with counters. Some intents
// are counted by a counter, and others are not.
func TestCounters_CELAndRegoAgree(t *testing.T) {
	policy, rules := permissive(), countingRules()
	c := newComparison(t, policy, rules)
	counters := engine.CompileRules(rules, engine.Options{}).Counters()
	if len(counters) != 4 {
		t.Fatalf("%d counters, want 4", len(counters))
	}
	values := []int64{condition.Uncounted, 0, 3, 5, 20, 21, 99, 100, condition.MaxInteger}
	decisions := map[engine.Decision]int{}
	for i := range 4000 {
		in := evaluationInput()
		in.Intent.Metadata = map[string]string{"env": []string{"prod", "dev"}[i%2]}
		for k, counter := range counters {
			in.Counts = append(in.Counts, condition.Count{Counter: counter, N: values[(i*7+i/(k+3)+k)%len(values)]})
		}
		result, difference := c.compare(in)
		if difference != "" {
			t.Fatalf("counts %v: %s", in.Counts, difference)
		}
		decisions[result.Decision]++
	}
	for _, d := range []engine.Decision{engine.Allow, engine.ApprovalRequired, engine.Deny} {
		if decisions[d] < 10 {
			t.Errorf("%v was decided %d times: the counts try too little", d, decisions[d])
		}
	}
}

func TestCounters_FailClosed(t *testing.T) {
	decide := asPlainOPA(t, permissive(), countingRules())
	in := evaluationInput()
	for _, c := range engine.CompileRules(countingRules(), engine.Options{}).Counters() {
		in.Counts = append(in.Counts, condition.Count{Counter: c, N: 1})
	}
	whole := must.Get(Input(permissive(), in))(t)
	if got := decide(whole); got != "allow" {
		t.Fatalf("decision of what writ makes = %v, want allow", got)
	}
	for i := range in.Counts {
		less := *in
		less.Counts = append(append([]condition.Count{}, in.Counts[:i]...), in.Counts[i+1:]...)
		input := must.Get(Input(permissive(), &less))(t)
		if got := decide(input); got != "deny" {
			t.Errorf("without %s: %v, want deny", in.Counts[i].Counter.Key, got)
		}
	}
	for _, other := range []string{"true", `"1"`, "[]", "{}"} {
		object := whole.(ast.Object)
		changed := ast.NewObject()
		object.Foreach(func(k, v *ast.Term) { changed.Insert(k, v) })
		changed.Insert(ast.StringTerm("counters"), ast.MustParseTerm(fmt.Sprintf(`{%q: %s}`, in.Counts[0].Counter.Key, other)))
		if got := decide(changed); got != "deny" {
			t.Errorf("a count of %s: %v, want deny", other, got)
		}
	}
}
