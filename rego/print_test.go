package rego

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDecision_Print checks this demand: print shows offline, and is stripped from exports. A server
// ignores it.
func TestDecision_Print(t *testing.T) {
	body := "print(\"amount\", input.intent.cost.amount_minor)\nevery x in [1, 2] { print(x); x > 0 }\nprint(input.intent.metadata.none)\nfalse\nprint(\"below\")"
	module := "package a\n\nmatch if {\n\tprint(\"in\", input.intent.resource)\n\tf(7)\n}\n\nf(x) if {\n\tprint(\"f\\u001b[1m\", x)\n}"
	condition := func(source string) string { return `{"rego":` + marshal(source) + `}` }
	rules := []engine.Rule{
		sampleRule("1", "body", condition(body), `{"decision":"deny"}`),
		sampleRule("2", "module", condition(module), `{"decision":"approval_required"}`),
		sampleRule("3", "no rego", `{}`, `{"decision":"deny"}`),
	}
	rules[0].Priority, rules[1].Priority, rules[2].Priority = 3, 2, 1
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition})
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	in := evaluationInput()
	got := must.Get(Prints(policy, set, in))(t)
	var texts []string
	for _, p := range got {
		texts = append(texts, p.Rule+": "+p.Text)
	}
	want := []string{"body: amount 5001", "body: 1", "body: 2", "body: <undefined>"}
	if len(texts) < 6 {
		t.Fatalf("Prints = %q, %v", texts, set.Broken())
	}
	if diff := cmp.Diff(want[1:], texts[1:4]); diff != "" || !strings.HasPrefix(texts[0], "body: amount ") {
		t.Errorf("Prints = %q (-want +got):\n%s", texts, diff)
	}
	last := texts[len(texts)-1]
	if !strings.HasPrefix(texts[4], "module: in ") || last != "module: f\ufffd[1m 7" || got[len(got)-1].Line != 9 {
		t.Errorf("Prints = %q, want the module's with its line and without the escape", texts)
	}
	for _, f := range must.Get(Lower(samplePolicy(), rules, nil))(t) {
		if strings.Contains(f.Source, "print(") {
			t.Errorf("%s is exported with a print:\n%s", f.Name, f.Source)
		}
	}
}

// TestPrints_AreBounded checks that a condition cannot print without end.
func TestPrints_AreBounded(t *testing.T) {
	source := "some x in numbers.range(1, 400)\nprint(x)\nfalse"
	set := engine.CompileRules([]engine.Rule{sampleRule("1", "r", `{"rego":`+marshal(source)+`}`, `{"decision":"deny"}`)},
		engine.Options{CompileRego: CompileCondition})
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	if got, err := Prints(policy, set, evaluationInput()); err != nil || len(got) != maxPrintedLines {
		t.Errorf("Prints has %d lines, %v, want %d", len(got), err, maxPrintedLines)
	}
}

// TestPrint_CostsNothing checks that a condition takes the same steps with and without a print.
func TestPrint_CostsNothing(t *testing.T) {
	var left []int
	for _, source := range []string{"input.intent.cost", "print(input.intent.metadata)\ninput.intent.cost"} {
		in, work := sampleInput(), condition.Work{}
		in.Work = &work
		if matches, err := must.Get(CompileCondition(source))(t).Match(in); err != nil || !matches {
			t.Errorf("Match(%q) = %v, %v, want true", source, matches, err)
		}
		left = append(left, work.Left())
	}
	if left[0] != left[1] {
		t.Errorf("%d steps are left, and %d with a print", left[0], left[1])
	}
}
