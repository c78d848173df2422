package condition

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var code = regexp.MustCompile("`[^`]*`")

// rowsOfPage returns the rows of the table in a page of docs/ whose header is header. A cell is the
// list of its texts in backquotes.
func rowsOfPage(t *testing.T, page, header string) (rows [][][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\n"+header+"\n")
	if !ok {
		t.Fatalf("the page has no table %s", header)
	}
	for line := range strings.Lines(after) {
		switch {
		case !strings.HasPrefix(line, "|"):
			return rows
		case strings.HasPrefix(line, "|---"):
			continue
		}
		var row [][]string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			var codes []string
			for _, s := range code.FindAllString(cell, -1) {
				codes = append(codes, strings.Trim(s, "`"))
			}
			row = append(row, codes)
		}
		rows = append(rows, row)
	}
	return rows
}

func sameNames(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the page has the %s\n%v, want\n%v", what, got, want)
	}
}

// TestPage_Fields checks that docs/conditions.md has each field with its names.
func TestPage_Fields(t *testing.T) {
	var names, paths, known []string
	for _, row := range rowsOfPage(t, "conditions.md", "| field | CEL | Rego | is |") {
		names = append(names, row[0][0])
		paths = append(paths, strings.TrimSuffix(strings.TrimPrefix(row[1][0], "has("), ")"))
		if cel := paths[len(paths)-1]; row[2][0] != "input."+cel {
			t.Errorf("%s is %s in Rego and %s in CEL", row[0][0], row[2][0], cel)
		}
	}
	want := []string{"metadata.<key>"}
	for id := range MetadataValue {
		if row := fields[id]; row.name != "" {
			want = append(want, row.name)
			known = append(known, row.path)
		}
	}
	sameNames(t, "fields", names, want)
	sameNames(t, "paths", paths, append(known, `intent.metadata["<key>"]`))
}

// TestPage_Operators checks that docs/conditions.md has each operator.
func TestPage_Operators(t *testing.T) {
	var match, tree []string
	for _, row := range rowsOfPage(t, "conditions.md", "| match object | tree | holds where the field |") {
		match, tree = append(match, row[0]...), append(tree, row[1]...)
	}
	text, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range table {
		for long := range strings.FieldsSeq(table[i].tree + " " + table[i].notTree) {
			if !strings.Contains(string(text), "`"+long+"`") {
				t.Errorf("the page lacks the operator %s", long)
			}
		}
	}
	sameNames(t, "operators of match objects", match, operatorNames(false))
	sameNames(t, "operators of trees", tree, operatorNames(true))
}

// TestPage_Functions checks that docs/cel-and-rego.md has each function and macro of CEL.
func TestPage_Functions(t *testing.T) {
	l, err := cels()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	callable := regexp.MustCompile(`^[A-Za-z][\w.]*$`)
	for name := range l.cel.Functions() {
		if callable.MatchString(name) && name != table[In].symbol {
			want = append(want, name)
		}
	}
	for _, m := range l.cel.Macros() {
		want = append(want, m.Function())
	}
	name := regexp.MustCompile(`^[\w.]+`)
	var got []string
	for _, row := range rowsOfPage(t, "cel-and-rego.md", "| CEL | what |") {
		for _, s := range row[1] {
			got = append(got, name.FindString(s))
		}
	}
	sameNames(t, "functions", got, want)
}
