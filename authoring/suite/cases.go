package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ.example/writ/authoring/document"
)

// assignment is the value of one column in a case. The column is the path of a member of the
// intent, or an entry of columns.
type assignment struct {
	column string
	value
}

// columns has the columns that a table can have in addition to the members of the intent. The
// member each of a test can also have the stateColumns.
var (
	stateColumns = []string{"now", "session", "agent", "organization_stopped", "usage_exceeded",
		"require_registered_agents", "counted"}
	columns = append([]string{"intent", "want", "message", "codes", "rule", "error"}, stateColumns...)
)

// test adds the cases of a test to the suite.
func (e *expander) test(t *Test, field string) {
	rows := e.rows(t, field)
	combinations := e.combinations(t, field)
	if !e.fits(len(e.suite.Cases)+len(rows)*len(combinations), field) {
		return
	}
	own := t.cells(field)
	for _, row := range rows {
		for _, values := range combinations {
			e.oneCase(t, field, own, row, values)
		}
	}
}

// fits reports an error if there are too many cases. A case takes about ten values. The limit is
// about the number of cases that a file without aliases can have.
func (e *expander) fits(cases int, field string) bool {
	const most = document.MaxValues / 10
	if cases > most {
		e.refuse(field, "there are more than %d cases", most)
	}
	return cases <= most
}

// row is a row of a table. A test without a table has one row without values.
type row struct {
	field  string
	values []assignment
}

func (e *expander) rows(t *Test, field string) []row {
	if t.Table == nil {
		return []row{{field: field}}
	}
	var all []row
	for i, column := range t.Table.Columns {
		at := fmt.Sprintf("%s.table.columns[%d]", field, i)
		switch {
		case !slices.Contains(columns, column) && !isPath(column):
			e.refuse(at, "there is no column %q%s", column, meant(column, append(slices.Clone(columns), paths...)))
		case slices.Contains(t.Table.Columns[:i], column):
			e.refuse(at, "the column %s is there twice", column)
		}
	}
	if len(t.Table.Rows) == 0 {
		e.refuse(field+".table.rows", "is required: a table without rows has no case")
	}
	for i, cells := range t.Table.Rows {
		at := fmt.Sprintf("%s.table.rows[%d]", field, i)
		if len(cells) != len(t.Table.Columns) {
			e.refuse(at, "has %d cells, and there are %d columns", len(cells), len(t.Table.Columns))
			continue
		}
		r := row{field: at}
		for j, cell := range cells {
			r.values = append(r.values, assignment{t.Table.Columns[j], value{cell, fmt.Sprintf("%s[%d]", at, j)}})
		}
		all = append(all, r)
	}
	return all
}

// paths has the members of an intent that a test can set.
var paths = append(slices.Clone(intentMembers), "cost.amount_minor", "cost.currency", "metadata.…")

// combinations returns every combination of the values in t.Each. If t.Each is empty, it returns
// one empty combination.
func (e *expander) combinations(t *Test, field string) [][]assignment {
	all := [][]assignment{nil}
	for _, path := range slices.Sorted(maps.Keys(t.Each)) {
		at := field + ".each." + path
		switch {
		case slices.Contains(stateColumns, path), isPath(path):
		case slices.Contains(columns, path):
			e.refuse(at, "each makes a case for every combination: give %s for the test, or write a table", path)
		default:
			e.refuse(at, "there is no member %q of an intent%s", path,
				meant(path, append(slices.Clone(stateColumns), paths...)))
		}
		values := t.Each[path]
		if len(values) == 0 {
			e.refuse(at, "has no value, so that the test has no case")
		}
		if !e.fits(len(all)*len(values), at) {
			return nil
		}
		var next [][]assignment
		for _, have := range all {
			for i, v := range values {
				next = append(next,
					append(slices.Clone(have), assignment{path, value{v, fmt.Sprintf("%s[%d]", at, i)}}))
			}
		}
		all = next
	}
	return all
}

func (e *expander) oneCase(t *Test, field string, own []assignment, r row, values []assignment) {
	s := &caseBuilder{expander: e, test: field, row: r.field, intent: t.Intent, intentAt: field + ".intent",
		members: map[string]value{}}
	for _, path := range slices.Sorted(maps.Keys(t.Set)) {
		at := field + ".set." + path
		if !isPath(path) {
			e.refuse(at, "there is no member %q of an intent%s", path, meant(path, paths))
			return
		}
		s.set(assignment{path, value{t.Set[path], at}})
	}
	for _, a := range slices.Concat(own, r.values, values) {
		s.set(a)
	}
	c := &Case{Suite: e.suite, Test: t.Name, Name: strings.Join(s.labels, ", "), Fixture: s.intent, Input: s.input,
		want: s.want, field: r.field}
	if c.want.decisionAt == "" {
		e.refuse(r.field, "want is required: %s", strings.Join(wants, ", "))
	}
	s.checkTogether(r.field)
	c.Input.Intent, c.refusal = s.build()
	if c.Input.Intent != nil {
		c.Input.Counts = s.counts(c.Input.Intent)
		c.Input.Session.CompiledSession = s.inSession(c.Input.Intent)
		c.Input.DecidedAt = e.suite.decidedAt(c.Input.DecidedAt, c.Input.Intent)
	}
	if c.Input.Intent != nil || c.refusal != nil {
		e.suite.Cases = append(e.suite.Cases, c)
	}
}
