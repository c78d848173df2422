package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRuleSet_CountersAreJoined checks that a set has each counter once, with the bounds of all
// rules and the revision of the oldest rule. That revision never returns to an earlier value.
func TestRuleSet_CountersAreJoined(t *testing.T) {
	rule := func(id string, revision int64, limit int) Rule {
		r := Rule{ID: id, Name: id, IsActive: true, Action: `{"decision":"deny","reason":"no"}`}
		r.Condition = fmt.Sprintf(`{"count":{"by":["agent_id"],"window":"1h"},"gt":%d}`, limit)
		r.Revision = revision
		return r
	}
	off := rule("off", 1, 1)
	off.IsActive = false
	for name, tt := range map[string]struct {
		rules    []Rule
		revision int64
		bounds   []int64
	}{
		"one":                   {[]Rule{rule("a", 5, 20)}, 5, []int64{20}},
		"two":                   {[]Rule{rule("a", 5, 20), rule("b", 9, 10)}, 5, []int64{10, 20}},
		"with one bound":        {[]Rule{rule("b", 9, 10), rule("a", 5, 10)}, 5, []int64{10}},
		"once the first is off": {[]Rule{off, rule("b", 9, 10)}, 9, []int64{10}},
	} {
		first := CompileRules(tt.rules, Options{})
		for _, set := range []*RuleSet{first, first.Update(tt.rules, Options{})} {
			if c := set.Counters(); len(c) != 1 || c[0].Revision != tt.revision || !cmp.Equal(c[0].Bounds, tt.bounds) {
				t.Errorf("%s: counters %+v, want the revision %d and bounds %v", name, c, tt.revision, tt.bounds)
			}
		}
	}
}
