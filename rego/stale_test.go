package rego

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine"
	"writ/internal/must"
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

// TestLower_DecidesByNoStaleReadings changes the resource in the input of another intent. The
// decision must be that of the changed intent, or deny.
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
