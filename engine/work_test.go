package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// costliest is a regular expression with nearly as many instructions as a condition may have. It
// matches only texts with a z.
const costliest = `(.*.*[ab]){1,82}z$`

// TestDecision_Rules_WorkTogetherIsBounded checks that all conditions together do not occupy a
// core for seconds. A condition is bounded when its rule is created, but only the plan bounds the
// number of rules.
func TestDecision_Rules_WorkTogetherIsBounded(t *testing.T) {
	long := intentWith(func(in *Intent) {
		in.Resource = "https://h.example/" + strings.Repeat("a%2fb", 600) + "#" + strings.Repeat("b", 1000)
		in.Metadata = make(map[string]string)
		for i := range condition.MaxMetadataKeys {
			in.Metadata[fmt.Sprint("key", i)] = strings.Repeat("v", 100)
		}
	})
	const (
		regex    = `{"resource":{"$regex":"` + costliest + `"}}`
		computed = `{"cel":"(intent.resource + 'x').matches('` + costliest + `')"}`
		macro    = `{"cel":"intent.metadata.exists(k, intent.metadata.exists(j, j == 'x'))"}`
		globs    = `{"resource":{"$glob":["**a*x*1*","**a*x*2*","**a*x*3*","**a*x*4*","**a*x*5*","**a*x*6*","**a*x*7*","**a*x*8*"]}}`
	)
	for name, tc := range map[string]struct {
		condition string
		rules     int
	}{
		"regex": {regex, 100}, "regex of a computed text": {computed, 100}, "macro": {macro, 1000}, "globs": {globs, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			asked := mustCondition(t, tc.condition)
			for _, outcome := range []Decision{Deny, Allow} {
				rs := &RuleSet{}
				for i := range tc.rules {
					rs.rules = append(rs.rules, newCompiledRule(stored(fmt.Sprint(i), outcome.String(), tc.condition, 1), action{decision: outcome}, asked))
				}
				rs.index = newRuleIndex(rs.rules)
				f := testEvaluation(t, long)
				findings, failed := rs.decide(f)
				if failed[condition.CauseWork] == 0 || failed[condition.CauseWork] != failed.Total() || len(findings) > 0 != (outcome != Allow) {
					t.Fatalf("decide with rules that say %v = %v, errors %v; want such of work alone, which only tighten", outcome, findings, failed)
				}
			}
		})
	}
}

// TestWork_IsEnoughForOneCondition checks that the budget covers the most expensive condition on
// the longest resource, with five readings.
func TestWork_IsEnoughForOneCondition(t *testing.T) {
	raw := "https://h.example/" + strings.Repeat("a", 1000) + "/./#"
	raw += strings.Repeat("b", condition.MaxText-len(raw))
	in := intentWith(func(in *Intent) { in.Resource = raw })
	f := testEvaluation(t, in)
	if n := f.Readings().Len(resource.ForBlock); n != 5 {
		t.Fatalf("Read = %d readings, want 5", n)
	}
	rs := CompileRules([]Rule{stored("a", "deny", `{"resource":{"$regex":"`+costliest+`"}}`, 1)}, Options{})
	for range 2 { // each evaluation has the whole budget
		if findings, failed := rs.decide(f); len(findings) > 0 || failed.Total() > 0 {
			t.Errorf("decide = %v, errors %v, want neither", findings, failed)
		}
	}
}

// TestWork_IsTheSameEachTime checks that a macro that ends early does the same work each time. So
// a condition for which the budget is just enough is decided the same each time.
func TestWork_IsTheSameEachTime(t *testing.T) {
	in := intentWith(func(in *Intent) {
		in.Metadata = map[string]string{"key2x": "hit"}
		for i := range 50 {
			in.Metadata[fmt.Sprint("key", i)] = strings.Repeat("v", 1000)
		}
	})
	rs := CompileRules([]Rule{stored("a", "deny", `{"cel":"!intent.metadata.exists(k, intent.metadata[k].matches('hit|[ab]{3}z'))"}`, 1)}, Options{})
	first := 0
	for i := range 20 {
		f := testEvaluation(t, in)
		if findings, failed := rs.decide(f); len(findings) > 0 || failed.Total() > 0 {
			t.Fatalf("decide = %v, errors %v, want neither", findings, failed)
		}
		if i == 0 {
			first = f.Work.Left()
		}
		if f.Work.Left() != first {
			t.Fatalf("the work of the same intent is %d and %d", first, f.Work.Left())
		}
	}
}

// offers is a turn that counts how often it is offered.
type offers int

func (o *offers) Yield() time.Duration { *o++; return time.Second }

func (o *offers) Pause() bool  { return false }
func (o *offers) Resume() bool { return false }

// TestDecision_Bounds_LongConditionsOfferTheirTurn checks that a long condition offers its turn
// repeatedly, and that the offers do not change the decision. A short condition never offers its
// turn.
func TestDecision_Bounds_LongConditionsOfferTheirTurn(t *testing.T) {
	wide := intentWith(func(in *Intent) {
		in.Metadata = make(map[string]string)
		for i := range condition.MaxMetadataKeys {
			in.Metadata[fmt.Sprint("key", i)] = "v"
		}
	})
	for doc, never := range map[string]bool{
		`{"cel":"intent.metadata.exists(k, intent.metadata.exists(j, j == 'x'))"}`: false,
		`{"metadata.key1":{"$gt":"w"}}`:                                            true,
	} {
		var rules []Rule
		for i := range 100 {
			rules = append(rules, stored(fmt.Sprint(i), "deny", doc, 1))
		}
		rs, f := CompileRules(rules, Options{}), testEvaluation(t, wide)
		alone, failed := rs.decide(f)
		done := f.Work.Left()
		var n offers
		f.in.Turn = &n
		shared, failedToo := rs.decide(f)
		if !cmp.Equal(alone, shared) || failed != failedToo || f.Work.Left() != done {
			t.Errorf("%s: decide with a turn = %v, %d errors, %d steps; without %v, %d, %d",
				doc, shared, failedToo, f.Work.Left(), alone, failed, done)
		}
		if (n == 0) != never {
			t.Errorf("%s: offered %d times; want never: %t", doc, n, never)
		}
	}
}
