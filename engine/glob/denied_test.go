package glob

import (
	"testing"
)

// TestDecision_Actions_DeniedTypesCompareFolded checks which types a denied type denies. Both types
// are compared in lower case, with each run of dots as one dot. If the denied type has no `*`, `_`
// and `-` count as dots.
func TestDecision_Actions_DeniedTypesCompareFolded(t *testing.T) {
	for _, tt := range []struct {
		denied, action string
		want           bool
	}{
		{"sql.drop", "sql.drop", true},
		{"sql.drop", "SQL.Drop", true},
		{"SQL.Drop", "sql.drop", true},
		{"sql.drop", "sql..drop", true},
		{"sql...drop", "sql.drop", true},
		{"sql.drop", "sql_drop", true},
		{"sql-drop", "sql_drop", true},
		{"sql_drop", "sql._-drop", true},
		{"sql.drop", "sqldrop", false},
		{"sql.drop", "sql.drop.", false},
		{"sql.drop", "sql/drop", false},
		{"sql.*", "SQL.drop", true},
		{"sql.*", "sql..drop", true},
		{"Sql..*", "sql.drop", true},
		{"sql.*", "sql_drop", false},
		{"sql_*", "sql.drop", false},
		{"sql_*", "SQL_drop", true},
		{"a.*.b", "a..b", true},
		{"a.*.b", "A..B", false},
		{"*.delete", "S3.Object.DELETE", true},
	} {
		d, err := CompileDenied([]string{"other", tt.denied})
		if err != nil {
			t.Fatalf("CompileDenied(%q): %v", tt.denied, err)
		}
		if got := d.Match(tt.action) == 1; got != tt.want {
			t.Errorf("the denied type %q denies %q: %t, want %t", tt.denied, tt.action, got, tt.want)
		}
	}
	d, err := CompileDenied([]string{"sql.drop", "admin.*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"sql.read", "http_post", "SQL_read-it"} {
		if n := testing.AllocsPerRun(100, func() { d.Match(action) }); n > 1 || n > 0 && action != "SQL_read-it" {
			t.Errorf("%s allocates %v times", action, n)
		}
	}
}

// TestDecision_Actions_AllowedTypesCompareExactly checks that allowed types are compared exactly.
func TestDecision_Actions_AllowedTypesCompareExactly(t *testing.T) {
	a, err := CompileActions([]string{"sql.read", "http.*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"SQL.read", "sql..read", "sql_read", "sql-read", "HTTP.get"} {
		t.Run(action, func(t *testing.T) {
			if i := a.Match(action); i >= 0 {
				t.Errorf("Match(%q) = %d, want none", action, i)
			}
		})
	}
}
