package rego

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// testedIntents returns intents by name. Two of the names become the same name in Rego.
func testedIntents() map[string]*engine.Input {
	named := map[string]func(*engine.Input){
		"waits-for-approval": func(*engine.Input) {},
		"waits for approval": func(in *engine.Input) { in.Intent.Cost.AmountMinor = 10 },
		"on \"Sunday\"":      func(in *engine.Input) { in.Intent.IssuedAt = "2026-02-01T12:00:00Z" },
		"killed":             func(in *engine.Input) { in.Agent = engine.AgentDisabled },
		"stopped":            func(in *engine.Input) { in.Stopped = true },
		"metered": func(in *engine.Input) {
			in.Usage.Exceeded, in.RequireRegistered, in.Agent = true, true, engine.AgentUnregistered
		},
		"disguised": func(in *engine.Input) {
			in.Intent.Resource, in.Intent.Metadata["note"] = "prod/x/..%2fsecrets/key", "<&>\x7f\u2028\U0001f600\\"
		},
	}
	intents := make(map[string]*engine.Input)
	for name, change := range named {
		intents[name] = evaluationInput()
		change(intents[name])
	}
	return intents
}

func TestTests_PassInOPA(t *testing.T) {
	files := must.Get(Tests(samplePolicy(), sampleRules(), nil, testedIntents()))(t)
	if names := []string{files[0].Name, files[1].Name}; len(files) != 4+len(sampleRules()) || !cmp.Equal(names, []string{"data.json", "policy_test.rego"}) {
		t.Fatalf("Tests writes %d files, %v", len(files), names)
	}
	if out, err := format.Source(files[1].Name, []byte(files[1].Source)); err != nil || string(out) != files[1].Source {
		t.Errorf("opa fmt of the tests = %v and\n%s\nwant\n%s", err, out, files[1].Source)
	}
	results, err := RunTests(t.Context(), samplePolicy(), sampleRules(), nil, testedIntents(), files[1:2])
	if err != nil || len(results) != len(testedIntents()) {
		t.Fatalf("RunTests = %v, %v, want a result of each of %d intents", results, err, len(testedIntents()))
	}
	for _, r := range results {
		if r.Outcome != TestPassed {
			t.Errorf("%s: %s %s", r.Name, r.Outcome, r.Message)
		}
	}
	other := strings.Replace(files[1].Source, `"rule.approval_required"`, `"rule.deny"`, 1)
	results, err = RunTests(t.Context(), samplePolicy(), sampleRules(), nil, testedIntents(), []File{{Name: "x_test.rego", Source: other}})
	if failed := slices.DeleteFunc(results, func(r TestResult) bool { return r.Outcome == TestPassed }); err != nil || len(failed) != 1 {
		t.Errorf("with another code %v fail, %v, want one", failed, err)
	}
}

// TestTests_DataIsTheInput checks that an intent in data.json is the input of the module. The intents
// have no time of the decision, so they are decided at their issued_at, and the input says so.
func TestTests_DataIsTheInput(t *testing.T) {
	intents := testedIntents()
	files := must.Get(Tests(samplePolicy(), nil, nil, intents))(t)
	data := ast.MustParseTerm(files[0].Source)
	for _, name := range slices.Sorted(maps.Keys(intents)) {
		in := *intents[name]
		in.DecidedAt = in.Intent.Issued()
		want := with(must.Get(Input(samplePolicy(), &in))(t),
			`{"derived_from": {"decided_at": {"issued_at": `+marshal(in.Intent.IssuedAt)+`}}}`)
		if got, err := data.Value.Find(ast.Ref{ast.StringTerm("intents"), ast.StringTerm(name)}); err != nil || got.Compare(want) != 0 {
			t.Errorf("data.intents[%q] = %v, %v, want %v", name, got, err, want)
		}
		alone := must.Get(InputJSON(samplePolicy(), intents[name]))(t)
		if got := ast.MustParseTerm(string(alone)).Value; got.Compare(want) != 0 {
			t.Errorf("InputJSON of %s = %v, want %v", name, got, want)
		}
	}
	if rules, err := data.Value.Find(ast.MustParseRef("x.rules")[1:]); err != nil || rules.Compare(ast.NewArray()) != 0 {
		t.Errorf("data.rules without rules = %v, %v, want []", rules, err)
	}
}

func TestTests_AnIntentThatCannotBeRead(t *testing.T) {
	in := evaluationInput()
	in.Intent.Resource = "https://h/%ff"
	if _, err := Tests(samplePolicy(), nil, nil, map[string]*engine.Input{"bad": in}); err == nil || !strings.HasPrefix(err.Error(), "intent bad: reading the resource: ") {
		t.Errorf("Tests = %v, want an error that names the intent", err)
	}
}
