package rego

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

func TestCoverage(t *testing.T) {
	body := "# a comment\ninput.intent.action_type == \"deploy\"\nsome env in [\"prod\",\n\t\"dr\"]\ninput.intent.metadata.env == env\ninput.intent.cost.amount_minor > 9000"
	module := "package a\n\nmatch if {\n\tinput.intent.metadata.env == \"prod\"\n\tlimit < 10\n}\n\nmatch if helper\n\nlimit := 5\n\nhelper if count(input.intent.metadata) > 5"
	condition := func(source string) string { return `{"rego":` + marshal(source) + `}` }
	rules := []engine.Rule{
		sampleRule("1", "1", condition(body), `{"decision":"deny"}`),
		sampleRule("2", "2", condition(module), `{"decision":"allow"}`),
		sampleRule("3", "3", `{"action_type":"deploy"}`, `{"decision":"deny"}`),
	}
	prod, dev := evaluationInput(), evaluationInput()
	dev.Intent.Metadata = map[string]string{"env": "dev"}
	for _, tt := range []struct {
		name   string
		inputs []*engine.Input
		want   []LineCoverage
	}{
		{"nothing", nil, // OPA does not miss a `some`
			[]LineCoverage{{RuleID: "1", NotCovered: []int{2, 5, 6}}, {RuleID: "2", NotCovered: []int{3, 4, 5, 8, 10, 12}}}},
		{"dev", []*engine.Input{dev}, []LineCoverage{{RuleID: "1", Covered: []int{2, 3, 5}, NotCovered: []int{6}}, {RuleID: "2", Covered: []int{4, 8, 12}, NotCovered: []int{3, 5, 10}}}},
		{"dev and prod", []*engine.Input{dev, prod}, []LineCoverage{{RuleID: "1", Covered: []int{2, 3, 5, 6}}, {RuleID: "2", Covered: []int{3, 4, 5, 8, 10, 12}}}},
	} {
		got, err := Coverage(samplePolicy(), rules, nil, tt.inputs)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("Coverage of %s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}
