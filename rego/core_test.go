package rego

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// Tests of package rego_test use these, because package examples imports this package.
var (
	AskCore      = askCore
	CoreQuestion = coreQuestion
)

// coreQuestion returns the input of a core in the form in which package core sends it.
func coreQuestion(
	t *testing.T, p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, in *engine.Input,
) ast.Object {
	t.Helper()
	v := must.Get(Input(p, in))(t)
	input, ok := v.(ast.Object)
	if !ok {
		t.Fatalf("Input = %v, want an object", v)
	}
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition, Lists: lists})
	doc := must.Get(json.Marshal(p))(t)
	for name, text := range map[string]string{
		"policy": string(doc), "digest": strconv.Quote(must.Get(engine.Digest(p, set))(t)), "rules_revision": "57", "semantics": strconv.Itoa(engine.Semantics),
	} {
		value := must.Get(ast.ValueFromReader(strings.NewReader(text)))(t)
		input.Insert(ast.StringTerm(name), ast.NewTerm(value))
	}
	return input
}

// askCore returns the core's document, or nil if it is undefined.
func askCore(t *testing.T, files []File, input ast.Value) any {
	t.Helper()
	c, _, err := compileFiles(files, coreSchema())
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, c, "data.writ.core.result", input)
}

// TestLowerCore_IsUndefinedOfWhatItWasNotMadeFor checks that an OPA decides only while its export
// is in force. Version numbers do not tell this, because they repeat after a restore and in another
// store.
func TestLowerCore_IsUndefinedOfWhatItWasNotMadeFor(t *testing.T) {
	p, rules := samplePolicy(), sampleRules()
	rules[0].Name = "a \ufeff byte order mark, and {\"quotes\"} \u2028"
	files := must.Get(LowerCore([]*engine.ActionPolicy{p}, rules, nil))(t)
	in := coreInput(p)
	limit := int64(7)
	for name, change := range map[string]func(p *engine.ActionPolicy){
		"the next version":     func(p *engine.ActionPolicy) { p.Version++ },
		"a version before":     func(p *engine.ActionPolicy) { p.Version-- },
		"another organization": func(p *engine.ActionPolicy) { p.OrganizationID = "rival" },
		"another policy":       func(p *engine.ActionPolicy) { p.PolicyID = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11" },
		"another agent":        func(p *engine.ActionPolicy) { p.AgentID += "x" },
		"other actions":        func(p *engine.ActionPolicy) { p.AllowedActionTypes = []string{"*"} },
		"no actions":           func(p *engine.ActionPolicy) { p.AllowedActionTypes = []string{} },
		"other denied actions": func(p *engine.ActionPolicy) { p.DeniedActionTypes = []string{"sql.*"} },
		"no denied actions":    func(p *engine.ActionPolicy) { p.DeniedActionTypes = nil },
		"more resources":       func(p *engine.ActionPolicy) { p.AllowedResourcePatterns = nil },
		"no blocked resources": func(p *engine.ActionPolicy) { p.BlockedResourcePatterns = nil },
		"another cap":          func(p *engine.ActionPolicy) { p.MaxCostMinor = &limit },
		"no cap":               func(p *engine.ActionPolicy) { p.MaxCostMinor = nil },
		"another currency":     func(p *engine.ActionPolicy) { p.Currency = "CHF" },
		"another status":       func(p *engine.ActionPolicy) { p.Status = engine.StatusRevoked },
	} {
		next := *p
		change(&next)
		if got := askCore(t, files, coreQuestion(t, &next, rules, nil, in)); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", name, got)
		}
	}
	for name, change := range map[string]func(l []engine.Rule) []engine.Rule{
		"a rule's name":      func(l []engine.Rule) []engine.Rule { l[0].Name += "x"; return l },
		"a rule's condition": func(l []engine.Rule) []engine.Rule { l[0].Condition = `{}`; return l },
		"a rule's action":    func(l []engine.Rule) []engine.Rule { l[0].Action = `{"decision":"deny"}`; return l },
		"a rule's priority":  func(l []engine.Rule) []engine.Rule { l[0].Priority++; return l },
		"an inactive rule":   func(l []engine.Rule) []engine.Rule { l[0].IsActive = false; return l },
		"a rule more":        func(l []engine.Rule) []engine.Rule { return append(l, l[0]) },
		"a rule fewer":       func(l []engine.Rule) []engine.Rule { return l[1:] },
		"no rules":           func([]engine.Rule) []engine.Rule { return nil },
	} {
		if got := askCore(t, files, coreQuestion(t, p, change(slices.Clone(rules)), nil, in)); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", name, got)
		}
	}
	question := coreQuestion(t, p, rules, nil, in)
	for _, member := range []string{"policy", "digest", "rules_revision", "intent"} {
		if got := askCore(t, files, question.Diff(ast.NewObject(ast.Item(ast.StringTerm(member), ast.NullTerm())))); got != nil {
			t.Errorf("no %s: the core decides %v, want nothing", member, got)
		}
	}
	question.Insert(ast.StringTerm("digest"), ast.StringTerm("sha256:"+strings.Repeat("0", 64)))
	other := *in.Intent
	other.PolicyID = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11"
	for name, input := range map[string]ast.Value{
		"another digest": question,
		"another intent": coreQuestion(t, p, rules, nil, &engine.Input{Intent: &other}),
		"nothing":        ast.NewObject(),
	} {
		if got := askCore(t, files, input); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", name, got)
		}
	}
}

