package bench

import (
	"strings"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// TestAttacks_AreAccepted checks that an organization may have the rules of each attack. A refused rule would not be
// measured.
func TestAttacks_AreAccepted(t *testing.T) {
	n := 0
	for _, a := range attacks() {
		for _, rule := range a.rules {
			if strings.HasPrefix(rule, `{"rego":`) { // TestScript/bench registers one
				continue
			}
			n++
			if _, err := condition.Compile(rule, condition.Options{Side: resource.ForBlock}); err != nil {
				t.Fatalf("%s: %v: %s", a.name, err, rule)
			}
		}
	}
	if n == 0 {
		t.Error("no attack has a rule")
	}
}
