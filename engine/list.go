package engine

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"writ/engine/condition"
)

// List is a named list of texts. Conditions use it by its name: see [condition.CheckListName]. Its
// values are sorted and distinct.
type List struct {
	Stored
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// Version is the number of different contents that the list has had so far. It starts at 1.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Normalize sorts the values and drops duplicates.
func (l *List) Normalize() {
	slices.Sort(l.Values)
	l.Values = slices.Compact(l.Values)
}

// Validate reports every mistake in the list as an *[InvalidError].
func (l *List) Validate() error {
	var p problems
	if err := condition.CheckListName(l.Name); err != nil {
		p.add("name", "%v", err)
	}
	if len(l.Values) > MaxListValues {
		p.add("values", "has more than %d entries", MaxListValues)
		return p.err()
	}
	for i, s := range l.Values {
		switch {
		case s == "":
			p.add(fmt.Sprintf("values[%d]", i), "is empty")
		case len(s) > condition.MaxLabel:
			p.add(fmt.Sprintf("values[%d]", i), "is longer than %d bytes", condition.MaxLabel)
		case !utf8.ValidString(s):
			p.add(fmt.Sprintf("values[%d]", i), "is not UTF-8")
		}
	}
	return p.err()
}

// Size returns the approximate size of the compiled list in memory, in bytes.
func (l *List) Size() int { return condition.ListSize(l.Values) }

// Lists returns the names of the lists that the rule's condition uses, sorted. It is nil if the
// stored rule does not compile.
func (c *CompiledRule) Lists() []string {
	if c.rego != nil {
		return c.rego.Lists()
	}
	return c.cond.Lists
}

// ListNames returns the names of the lists that the rules use, sorted, each once.
func (rs *RuleSet) ListNames() []string { return ListNames(rs.rules...) }

// ListNames returns the names of the lists that rules use, sorted, each once.
func ListNames(rules ...*CompiledRule) (names []string) {
	for _, r := range rules {
		names = append(names, r.Lists()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Lists returns the lists that the rules use, by name. The map must not be modified.
func (rs *RuleSet) Lists() condition.Lists { return rs.lists }

// WithLists returns a copy of rs with the lists that its rules use. rs must not have lists yet.
func (rs *RuleSet) WithLists(lists condition.Lists) *RuleSet {
	with := *rs
	with.addLists(lists)
	return &with
}

// addLists adds the lists that the rules use. If a list is missing, the conditions that use it are
// errors.
func (rs *RuleSet) addLists(lists condition.Lists) {
	for _, name := range rs.ListNames() {
		l := lists[name]
		if l == nil {
			continue
		}
		if rs.lists == nil {
			rs.lists = make(condition.Lists)
		}
		rs.lists[name] = l
		rs.size += l.Size()
	}
	if rs.keepsDigest {
		rs.digest = ""
		rs.digest, _ = rs.Digest() // if it fails, Digest returns the error each time
	}
}

// CompileLists returns lists in the form that conditions use.
func CompileLists(lists []List) condition.Lists {
	compiled := make(condition.Lists, len(lists))
	for i := range lists {
		compiled[lists[i].Name] = condition.NewList(lists[i].Values)
	}
	return compiled
}
