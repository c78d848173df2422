package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/engine/resource"
)

// dearest is a regular expression of nearly as many instructions as a condition
// may have, which matches nothing without a z.
const dearest = `(.*.*[ab]){1,110}z$`

// Conditions are bounded when their rules are created, their number by the plan
// alone: together they must not take a core for seconds.
func TestDecision_Rules_WorkTogetherIsBounded(t *testing.T) {
	long := intentWith(func(in *Intent) {
		in.Resource = "https://h.example/" + strings.Repeat("a%2fb", 600) + "#" + strings.Repeat("b", 1000)
		in.Metadata = make(map[string]string)
		for i := range MaxMetadataKeys {
			in.Metadata[fmt.Sprint("key", i)] = strings.Repeat("v", 100)
		}
	})
	const (
		regex    = `{"resource":{"$regex":"` + dearest + `"}}`
		computed = `{"cel":"(intent.resource + 'x').matches('` + dearest + `')"}`
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
			condition := mustCondition(t, tc.condition)
			for _, outcome := range []Decision{Deny, Allow} {
				rs := &RuleSet{}
				for i := range tc.rules {
					rs.rules = append(rs.rules, newCompiledRule(stored(fmt.Sprint(i), outcome.String(), tc.condition, 1), action{decision: outcome}, condition))
				}
				rs.index = newRuleIndex(rs.rules)
				f := testFrame(t, long)
				f.readings, _ = resource.Read(long.Resource)
				findings, failed := rs.decide(f)
				if failed[CauseWork] == 0 || failed[CauseWork] != failed.Total() || len(findings) > 0 != (outcome != Allow) {
					t.Fatalf("decide with rules that say %v = %v, errors %v; want such of work alone, which only tighten", outcome, findings, failed)
				}
			}
		})
	}
}

// The dearest condition is evaluated for the longest resource, with five readings.
func TestWork_IsEnoughForOneCondition(t *testing.T) {
	raw := "https://h.example/" + strings.Repeat("a", 1000) + "/./#"
	raw += strings.Repeat("b", MaxResource-len(raw))
	in := intentWith(func(in *Intent) { in.Resource = raw })
	f := testFrame(t, in)
	var err error
	if f.readings, err = resource.Read(raw); err != nil || f.readings.BlockLen() != 5 {
		t.Fatalf("Read = %d readings, %v, want 5", f.readings.BlockLen(), err)
	}
	rs := CompileRules([]Rule{stored("a", "deny", `{"resource":{"$regex":"`+dearest+`"}}`, 1)}, Options{})
	for range 2 { // each evaluation has all of it
		if findings, failed := rs.decide(f); len(findings) > 0 || failed.Total() > 0 {
			t.Errorf("decide = %v, errors %v, want neither", findings, failed)
		}
	}
}

// A macro that ends early has done as much each time, so that a condition for
// which there is just enough left is decided the same each time.
func TestWork_IsTheSameEachTime(t *testing.T) {
	in := intentWith(func(in *Intent) {
		in.Metadata = map[string]string{"key2x": "hit"}
		for i := range 50 {
			in.Metadata[fmt.Sprint("key", i)] = strings.Repeat("v", 1000)
		}
	})
	rs := CompileRules([]Rule{stored("a", "deny", `{"cel":"!intent.metadata.exists(k, intent.metadata[k].matches('hit|[ab]{4}z'))"}`, 1)}, Options{})
	var first Work
	for i := range 20 {
		f := testFrame(t, in)
		if findings, failed := rs.decide(f); len(findings) > 0 || failed.Total() > 0 {
			t.Fatalf("decide = %v, errors %v, want neither", findings, failed)
		}
		if i == 0 {
			first = f.work
		}
		if f.work != first {
			t.Fatalf("the work of the same intent is %d and %d", first.done, f.work.done)
		}
	}
}

// offers counts how often a turn is offered.
type offers int

func (o *offers) Yield() time.Duration { *o++; return time.Second }

// Long conditions offer their turn again and again, which decides nothing, and
// short ones never.
func TestDecision_Bounds_LongConditionsOfferTheirTurn(t *testing.T) {
	wide := intentWith(func(in *Intent) {
		in.Metadata = make(map[string]string)
		for i := range MaxMetadataKeys {
			in.Metadata[fmt.Sprint("key", i)] = "v"
		}
	})
	for condition, never := range map[string]bool{
		`{"cel":"intent.metadata.exists(k, intent.metadata.exists(j, j == 'x'))"}`: false,
		`{"metadata.key1":{"$gt":"w"}}`:                                            true,
	} {
		var rules []Rule
		for i := range 100 {
			rules = append(rules, stored(fmt.Sprint(i), "deny", condition, 1))
		}
		rs, f := CompileRules(rules, Options{}), testFrame(t, wide)
		alone, failed := rs.decide(f)
		done := f.work.done
		var n offers
		f.in.Turn = &n
		shared, failedToo := rs.decide(f)
		if !cmp.Equal(alone, shared) || failed != failedToo || f.work.done != done {
			t.Errorf("%s: decide with a turn = %v, %d errors, %d steps; without %v, %d, %d",
				condition, shared, failedToo, f.work.done, alone, failed, done)
		}
		if most := offers(done / yieldEvery); n > most || (n == 0) != never {
			t.Errorf("%s: offered %d times, at most %d; want never: %t", condition, n, most, never)
		}
	}
	w := newWork(new(offers))
	for range 10 {
		w.Charge(yieldEvery / 2)
	}
	if got := w.Yielded(); got != 5*time.Second {
		t.Errorf("ten halves of what an offer is due for = %v yielded, want 5 offers of a second each", got)
	}
}

// A match that takes long offers its turn meanwhile and decides the same.
func TestDecision_Bounds_LongMatchesOfferTheirTurn(t *testing.T) {
	for _, expr := range []string{dearest, `^(.*.*[ab]){1,110}b$`, `\b(é|[^a]|.*.*){1,90}\x{FFFD}`, `(?m:^b(a|.*.*){1,90}$)`, `(.*.*[ab]){1,110}\z`} {
		re := compileRegex(expr)
		for _, s := range []string{strings.Repeat("ab", 500), strings.Repeat("é b", 300) + "\xff", strings.Repeat("ba\n", 300) + "b", "b"} {
			var n offers
			w := newWork(&n)
			if got, want := re.matches(&w, s), re.re.MatchString(s); got != want {
				t.Errorf("%s matches %.9q… with a turn = %t, without %t", expr, s, got, want)
			}
			if most := offers(2 * re.Steps(s) / yieldEvery); n > most || s == "b" && n > 0 {
				t.Errorf("%s for %.9q…: offered %d times, at most %d", expr, s, n, most)
			}
		}
	}
	var n offers
	w, text := newWork(&n), strings.Repeat("ab", MaxResource/2)
	re := compileRegex(dearest)
	if re.matches(&w, text); int(n) < re.Steps(text)/yieldEvery/2 {
		t.Errorf("%d offers in %d steps, want one for each %d about", n, re.Steps(text), yieldEvery)
	}
}

func TestWork_RegexOfAComputedTextMatches(t *testing.T) {
	for expr, want := range map[string]bool{
		`(intent.action_type + "!").matches("^deploy.*!$")`:               true,
		`(intent.action_type + "!").matches("^deploy$")`:                  false,
		`["a", "b"].exists(x, (x + intent.action_type).matches("^bdep"))`: true,
	} {
		got, err := mustCondition(t, `{"cel":`+Quote(expr)+`}`).eval(testFrame(t, intentWith(nil)))
		if got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", expr, got, err, want)
		}
	}
}
