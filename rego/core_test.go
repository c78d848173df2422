package rego

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine"
	"writ/examples"
)

// coreQuestion is the input of a core, as package core sends it.
func coreQuestion(t *testing.T, p *engine.ActionPolicy, rules []engine.Rule, in *engine.Input) ast.Object {
	t.Helper()
	v, err := Input(p, in)
	if err != nil {
		t.Fatal(err)
	}
	input, ok := v.(ast.Object)
	if !ok {
		t.Fatalf("Input = %v, want an object", v)
	}
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition})
	input.Insert(ast.StringTerm("digests"), ast.ObjectTerm(
		ast.Item(ast.StringTerm("policy"), ast.StringTerm(engine.DigestPolicy(p))),
		ast.Item(ast.StringTerm("rules"), ast.StringTerm(set.Digest()))))
	return input
}

// askCore returns the core's document, or nil where it is undefined.
func askCore(t *testing.T, files []File, input ast.Value) any {
	t.Helper()
	c, _, err := compileFiles(files, coreSchema())
	if err != nil {
		t.Fatal(err)
	}
	q, err := prepare(c, ast.MustParseRef("data.writ.core.result"), 100)
	if err != nil {
		t.Fatal(err)
	}
	v, err := q.ask(input, newBudget(nil, time.Now, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return nil
	}
	out, err := ast.JSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLowerCore_DecidesTheExamplesAsTheEngineDoes(t *testing.T) {
	set, err := examples.Load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := LowerCore(slices.Collect(maps.Values(set.Policies)), set.Rules)
	if err != nil {
		t.Fatalf("LowerCore = %v", err)
	}
	for i, want := range set.Cases {
		in := &engine.Input{Intent: set.Intents[i]}
		got, _ := askCore(t, files, coreQuestion(t, set.Policies[want.Policy], set.Rules, in)).(map[string]any)
		if got == nil || got["decision"] != want.Want.String() || len(got) != 2 {
			t.Errorf("%s/%s: the core decides %v, want %v", want.Policy, want.Intent, got, want.Want)
		}
	}
}

// An OPA that holds anything but what is in force decides nothing.
func TestLowerCore_IsUndefinedOfWhatItWasNotMadeFor(t *testing.T) {
	p, rules := samplePolicy(), sampleRules()
	files, err := LowerCore([]*engine.ActionPolicy{p}, rules)
	if err != nil {
		t.Fatal(err)
	}
	in := &engine.Input{Intent: &engine.Intent{
		IntentID: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", PolicyID: p.PolicyID, AgentID: "team-a/x", ActionType: "deploy", Resource: "prod/web",
		IssuedAt: "2026-01-02T00:00:00Z",
	}}
	if got := askCore(t, files, coreQuestion(t, p, rules, in)); got == nil {
		t.Fatal("the core decides nothing of what it was made for")
	}
	changed := func(change func(*engine.ActionPolicy)) *engine.ActionPolicy {
		next := *p
		change(&next)
		return &next
	}
	other := *in
	intent := *in.Intent
	intent.PolicyID = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11"
	other.Intent = &intent
	for name, input := range map[string]ast.Value{
		"the next version":     coreQuestion(t, changed(func(p *engine.ActionPolicy) { p.Version++ }), rules, in),
		"a version before":     coreQuestion(t, changed(func(p *engine.ActionPolicy) { p.Version-- }), rules, in),
		"another content":      coreQuestion(t, changed(func(p *engine.ActionPolicy) { p.AllowedActionTypes = []string{"*"} }), rules, in),
		"another organization": coreQuestion(t, changed(func(p *engine.ActionPolicy) { p.OrganizationID = "rival" }), rules, in),
		"another policy":       coreQuestion(t, p, rules, &other),
		"fewer rules":          coreQuestion(t, p, rules[1:], in),
		"no rules":             coreQuestion(t, p, nil, in),
		"no digests": func() ast.Value {
			v, err := Input(p, in)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}(),
		"nothing": ast.NewObject(),
	} {
		if got := askCore(t, files, input); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", name, got)
		}
	}
}

// What an earlier export left in the same OPA neither decides nor adds to what
// is decided.
func TestLowerCore_EarlierExportsDoNotMix(t *testing.T) {
	lax, strict := samplePolicy(), samplePolicy()
	lax.AllowedActionTypes, lax.DeniedActionTypes, lax.BlockedResourcePatterns = []string{"*"}, nil, nil
	strict.Version++
	strict.AllowedActionTypes = []string{"sql.read"}
	before, err := LowerCore([]*engine.ActionPolicy{lax}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now, err := LowerCore([]*engine.ActionPolicy{strict}, nil)
	if err != nil {
		t.Fatal(err)
	}
	both := slices.Clone(now)
	for _, f := range before {
		both = append(both, File{Name: "old/" + f.Name, Source: f.Source})
	}
	in := &engine.Input{Intent: &engine.Intent{
		IntentID: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", PolicyID: strict.PolicyID, AgentID: "team-a/x", ActionType: "deploy", Resource: "prod/web",
		IssuedAt: "2026-01-02T00:00:00Z",
	}}
	got, _ := askCore(t, both, coreQuestion(t, strict, nil, in)).(map[string]any)
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
		if files, err := LowerCore(tc.policies, tc.rules); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: LowerCore = %d files, %v, want an error with %q", name, len(files), err, tc.want)
		}
	}
}
