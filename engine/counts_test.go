package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
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

// TestRuleSet_ACounterThatIsNotKnownTightens checks that a rule denies while its counter is being filled, and says
// until when, but not if another part of its condition is false.
func TestRuleSet_ACounterThatIsNotKnownTightens(t *testing.T) {
	const counter = `{"count":{"by":["agent_id"],"window":"1h"},"gt":1000}`
	for text, want := range map[string]Decision{
		counter: Deny,
		`{"all":[` + counter + `,{"field":"metadata.env","op":"eq","value":"prod"}]}`: Allow,
	} {
		r := Rule{ID: "r", Name: "r", IsActive: true, Action: `{"decision":"deny","reason":"no"}`, Condition: text}
		set := CompileRules([]Rule{r}, Options{})
		e := testEvaluation(t, &Intent{IntentID: "i", AgentID: "a", ActionType: "pay", Resource: "x", Metadata: map[string]string{"env": "test"}})
		e.SetCounts([]condition.Count{{Counter: set.Counters()[0], N: 1, Until: time.Date(2026, 11, 28, 16, 30, 0, 0, time.UTC)}})
		findings, errs := set.decide(e)
		got := Allow
		if len(findings) > 0 {
			got = findings[0].Outcome
		}
		if got != want || errs.Total() > 1 {
			t.Errorf("%s: %v %+v, want %v", text, got, findings, want)
		}
		if want == Deny && !strings.Contains(findings[0].Reason, "is being filled from the history, until about 2026-11-28T16:30:00Z") {
			t.Errorf("the reason is %q, want one that says until when", findings[0].Reason)
		}
	}
}
