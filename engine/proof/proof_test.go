package proof

import (
	"math/rand/v2"
	"strings"
	"testing"

	"writ/engine/condition"
	"writ/engine/glob"
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
		{"sql.*", "sql.drop", false}, // which also denies sql_drop
		{"A.*.B", "a.*.b", false},    // of a..b the dots are one before it is compared in lower case
		{"sql*", "sql.drop", true}, {"sql.drop", "SQL_DROP", true}, {"*", "sql.drop", true}, {"sql.*", "sql.write.*", true}, {"sql.drop", "sql.*", false},
	} {
		if got := DeniedCovers(tc.by, tc.entry); got != tc.want {
			t.Errorf("DeniedCovers(%q, %q) = %v, want %v", tc.by, tc.entry, got, tc.want)
		}
	}
}

// A prover agrees with the program about the texts of a field.
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
