package proof

import (
	"math/rand/v2"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
)

func TestProver_Counters(t *testing.T) {
	const fetched = `{"count":{"action_type":"web.fetch","window":"1h"},"gte":1}`
	const few = `{"count":{"action_type":"web.fetch","window":"1h"},"lt":1}`
	const paid = `{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"1h"},"gt":100}`
	for doc, want := range map[string]condition.Truth{
		`{"all":[{"field":"action_type","op":"eq","value":"email.send"},` + fetched + `]}`:                                             condition.False,
		`{"all":[{"field":"action_type","op":"glob","value":"email.*"},` + fetched + `]}`:                                              condition.False,
		`{"all":[{"field":"action_type","op":"startsWith","value":"email"},` + fetched + `]}`:                                          condition.False,
		`{"all":[{"field":"action_type","op":"in","value":["email.send","sms.send"]},{"not":` + few + `}]}`:                            condition.False,
		`{"any":[{"all":[{"field":"action_type","op":"eq","value":"a"},` + fetched + `]},{"field":"agent_id","op":"eq","value":"b"}]}`: condition.False,
		`{"all":[{"field":"cost.currency","op":"eq","value":"USD"},` + paid + `]}`:                                                     condition.False,
		`{"all":[{"not":{"field":"cost","op":"exists","value":true}},` + paid + `]}`:                                                   condition.False,
		`{"all":[{"field":"action_type","op":"in","value":["email.send","web.fetch"]},` + fetched + `]}`:                               condition.Unknown,
		`{"all":[{"field":"action_type","op":"glob","value":"*.fetch"},` + fetched + `]}`:                                              condition.Unknown,
		`{"all":[{"field":"action_type","op":"ne","value":"web.fetch"},` + fetched + `]}`:                                              condition.Unknown,
		`{"any":[{"all":[{"field":"action_type","op":"eq","value":"a"},` + fetched + `]},` + fetched + `]}`:                            condition.Unknown,
		`{"all":[{"field":"action_type","op":"eq","value":"web.fetch"},` + fetched + `]}`:                                              condition.True,
		`{"all":[{"field":"agent_id","op":"eq","value":"a"},` + fetched + `]}`:                                                         condition.True,
		`{"all":[{"field":"cost.currency","op":"eq","value":"EUR"},` + paid + `]}`:                                                     condition.True,
		`{"any":[` + fetched + `,{"field":"action_type","op":"eq","value":"email.send"}]}`:                                             condition.True,
	} {
		c := must.Get(condition.Compile(doc, condition.Options{Side: resource.ForBlock}))(t)
		got := New().Counters(c.Holds)
		if len(got) != 1 || got[0].Truth != want {
			t.Errorf("Counters of %s = %+v, want one that is %v", doc, got, want)
		}
	}
}

// TestActionsMeet compares actionsMeet with lists of denied types, which fold as counters do: two patterns that
// match one action type meet.
func TestActionsMeet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(letters string, n int) string {
		b := make([]byte, 1+random.IntN(n))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	apart := 0
	for range 40_000 {
		a, b, s := text("aB.*-", 5), text("aB.*_", 5), text("aAbB..-_", 6)
		meet := actionsMeet(a, b)
		if !meet {
			apart++
		}
		for _, compile := range []func([]string) (*glob.Actions, error){glob.CompileActions, glob.CompileDenied} {
			x, y := must.Get(compile([]string{a}))(t), must.Get(compile([]string{b}))(t)
			if !meet && x.Match(s) >= 0 && y.Match(s) >= 0 {
				t.Fatalf("actionsMeet(%q, %q) = false, and both match %q", a, b, s)
			}
		}
	}
	if apart < 1000 {
		t.Errorf("only %d pairs are apart", apart)
	}
	for _, tc := range []struct{ a, b string }{{"email.*", "web.*"}, {"*.send", "*.fetch"}, {"email.send", "email.sent"}} {
		if actionsMeet(tc.a, tc.b) {
			t.Errorf("actionsMeet(%q, %q) = true", tc.a, tc.b)
		}
	}
}
