package engine

import (
	"errors"
	"testing"

	"writ.example/writ/engine/condition/conditiontest"
)

func FuzzRules(f *testing.F) {
	for _, doc := range conditiontest.Seeds() {
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
