package engine

import (
	"errors"
	"testing"
)

func FuzzRules(f *testing.F) {
	g := newGenerator(3)
	for range 50 {
		f.Add(g.Condition())
	}
	for _, doc := range []string{
		`{}`, `{"$or":[{"action_type":"a*"},{"metadata.x":{"$nin":["1"]}}]}`,
		`{"all":[{"field":"cost","op":"exists","value":false}]}`, `{"rego":"true"}`,
		`{"metadata.\u0000\ud83d\ude00":{"$regex":"\\pL{3,5}"}}`, `{"resource":{"$glob":["{a,b}/**","\\*"]}}`,
		`{"cel":"intent.metadata.exists(k, k.matches('^a')) ? has(intent.cost) : !(5 > intent.cost.amount_minor)"}`,
	} {
		f.Add(doc)
	}
	in := intentWith(nil)
	f.Fuzz(func(t *testing.T, doc string) {
		rule := Rule{ID: "r", Name: "r", Condition: doc, Action: `{"decision":"deny"}`, IsActive: true}
		if _, err := CompileRule(rule, stubOptions()); err != nil {
			var inv *InvalidError
			if !errors.As(err, &inv) || len(inv.Fields) == 0 {
				t.Errorf("CompileRule(%q) = %v, want an *InvalidError", doc, err)
			}
			return
		}
		rs := CompileRules([]Rule{rule}, stubOptions())
		frame := testEvaluation(t, in)
		findings, failed := rs.decide(frame)
		if plain, plainFailed := withoutIndex(rs).decide(frame); len(plain) != len(findings) || plainFailed != failed {
			t.Errorf("%q: the index changes %d findings to %d, %d errors to %d", doc, len(plain), len(findings), plainFailed, failed)
		}
	})
}
