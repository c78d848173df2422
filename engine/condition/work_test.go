package condition

import (
	"strings"
	"testing"
	"time"
)

// most is a regular expression with nearly as many instructions as a condition may have. It
// matches only texts with a z.
const most = `(.*.*[ab]){1,82}z$`

// offers is a turn that counts how often it is offered.
type offers int

func (o *offers) Yield() time.Duration { *o++; return time.Second }

func (o *offers) Pause() bool  { return false }
func (o *offers) Resume() bool { return false }

// TestWork_OffersAreSpaced checks that the turn is offered once for every YieldEvery steps.
func TestWork_OffersAreSpaced(t *testing.T) {
	var n offers
	w := NewWork(&n, nil)
	for range 10 {
		w.Charge(YieldEvery / 2)
	}
	if n != 5 || w.Ended() {
		t.Errorf("ten halves of what an offer is due for = %d offers, want 5", n)
	}
}

// TestDecision_Bounds_LongMatchesOfferTheirTurn checks that a long match offers its turn while it
// runs, and that its result stays the same.
func TestDecision_Bounds_LongMatchesOfferTheirTurn(t *testing.T) {
	for _, expr := range []string{most, `^(.*.*[ab]){1,82}b$`, `\b(é|[^a]|.*.*){1,68}\x{FFFD}`, `(?m:^b(a|.*.*){1,68}$)`, `(.*.*[ab]){1,82}\z`} {
		re := mustRegex(t, expr)
		for _, s := range []string{strings.Repeat("ab", 500), strings.Repeat("é b", 300) + "\xff", strings.Repeat("ba\n", 300) + "b", "b"} {
			var n offers
			w := NewWork(&n, nil)
			if got, want := re.matches(&w, s), re.re.MatchString(s); got != want {
				t.Errorf("%s matches %.9q… with a turn = %t, without %t", expr, s, got, want)
			}
			if limit := offers(2 * re.Steps(s) / YieldEvery); n > limit || s == "b" && n > 0 {
				t.Errorf("%s for %.9q…: offered %d times, at most %d", expr, s, n, limit)
			}
		}
	}
	var n offers
	w, text := NewWork(&n, nil), strings.Repeat("ab", MaxText/2)
	re := mustRegex(t, most)
	if re.matches(&w, text); int(n) < re.Steps(text)/YieldEvery/2 {
		t.Errorf("%d offers in %d steps, want one for each %d about", n, re.Steps(text), YieldEvery)
	}
}

func TestWork_RegexOfAComputedTextMatches(t *testing.T) {
	for expr, want := range map[string]bool{
		`(intent.action_type + "!").matches("^deploy.*!$")`:               true,
		`(intent.action_type + "!").matches("^deploy$")`:                  false,
		`["a", "b"].exists(x, (x + intent.action_type).matches("^bdep"))`: true,
	} {
		got, err := mustCondition(t, `{"cel":`+Quote(expr)+`}`).Program.Eval(testFrame(t, intentWith(nil)))
		if got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", expr, got, err, want)
		}
	}
}

func mustRegex(t *testing.T, expr string) *regex {
	t.Helper()
	re, err := compileRegex(expr)
	if err != nil {
		t.Fatal(err)
	}
	return re
}
