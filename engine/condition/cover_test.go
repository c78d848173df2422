package condition

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Where an action type is said to cover another, or to beat it, it matches whatever
// the other does; and of generated ones that match the same, most are said to.
func TestCovers_IsTrueOfActionTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
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
			of, all Operator
		}{
			"ActionCovers": {ActionCovers(by, entry), ActionGlob, ActionGlob},
			"DeniedCovers": {DeniedCovers(by, entry), ActionDenied, ActionDenied},
			"DeniedBeats":  {DeniedBeats(by, entry), ActionGlob, ActionDenied},
		} {
			if !c.covers {
				continue
			}
			claims++
			of, err := compileMatcher(c.of, []string{entry}, 0)
			if err != nil {
				t.Fatal(err)
			}
			all, err := compileMatcher(c.all, []string{by}, 0)
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
		{"sql.*", "sql.drop", false}, // which also denies sql_drop
		{"A.*.B", "a.*.b", false},    // of a..b the dots are one before it is compared in lower case
		{"sql*", "sql.drop", true}, {"sql.drop", "SQL_DROP", true}, {"*", "sql.drop", true}, {"sql.*", "sql.write.*", true}, {"sql.drop", "sql.*", false},
	} {
		if got := DeniedCovers(tc.by, tc.entry); got != tc.want {
			t.Errorf("DeniedCovers(%q, %q) = %v, want %v", tc.by, tc.entry, got, tc.want)
		}
	}
}

// What a prover says of a text that a field has is what runs.
func TestProver_AsksWhatRuns(t *testing.T) {
	p, n := NewProver(), MetadataKey("n")
	decimal := n.as(Decimal)
	for _, tt := range []struct {
		leaf *Node
		text string
		want Truth
	}{
		{Has(decimal), "1.5", True},
		{Has(decimal), "x", False},
		{Compare(decimal, Gt, Texts("1")...), "1.5", True},
		{Compare(decimal, Gt, Texts("1")...), "x", False},
		{Compare(n, Eq, Texts("")...), "", True},
		{Compare(n, In, Texts("a", "b")...), "b", True},
		{Compare(n, Glob, Texts("a*")...), "b", False},
		{Compare(n, InList, Texts("payees")...), "b", Unknown},
		{Compare(n, ResourceGlob, Texts("a")...), "a", Unknown},
		{Compare(FieldOf(Resource), Eq, Texts("a")...), "a", Unknown},
		{Has(n), "a", Unknown},
	} {
		for range 2 {
			if got := p.holdsOf(tt.leaf, tt.text); got != tt.want {
				t.Errorf("%s of %q = %v, want %v", tt.leaf.CEL(), tt.text, got, tt.want)
			}
		}
	}
}
