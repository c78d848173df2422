package condition

import (
	"errors"
	"testing"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

func FuzzCondition(f *testing.F) {
	for _, doc := range conditiontest.Seeds() {
		f.Add(doc)
	}
	in := intentWith(nil)
	f.Fuzz(func(t *testing.T, doc string) {
		c, err := Compile(doc, Options{Side: resource.ForBlock})
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || len(bad.Mistakes) == 0 {
				t.Errorf("Compile(%q) = %v, want an *Error", doc, err)
			}
			return
		}
		frame := testFrame(t, in)
		if c.Program == nil || c.ReadsResource || !c.Holds.IsRendered() || !c.Fails.IsRendered() {
			return
		}
		got, err := c.Program.Eval(frame)
		if holds, fails := askTree(t, c.Holds, frame), askTree(t, c.Fails, frame); holds != (err == nil && got) || fails != (err == nil && !got) {
			t.Errorf("%q = %v, %v, and its trees are %v and %v", doc, got, err, holds, fails)
		}
	})
}
