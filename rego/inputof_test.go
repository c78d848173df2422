package rego

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestTests_DeriveThePlainInput compares data.writ.input.of of an export, as a plain OPA evaluates
// it, with the input that writ derives. The function is defined for the plain intents.
func TestTests_DeriveThePlainInput(t *testing.T) {
	p, rules := permissive(), countingRules()
	files := must.Get(Lower(p, rules, nil))(t)
	counters := engine.CompileRules(rules, engine.Options{}).Counters()
	files = append(files, must.Get(exportedInput(p, counters))(t))
	intents := map[string]any{}
	derived := map[string]any{}
	plain := map[string]bool{}
	g, resources := newGenerator(7), plainResources(400)
	for i := range 3000 {
		in := g.intent()
		in.IntentID = strings.Repeat("0", 3) + string(rune('0'+i%10)) + in.IntentID[4:]
		if g.chance(50) {
			in.Resource = resources[i%len(resources)]
		}
		in.AgentID = g.one("bot", "Team-A/Bot", "ＢＯＴ", "straße", "E 9")
		in.IssuedAt = g.one("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1230Z", "2026-01-02T03:04:05.123456789+02:00")
		in.Metadata = []map[string]string{nil, {}, {"env": "prod"}, {"env": " x"}, {"to": "a@b.example"}, {"a": "x y", "b": "1.5"}, {"n": ""}}[g.r.IntN(7)]
		if in.Validate() != nil {
			continue
		}
		name := marshal(in)
		intents[name] = must.Get(ast.JSON(intentTerm(in, ast.StringTerm(in.AgentID), ast.StringTerm(in.Resource)).Value))(t)
		v := must.Get(derivedOffline(policyTerm(p), &engine.Input{Intent: in, Counts: engine.Alone(counters, in)}))(t)
		derived[name] = must.Get(ast.JSON(v))(t)
		plain[name] = isPlain(in.Resource) && !strings.ContainsAny(in.AgentID, "Ｂß") && !slices.ContainsFunc(slices.Collect(maps.Values(in.Metadata)),
			func(s string) bool {
				return s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, condition.NotPlain)
			})
	}
	options := []func(*opa.Rego){opa.Input(intents),
		opa.Query(`x := {name: of | some name, intent in input; of := data.writ.input.of(intent)}`)}
	for _, f := range files {
		options = append(options, opa.Module(f.Name, f.Source))
	}
	results := must.Get(opa.New(options...).Eval(t.Context()))(t)
	got, _ := results[0].Bindings["x"].(map[string]any)
	for name := range intents {
		if _, ok := got[name]; ok != plain[name] {
			t.Errorf("%s is plain: %v, and its input is defined: %v", name, plain[name], ok)
		}
		if diff := cmp.Diff(derived[name], got[name]); plain[name] && diff != "" {
			t.Errorf("the inputs of %s differ (-Go +Rego):\n%s", name, diff)
		}
	}
	if len(got) < 300 || len(intents)-len(got) < 300 {
		t.Errorf("%d of %d inputs are defined: want more of both", len(got), len(intents))
	}
}
