package proof

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// TestCovers_IsTrueOfActionTypes checks the functions that report that one action type covers or
// beats another. If they return true, the first type must match everything that the second matches.
// They must also return true for most generated pairs of which this holds.
func TestCovers_IsTrueOfActionTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not used for secrets
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	text := func(words ...string) string {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(one(words...))
		}
		return b.String()
	}
	claims, matched := 0, 0
	for range 40_000 {
		by, entry := text("a", "b", ".", "_", "*", "A"), text("a", "b", ".", "-", "*", "a.b", "B")
		for name, c := range map[string]struct {
			covers  bool
			of, all func(types []string) (*glob.Actions, error)
		}{
			"ActionCovers": {ActionCovers(by, entry), glob.CompileActions, glob.CompileActions},
			"DeniedCovers": {DeniedCovers(by, entry), glob.CompileDenied, glob.CompileDenied},
			"DeniedBeats":  {DeniedBeats(by, entry), glob.CompileActions, glob.CompileDenied},
		} {
			if !c.covers {
				continue
			}
			claims++
			of, err := c.of([]string{entry})
			if err != nil {
				t.Fatal(err)
			}
			all, err := c.all([]string{by})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				action := strings.ReplaceAll(entry, "*", one("", "a", ".", "b._", "..a"))
				if r.IntN(2) == 0 {
					action = strings.NewReplacer(".", one("..", "_", "-", "._", "."), "a", one("A", "a")).Replace(action)
				}
				if of.Match(action) < 0 {
					continue
				}
				if matched++; all.Match(action) < 0 {
					t.Fatalf("%s(%q, %q), but not of %q", name, by, entry, action)
				}
			}
		}
	}
	if claims < 5_000 || matched < claims {
		t.Errorf("%d claims, %d matches: too few", claims, matched)
	}
	for _, tc := range []struct {
		by, entry string
		want      bool
	}{
		{"sql.*", "sql.drop", false}, // false: sql.* also denies sql_drop
		{"A.*.B", "a.*.b", false},    // runs of dots become one dot before the comparison
		{"sql*", "sql.drop", true}, {"sql.drop", "SQL_DROP", true}, {"*", "sql.drop", true}, {"sql.*", "sql.write.*", true}, {"sql.drop", "sql.*", false},
	} {
		if got := DeniedCovers(tc.by, tc.entry); got != tc.want {
			t.Errorf("DeniedCovers(%q, %q) = %v, want %v", tc.by, tc.entry, got, tc.want)
		}
	}
}

// TestProver_AsksWhatRuns checks that a prover and the program of a leaf agree about texts of the
// leaf's field.
func TestProver_AsksWhatRuns(t *testing.T) {
	p, n := New(), condition.MetadataKey("n")
	decimal := condition.Field{ID: n.ID, Kind: condition.Decimal, Key: n.Key}
	compare := func(f condition.Field, op condition.Operator, texts ...string) *condition.Node {
		return condition.Compare(f, op, condition.Texts(texts...)...)
	}
	for _, tt := range []struct {
		leaf *condition.Node
		text string
		want condition.Truth
	}{
		{condition.Has(decimal), "1.5", condition.True},
		{condition.Has(decimal), "x", condition.False},
		{compare(decimal, condition.Gt, "1"), "1.5", condition.True},
		{compare(decimal, condition.Gt, "1"), "x", condition.False},
		{compare(n, condition.Eq, ""), "", condition.True},
		{compare(n, condition.In, "a", "b"), "b", condition.True},
		{compare(n, condition.Glob, "a*"), "b", condition.False},
		{compare(n, condition.InList, "payees"), "b", condition.Unknown},
		{compare(n, condition.ResourceGlob, "a"), "a", condition.Unknown},
		{compare(condition.FieldOf(condition.Resource), condition.Eq, "a"), "a", condition.Unknown},
		{condition.Has(n), "a", condition.Unknown},
	} {
		for range 2 {
			if got := p.holdsOf(tt.leaf, tt.text); got != tt.want {
				t.Errorf("%s of %q = %v, want %v", tt.leaf.CEL(), tt.text, got, tt.want)
			}
		}
	}
}

// TestCase_DecideIsTrueOfIntents checks that Decide is never wrong. Suppose that all cases of a
// condition give another condition the same truth. Then every intent for which the first condition
// is true must give that truth. Decide must have an answer for enough pairs.
func TestCase_DecideIsTrueOfIntents(t *testing.T) {
	g := conditiontest.New(9)
	tree := func() (*condition.Node, *condition.Program) {
		for {
			c, err := condition.Compile(g.Condition(), condition.Options{Side: resource.ForBlock})
			if err != nil {
				t.Fatal(err)
			}
			if c.Holds.IsRendered() {
				if program, err := condition.Plan(c.Holds); err == nil {
					return c.Holds, program
				}
			}
		}
	}
	p, decided, met := New(), 0, 0
	var filed Index[int]
	for i := range 2_000 {
		n, runs := tree()
		m, other := tree()
		if i%2 == 0 { // cases of this form are decided more often
			if m = condition.Either(n, m); i%4 == 0 {
				m = condition.Negate(m)
			}
			var err error
			if other, err = condition.Plan(m); err != nil {
				t.Fatal(err)
			}
		}
		cases := p.Cases(n)
		filed.Add(p.Cases(m), i)
		want := condition.Unknown
		for k, c := range cases {
			got := c.Decide(m)
			if k > 0 && got != want {
				want = condition.Unknown
				break
			}
			if want = got; got == condition.True && !slices.Contains(slices.Collect(filed.Candidates(c)), i) {
				t.Fatalf("%s is true of a case of %s, and no candidate for it", m.CEL(), n.CEL())
			}
		}
		if want != condition.Unknown {
			decided++
		}
		for range 10 {
			f := frameOf(t, g.Intent())
			if ok, err := runs.Eval(f); !ok || err != nil {
				continue
			}
			met++
			if got, err := other.Eval(f); len(cases) == 0 || want != condition.Unknown && (err != nil || condition.TruthOf(got) != want) {
				t.Fatalf("%s is true of an intent, of which %s is %v, %v; want %v of %d cases", n.CEL(), m.CEL(), got, err, want, len(cases))
			}
		}
	}
	if decided < 400 || met < 4_000 {
		t.Errorf("%d pairs were decided, and %d intents met: too few", decided, met)
	}
}

func frameOf(t *testing.T, in *conditiontest.Intent) *condition.Frame {
	t.Helper()
	r, err := resource.Read(in.Resource)
	if err != nil {
		t.Fatal(err)
	}
	f := condition.NewFrame()
	for id, text := range map[condition.FieldID]string{
		condition.IntentID: in.IntentID, condition.PolicyID: in.PolicyID, condition.AgentID: in.AgentID, condition.GovernedAgentID: in.AgentID,
		condition.ActionType: in.ActionType, condition.IssuedAt: in.IssuedAt, condition.GovernedAgentStatus: "active",
	} {
		f.SetText(id, text)
	}
	f.SetDecidedAt(in.DecidedAt)
	f.SetResource(in.Resource)
	f.SetReadings(r)
	f.SetMetadata(in.Metadata)
	if in.Cost == nil {
		f.SetAbsent(condition.Cost, condition.CostAmount, condition.CostCurrency)
	} else {
		f.SetInt(condition.CostAmount, in.Cost.AmountMinor)
		f.SetText(condition.CostCurrency, in.Cost.Currency)
	}
	return f
}
