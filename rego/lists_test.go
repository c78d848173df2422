package rego

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

func listRule(doc, outcome string) engine.Rule {
	return sampleRule("r", "listed", doc, `{"decision":"`+outcome+`"}`)
}

// listInput returns an intent that the sample policy allows.
func listInput() *engine.Input {
	in := sampleInput()
	intent := *in.Intent
	intent.Metadata = map[string]string{"to": "bob"}
	return &engine.Input{Intent: &intent, Agent: engine.AgentActive}
}

func TestCompileCondition_Lists(t *testing.T) {
	for _, tt := range []struct {
		source string
		names  []string
		wrong  string
	}{
		{source: `input.intent.metadata.to in input.lists.payees`, names: []string{"payees"}},
		{source: `input.intent.agent_id in input.lists["a-b"]; not input.intent.agent_id in input.lists.payees`, names: []string{"a-b", "payees"}},
		{source: "package p\n\nimport input.lists.payees as known\n\nmatch if input.intent.metadata.to in known", names: []string{"payees"}},
		{source: `true`},
		{source: `count(input.lists) > 0`, wrong: `1:7: input.lists must name one list`},
		{source: `some name; input.intent.agent_id in input.lists[name]`, wrong: "must name one list"},
		{source: `x := input.lists; input.intent.agent_id in x.payees`, wrong: "must name one list"},
		{source: `input.intent.agent_id in input.lists.Payees`, wrong: "the name of a list has"},
	} {
		c, err := CompileCondition(tt.source)
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("CompileCondition(%s) = %v, want %s", tt.source, err, tt.wrong)
		case tt.wrong == "" && err != nil:
			t.Errorf("CompileCondition(%s) = %v", tt.source, err)
		case err == nil && !slices.Equal(c.Lists(), tt.names):
			t.Errorf("%s names %v, want %v", tt.source, c.Lists(), tt.names)
		}
	}
}

// TestLists_ThatAreNotThereTighten checks that a missing list is an error of the condition. The
// error makes the decision stricter, in CEL and in Rego.
func TestLists_ThatAreNotThereTighten(t *testing.T) {
	for _, doc := range []string{`{"metadata.to":{"$in":{"list":"gone"}}}`, `{"cel":"intent.metadata.to in list('gone')"}`, `{"rego":"input.intent.metadata.to in input.lists.gone"}`} {
		in := listInput()
		for outcome, want := range map[string]engine.Decision{"allow": engine.Allow, "deny": engine.Deny} {
			rules := []engine.Rule{listRule(doc, outcome)}
			policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
			got := engine.Evaluate(policy, engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition}), in)
			if got.Decision != want || got.ConditionErrors[condition.CauseBroken] != 1 && !strings.Contains(doc, "rego") {
				t.Errorf("%s that is to %s: %v, errors %v, want %v", doc, outcome, got.Decision, got.ConditionErrors, want)
			}
			if slices.ContainsFunc(got.Findings, func(f engine.Finding) bool { return f.Code == engine.CodeRuleAllow }) {
				t.Errorf("%s allows without its list: %v", doc, got.Reasons())
			}
			if _, err := Prepare(samplePolicy(), rules, nil); err == nil || !strings.Contains(err.Error(), "gone") {
				t.Errorf("Prepare of %s without its list = %v, want an error that names it", doc, err)
			}
		}
	}
}

// TestLists_AreNotReadThrough checks that membership in a long list costs no more than in a short
// one. This must hold in Rego, too, where functions are charged by the size of their arguments.
func TestLists_AreNotReadThrough(t *testing.T) {
	items := make([]string, engine.MaxListValues)
	for i := range items {
		items[i] = fmt.Sprintf("payee-%05d", i)
	}
	rule := listRule(`{"rego":"`+strings.Repeat("not input.intent.metadata.to in input.lists.payees; ", 100)+`true"}`, "deny")
	in := listInput()
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	rs := engine.CompileRules([]engine.Rule{rule}, engine.Options{CompileRego: CompileCondition, Lists: condition.Lists{"payees": condition.NewList(items)}})
	if got := engine.Evaluate(policy, rs, in); got.ConditionErrors.Total() != 0 || got.Decision != engine.Deny {
		t.Errorf("Evaluate = %v, errors %v, want a deny without errors", got.Reasons(), got.ConditionErrors)
	}
}

// TestDecision_ExternalEvaluationCore_Lists checks that a core looks in the lists of its export, and that
// it decides nothing while other lists are in force: "a digest of policy, rules and lists".
func TestDecision_ExternalEvaluationCore_Lists(t *testing.T) {
	rules := []engine.Rule{listRule(`{"metadata.to":{"$in":{"list":"payees"}}}`, "deny")}
	policies := []*engine.ActionPolicy{samplePolicy()}
	lists := condition.Lists{"payees": condition.NewList([]string{"bob", "carol"}), "others": condition.NewList([]string{"x"})}
	if _, err := LowerCore(policies, rules, nil); err == nil || !strings.Contains(err.Error(), "payees") {
		t.Errorf("LowerCore without the list = %v, want an error that names it", err)
	}
	files := must.Get(LowerCore(policies, rules, lists))(t)
	for to, want := range map[string]string{"bob": "deny", "dave": "allow"} {
		in := listInput()
		in.Intent.Metadata["to"] = to
		got, _ := askCore(t, files, coreQuestion(t, samplePolicy(), rules, lists, in)).(map[string]any)
		if got["decision"] != want {
			t.Errorf("to %s: the core decides %v, want %s", to, got["decision"], want)
		}
	}
	for name, other := range map[string]condition.Lists{
		"a text fewer":     {"payees": condition.NewList([]string{"bob"})},
		"a text more":      {"payees": condition.NewList([]string{"bob", "carol", "dave"})},
		"an empty list":    {"payees": condition.NewList(nil)},
		"no list":          nil,
		"another list":     {"others": lists["payees"]},
		"two texts as one": {"payees": condition.NewList([]string{`bob","carol`})},
	} {
		if got := askCore(t, files, coreQuestion(t, samplePolicy(), rules, other, listInput())); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", name, got)
		}
	}
	if got := askCore(t, files, coreQuestion(t, samplePolicy(), rules, condition.Lists{"payees": lists["payees"]}, listInput())); got == nil {
		t.Error("a list that no rule looks in changes the digest")
	}
}