// TestLowerCore_DecidesWhereNothingThatDecidesDiffers checks that a change needs no new export if
// it affects neither a decision nor a reason.
func TestLowerCore_DecidesWhereNothingThatDecidesDiffers(t *testing.T) {
	p, rules := samplePolicy(), sampleRules()
	p.BlockedResourcePatterns = nil
	files := must.Get(LowerCore([]*engine.ActionPolicy{p}, rules, nil))(t)
	in := coreInput(p)
	for name, change := range map[string]func(p *engine.ActionPolicy, l []engine.Rule){
		"nothing":            func(*engine.ActionPolicy, []engine.Rule) {},
		"updated_at":         func(p *engine.ActionPolicy, _ []engine.Rule) { p.UpdatedAt = p.UpdatedAt.Add(time.Hour) },
		"an empty list":      func(p *engine.ActionPolicy, _ []engine.Rule) { p.BlockedResourcePatterns = []string{} },
		"a rule's id":        func(_ *engine.ActionPolicy, l []engine.Rule) { l[3].ID += "x" },
		"a rule's updatedAt": func(_ *engine.ActionPolicy, l []engine.Rule) { l[0].UpdatedAt = time.Now() },
		"a description":      func(_ *engine.ActionPolicy, l []engine.Rule) { l[0].Description += "x" },
		"the order given":    func(_ *engine.ActionPolicy, l []engine.Rule) { slices.Reverse(l) },
	} {
		next, list := *p, slices.Clone(rules)
		change(&next, list)
		if got := askCore(t, files, coreQuestion(t, &next, list, nil, in)); got == nil {
			t.Errorf("%s differs: the core decides nothing", name)
		}
	}
}

// coreInput returns an intent that names policy p.
func coreInput(p *engine.ActionPolicy) *engine.Input {
	return &engine.Input{Intent: &engine.Intent{
		IntentID: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", PolicyID: p.PolicyID, AgentID: "team-a/x", ActionType: "deploy", Resource: "prod/web",
		IssuedAt: "2026-01-02T00:00:00Z",
	}}
}

// TestLowerCore_EarlierExportsDoNotMix checks that an earlier export in the same OPA has no effect.
func TestLowerCore_EarlierExportsDoNotMix(t *testing.T) {
	lax, strict := samplePolicy(), samplePolicy()
	lax.AllowedActionTypes, lax.DeniedActionTypes, lax.BlockedResourcePatterns = []string{"*"}, nil, nil
	strict.Version++
	strict.AllowedActionTypes = []string{"sql.read"}
	before := must.Get(LowerCore([]*engine.ActionPolicy{lax}, nil, nil))(t)
	now := must.Get(LowerCore([]*engine.ActionPolicy{strict}, nil, nil))(t)
	both := slices.Clone(now)
	for _, f := range before {
		both = append(both, File{Name: "old/" + f.Name, Source: f.Source})
	}
	in := coreInput(strict)
	got, _ := askCore(t, both, coreQuestion(t, strict, nil, nil, in)).(map[string]any)
	if got["decision"] != "deny" {
		t.Errorf("beside an earlier export the core decides %v, want deny", got)
	}
}

func TestLowerCore_Refuses(t *testing.T) {
	other, broken := samplePolicy(), samplePolicy()
	other.PolicyID, other.OrganizationID = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11", "rival"
	broken.PolicyID = "../../etc"
	for name, tc := range map[string]struct {
		policies []*engine.ActionPolicy
		rules    []engine.Rule
		want     string
	}{
		"nothing":           {nil, nil, "no policy"},
		"one twice":         {[]*engine.ActionPolicy{samplePolicy(), samplePolicy()}, nil, "twice"},
		"two organizations": {[]*engine.ActionPolicy{samplePolicy(), other}, nil, "acme and rival"},
		"an invalid policy": {[]*engine.ActionPolicy{broken}, nil, "policy_id"},
		"a rule that Rego cannot say": {[]*engine.ActionPolicy{samplePolicy()},
			[]engine.Rule{sampleRule("rule-x", "x", `{"cel":"intent.metadata.a == intent.metadata.b"}`, `{"decision":"deny"}`)}, "rule-x"},
	} {
		if files, err := LowerCore(tc.policies, tc.rules, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: LowerCore = %d files, %v, want an error with %q", name, len(files), err, tc.want)
		}
	}
}
