package workspace

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/diff"

	"writ.example/writ/authoring/document"
)

// Difference is a member that has different values on the server and in the file. From is the
// server's value, To is the file's value. A missing value is nil.
type Difference struct {
	// Field is the member's path, such as "condition.all[1].value".
	Field string         `json:"field"`
	From  jsontext.Value `json:"from,omitzero"`
	To    jsontext.Value `json:"to,omitzero"`
	// Added and Removed are set if both values are lists. Added has the items that only the file
	// has. Removed has the items that only the server has. Both are empty if only the order
	// differs.
	Added   []jsontext.Value `json:"added,omitzero"`
	Removed []jsontext.Value `json:"removed,omitzero"`
}

// diffOf returns the differences of two JSON values. Both must have sorted members and no white
// space.
func diffOf(from, to jsontext.Value) []Difference { return diffAt("", from, to) }

func diffAt(field string, from, to jsontext.Value) []Difference {
	switch {
	case bytes.Equal(from, to):
		return nil
	case from.Kind() == '{' && to.Kind() == '{':
		return diffObjects(field, from, to)
	case from.Kind() == '[' && to.Kind() == '[':
		return diffLists(field, from, to)
	}
	return []Difference{{Field: field, From: from, To: to}}
}

// diffObjects compares the members of two objects. If two nested objects have no member in common,
// such as conditions in two forms, it returns one difference for the whole object.
func diffObjects(field string, from, to jsontext.Value) (all []Difference) {
	was, is := decode[map[string]jsontext.Value](from), decode[map[string]jsontext.Value](to)
	names := maps.Clone(was)
	maps.Copy(names, is)
	if len(names) == len(was)+len(is) && field != "" {
		return []Difference{{Field: field, From: from, To: to}}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inner := name
		if field != "" {
			inner = field + "." + name
		}
		all = append(all, diffAt(inner, was[name], is[name])...)
	}
	return all
}

// diffLists returns the items that a list gained and lost. If the lists differ in one item only,
// and the item is an object at the same index in both, it compares the two objects.
func diffLists(field string, from, to jsontext.Value) []Difference {
	was, is := decode[[]jsontext.Value](from), decode[[]jsontext.Value](to)
	removed, added := lacking(was, is), lacking(is, was)
	if len(was) == len(is) && len(removed) == 1 && len(added) == 1 && was[removed[0]].Kind() == '{' &&
		removed[0] == added[0] {
		return diffAt(field+"["+strconv.Itoa(added[0])+"]", was[removed[0]], is[added[0]])
	}
	d := Difference{Field: field, From: from, To: to}
	for _, i := range removed {
		d.Removed = append(d.Removed, was[i])
	}
	for _, i := range added {
		d.Added = append(d.Added, is[i])
	}
	return []Difference{d}
}

// lacking returns the indexes of the items in all that others lacks. An item that occurs n times
// in all must occur n times in others.
func lacking(all, others []jsontext.Value) (places []int) {
	left := make(map[string]int)
	for _, v := range others {
		left[string(v)]++
	}
	for i, v := range all {
		if left[string(v)]--; left[string(v)] < 0 {
			places = append(places, i)
		}
	}
	return places
}

// String returns the difference as text on one line or several lines.
func (d Difference) String() string {
	var b strings.Builder
	b.WriteString(d.Field + ":")
	switch {
	case d.From.Kind() == '[' && d.To.Kind() == '[':
		if len(d.Added)+len(d.Removed) == 0 {
			b.WriteString(" the same in another order")
		}
		for _, v := range d.Removed {
			b.WriteString("\n  - " + v.String())
		}
		for _, v := range d.Added {
			b.WriteString("\n  + " + v.String())
		}
	case d.From == nil:
		b.WriteString(items(d.To, "+"))
	case d.To == nil:
		b.WriteString(items(d.From, "-"))
	case d.From.Kind() == '"' && d.To.Kind() == '"' && (lines(d.From) > 1 || lines(d.To) > 1):
		b.WriteString(diffTexts(decode[string](d.From), decode[string](d.To)))
	case len(d.From)+len(d.To) > document.MaxLine:
		b.WriteString("\n  - " + d.From.String() + "\n  + " + d.To.String())
	default:
		b.WriteString(" " + d.From.String() + " -> " + d.To.String())
	}
	return b.String()
}

// items shows a value that was added or removed. A list takes one line for each item. A text
// keeps its own lines.
func items(v jsontext.Value, sign string) string {
	all := []string{v.String()}
	switch {
	case v.Kind() == '[':
		all = all[:0]
		for _, item := range decode[[]jsontext.Value](v) {
			all = append(all, item.String())
		}
	case v.Kind() == '"' && lines(v) > 1:
		all = strings.Split(strings.TrimSuffix(decode[string](v), "\n"), "\n")
	}
	if len(all) == 1 {
		return " " + sign + " " + all[0]
	}
	return "\n  " + sign + " " + strings.Join(all, "\n  "+sign+" ")
}

func lines(v jsontext.Value) int {
	return strings.Count(strings.TrimSuffix(decode[string](v), "\n"), "\n") + 1
}

// diffTexts shows the changed lines of a text, with the lines around them.
func diffTexts(from, to string) string {
	end := func(s string) []byte { return []byte(strings.TrimSuffix(s, "\n") + "\n") }
	if strings.TrimSuffix(from, "\n") == strings.TrimSuffix(to, "\n") {
		return " only the line break at the end differs"
	}
	// The first three lines name the files.
	hunks := strings.Split(strings.TrimSuffix(string(diff.Diff("", end(from), "", end(to))), "\n"), "\n")[3:]
	if strings.Count("\n"+strings.Join(hunks, "\n"), "\n@@ ") == 1 {
		hunks = hunks[1:]
	}
	return "\n  " + strings.Join(hunks, "\n  ")
}

// without returns an object from which the named members are removed.
func without(v jsontext.Value, names ...string) jsontext.Value {
	members := decode[map[string]jsontext.Value](v)
	for _, name := range names {
		delete(members, name)
	}
	return encode(members)
}

func decode[T any](data jsontext.Value) (v T) {
	if err := json.Unmarshal(data, &v); err != nil {
		panic(err)
	}
	return v
}
