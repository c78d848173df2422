package rego

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// closedRules returns rules that deny or ask for approval. None of them matches the test's intent.
func closedRules() []engine.Rule {
	return []engine.Rule{
		sampleRule("1", "1", `{"metadata.env":{"$ne":"prod"}}`, `{"decision":"deny"}`),
		sampleRule("2", "2", `{"cost.amount_minor":{"$gt":9000}}`, `{"decision":"approval_required"}`),
		sampleRule("3", "3", `{"rego":"input.policy.status == \"active\"\ninput.intent.metadata.env == \"dr\""}`, `{"decision":"deny"}`),
		sampleRule("4", "4", `{"cel":"intent.issued_at > timestamp('2027-01-01T00:00:00Z') && agent.id != 'x'"}`, `{"decision":"deny"}`),
		sampleRule("5", "5", `{"resource":"prod/secrets/**"}`, `{"decision":"deny"}`),
	}
}

// asPlainOPA returns a function that asks an OPA for the decision. The OPA does not run in its
// strict mode. The function returns nil if the decision is undefined.
func asPlainOPA(t *testing.T, p *engine.ActionPolicy, rules []engine.Rule) func(input ast.Value) any {
	t.Helper()
	files := must.Get(Lower(p, rules, nil))(t)
	options := []func(*opa.Rego){opa.Query("data." + PackageName(p.PolicyID) + ".decision")}
	for _, f := range files {
		options = append(options, opa.Module(f.Name, f.Source))
	}
	prepared := must.Get(opa.New(options...).PrepareForEval(t.Context()))(t)
	return func(input ast.Value) any {
		var with []opa.EvalOption
		if input != nil {
			with = append(with, opa.EvalParsedInput(input))
		}
		results, err := prepared.Eval(t.Context(), with...)
		if err != nil {
			return err
		}
		if len(results) == 0 {
			return nil
		}
		return results[0].Expressions[0].Value
	}
}

// permissive returns a policy whose own checks pass for every intent.
func permissive() *engine.ActionPolicy {
	p := samplePolicy()
	p.AgentID, p.AllowedActionTypes, p.AllowedResourcePatterns = "*", []string{"*"}, []string{"**"}
	p.DeniedActionTypes, p.BlockedResourcePatterns, p.MaxCostMinor, p.Currency = nil, nil, nil, ""
	return p
}

// TestLower_FailsClosed checks that an exported module allows nothing if writ would not make its
// input. Such an input lacks a member, has a member of another type, or is not an object.
func TestLower_FailsClosed(t *testing.T) {
	in := evaluationInput()
	in.Intent.Resource = "prod/{db}" // a plain resource needs no readings
	in.Intent.Cost.AmountMinor = 10
	in.Intent.Metadata = map[string]string{"env": "prod", "to": "a:b"} // a plain value needs no readings
	// The members that writ may leave out, and each of several readers.
	mayLack := []string{"intent.cost", "intent.metadata", "intent.metadata.env", "intent.metadata.to", "readings.blocked.0.readers.0", "readings.blocked.0.readers.1", "values.to.blocked.0", "values.to.blocked.1"}
	lists := sampleRule("7", "7", `{"metadata.env":{"$some":["dr"]}}`, `{"decision":"deny"}`)
	for name, tt := range map[string]struct {
		policy *engine.ActionPolicy
		rules  []engine.Rule
	}{
		"checks":                {samplePolicy(), nil},
		"checks and rules":      {samplePolicy(), closedRules()},
		"rules alone":           {permissive(), closedRules()},
		"neither":               {permissive(), nil},
		"an allowance by rules": {permissive(), append(closedRules(), sampleRule("6", "6", `{"metadata.env":"prod"}`, `{"decision":"allow"}`))},
		"lists":                 {permissive(), append(closedRules(), lists)},
	} {
		t.Run(name, func(t *testing.T) {
			decide := asPlainOPA(t, tt.policy, tt.rules)
			whole := must.Get(Input(tt.policy, in))(t)
			if got := decide(whole); got != "allow" {
				t.Fatalf("decision of what writ makes = %v, want allow", got)
			}
			refuse := func(what string, input ast.Value) {
				t.Helper()
				if got := decide(input); got == "allow" {
					t.Errorf("%s: allow", what)
				}
			}
			refuse("no input", nil)
			for _, other := range otherValues(nil) {
				refuse("an input that is "+other.String(), other)
			}
			tried := 0
			for path, changed := range broken(t, whole) {
				ofValues := strings.HasPrefix(path, "values") && (!slices.Contains(tt.rules, lists) || strings.HasPrefix(path, "values.env"))
				ofNames := strings.HasPrefix(path, "agent.called") || strings.HasPrefix(path, "agent.names")
				if slices.Contains(mayLack, path) || ofNames && len(tt.rules) == 0 || ofValues {
					continue
				}
				tried++
				refuse(path, changed)
			}
			if tried < 150 {
				t.Errorf("%d inputs were tried, want more", tried)
			}
		})
	}
}

// otherValues returns one value of each type other than v's type.
func otherValues(v ast.Value) (all []ast.Value) {
	for _, text := range []string{"null", "true", "7", `"text"`, "[]", `["text"]`, "{}", `{"a": "text"}`} {
		other := ast.MustParseTerm(text).Value
		if v == nil || ast.ValueName(other) != ast.ValueName(v) {
			all = append(all, other)
		}
	}
	return all
}

// broken returns variants of an object. In each variant one member at any depth is missing or has
// another type. If a member is missing, the key of the variant is the member's path.
func broken(t *testing.T, whole ast.Value) map[string]ast.Value {
	t.Helper()
	all := make(map[string]ast.Value)
	var visit func(path []string, v ast.Value, with func(ast.Value) ast.Value)
	visit = func(path []string, v ast.Value, with func(ast.Value) ast.Value) {
		name := strings.Join(path, ".")
		if name != "" {
			all[name] = with(nil)
			for _, other := range otherValues(v) {
				all[fmt.Sprintf("%s is %v", name, other)] = with(other)
			}
		}
		switch v := v.(type) {
		case ast.Object:
			v.Foreach(func(key, value *ast.Term) {
				visit(append(slices.Clone(path), string(key.Value.(ast.String))), value.Value, func(changed ast.Value) ast.Value {
					rest := ast.NewObject()
					v.Foreach(func(k, value *ast.Term) {
						switch {
						case !k.Equal(key):
							rest.Insert(k, value)
						case changed != nil:
							rest.Insert(k, ast.NewTerm(changed))
						}
					})
					return with(rest)
				})
			})
		case *ast.Array:
			for i := range v.Len() {
				visit(append(slices.Clone(path), fmt.Sprint(i)), v.Elem(i).Value, func(changed ast.Value) ast.Value {
					var items []*ast.Term
					for k := range v.Len() {
						switch {
						case k != i:
							items = append(items, v.Elem(k))
						case changed != nil:
							items = append(items, ast.NewTerm(changed))
						}
					}
					return with(ast.NewArray(items...))
				})
			}
		}
	}
	visit(nil, whole, func(v ast.Value) ast.Value { return v })
	if _, ok := all["intent.action_type"]; !ok {
		t.Fatalf("%d inputs are broken, none lacks its action type: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	return all
}
