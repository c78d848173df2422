package glob

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"writ.example/writ/engine/resource"
)

func TestDecision_ActionTypes_AreComparedExactlyAndStarMatchesWithinTheTaxonomy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		types  []string
		action string
		want   int
	}{
		{"exact", []string{"sql.read", "sql.write"}, "sql.write", 1},
		{"case counts", []string{"sql.write"}, "SQL.write", -1},
		{"no prefix", []string{"sql"}, "sql.write", -1},
		{"star", []string{"sql.*"}, "sql.write", 0},
		{"star spans dots", []string{"sql.*"}, "sql.write.bulk", 0},
		{"star needs its dot", []string{"sql.*"}, "sql", -1},
		{"star within the taxonomy", []string{"sql.*"}, "sqlite.write", -1},
		{"star alone", []string{"*"}, "http_post", 0},
		{"star in front", []string{"*.delete"}, "s3.object.delete", 0},
		{"star inside", []string{"s3.*.delete"}, "s3.object.delete", 0},
		{"parts do not overlap", []string{"ab*ba"}, "aba", -1},
		{"several stars", []string{"a*b*c"}, "axbxbxc", 0},
		{"several stars, wrong end", []string{"a*b*c"}, "axbxcx", -1},
		{"first of exact and star", []string{"sql.*", "sql.write"}, "sql.write", 0},
		{"first of star and exact", []string{"sql.write", "sql.*"}, "sql.write", 0},
		{"first of two", []string{"x", "sql.write", "sql.write"}, "sql.write", 1},
		{"empty list", nil, "sql.write", -1},
		{"no action", []string{"sql.*"}, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := CompileActions(tt.types)
			if err != nil {
				t.Fatalf("CompileActions(%q): %v", tt.types, err)
			}
			if got := a.Match(tt.action); got != tt.want {
				t.Errorf("CompileActions(%q).Match(%q) = %d, want %d", tt.types, tt.action, got, tt.want)
			}
			if n := testing.AllocsPerRun(100, func() { a.Match(tt.action) }); n != 0 {
				t.Errorf("Match allocates %v times, want 0", n)
			}
		})
	}
}

func TestCompileActions_RefusesWhatMatchesNothing(t *testing.T) {
	for _, entry := range []string{"", " sql", "sql.{read,write}", "sql.?", "sql.[rw]*", `sql\.read`, "a\x00", "a\xff", "a\u200bb"} {
		_, err := CompileActions([]string{"fine", entry})
		var refused *PatternError
		if !errors.As(err, &refused) || refused.Index != 1 {
			t.Errorf("CompileActions(fine, %q) = %v, want a PatternError for index 1", entry, err)
		}
	}
}

// TestActions_MatchTextAsItIsWritten checks that % begins no escape in an action type. It also
// tests a list with more wildcards than one state can hold.
func TestActions_MatchTextAsItIsWritten(t *testing.T) {
	types := []string{"*%2*", "a%2Fb", "*F*x*"}
	for i := range 600 {
		types = append(types, fmt.Sprintf("*n%d.*end", i))
	}
	a, err := CompileDenied(types)
	if err != nil {
		t.Fatal(err)
	}
	set, err := CompileSet([]string{"x", "b*d*f"})
	if err != nil {
		t.Fatal(err)
	}
	Pack(a.List(), set)
	for action, want := range map[string]int{"x%2Fy": 0, "a%2Fb": 0, "%2": 0, "aFbx": 2, "N599..end": 602, "x.n7.y.end": 10, "a/b": -1} {
		if got := a.Match(action); got != want {
			t.Errorf("Match(%q) = %d, want %d", action, got, want)
		}
		found := false
		a.Each(action, func(i int) { found = found || i == want })
		if found != (want >= 0) {
			t.Errorf("Each(%q) yields %d: %v", action, want, found)
		}
	}
	if set.Match("bcdef") != 1 || set.Match("x") != 0 || set.Match("y") >= 0 || a.Size() < 600 {
		t.Error("a list that is packed beside another matches otherwise")
	}
	r, err := resource.Read("prod/db")
	if err != nil {
		t.Fatal(err)
	}
	for side, settles := range map[resource.Side]bool{resource.ForBlock: true, resource.ForAllow: false} {
		var entries []int
		l := mustList(t, side, "stage/**", "prod/*")
		if got := l.Settled(&r, func(i int) { entries = append(entries, i) }); (got.Readers != 0) != settles || !slices.Contains(entries, 1) {
			t.Errorf("Settled for side %d = %+v, entries %v", side, got, entries)
		}
	}
}

// TestActions_SuffixBesideAPercentSign checks that a percent sign is one character. No entry may
// match a part of it.
func TestActions_SuffixBesideAPercentSign(t *testing.T) {
	for _, compile := range []func([]string) (*Actions, error){CompileActions, CompileDenied} {
		for _, tt := range []struct {
			entry, action string
			want          int
		}{
			{"*5", "a%", -1}, {"*25", "a%", -1}, {"pay.*5", "pay.x%", -1}, {"a*25", "a%", -1}, {"*5", "%", -1},
			{"*5", "a5", 0}, {"*25", "a%25", 0}, {"*5", "a%5", 0}, {"*%", "a%", 0}, {"*%25", "a%25", 0}, {"*%25", "a%", -1},
			{"pay.*5", "pay.15", 0}, {"pay.*25", "pay.25", 0},
		} {
			a, err := compile([]string{tt.entry})
			if err != nil {
				t.Fatalf("compiling %q: %v", tt.entry, err)
			}
			if got := a.Match(tt.action); got != tt.want {
				t.Errorf("Match of %q by %q = %d, want %d", tt.action, tt.entry, got, tt.want)
			}
		}
	}
}
