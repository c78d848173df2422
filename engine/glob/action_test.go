package glob

import (
	"errors"
	"testing"
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
