package reference

import "testing"

// TestGenerator checks that everything in Named occurs in at least 2 % of the cases.
func TestGenerator(t *testing.T) {
	g := NewGenerator(1)
	counts := map[string]int{}
	const n = 5000
	for range n {
		c := g.Next()
		o, err := Evaluate(c)
		if err != nil {
			counts["refused"]++
			continue
		}
		Count(counts, o)
	}
	for _, k := range append(Named, "refused") {
		t.Logf("%-30s %6.2f %%", k, 100*float64(counts[k])/n)
		if k != "refused" && counts[k] < n/50 {
			t.Errorf("%s occurs in fewer than 2 %% of cases", k)
		}
	}
}
