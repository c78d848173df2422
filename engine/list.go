package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine/condition"
)

// List is a named list of texts, or a named JSON document. Conditions use it by its name: see
// [condition.CheckListName].
type List struct {
	Stored
	Name string `json:"name"`
	// Values has the texts, sorted, each once. It is nil if the list is a document.
	Values []string `json:"values,omitzero"`
	// Data is the document in the form of RFC 8785. It is nil if the list has values. A document that
	// is an array of texts, each fit to be one of Values, is a list of texts, too.
	Data jsontext.Value `json:"data,omitzero"`
	// Version is the number of different contents that the list has had so far. It starts at 1.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

const (
	// MaxDocument is the greatest size of the document of a list, in bytes.
	MaxDocument = 1 << 20
	// maxDocumentDepth is the greatest depth of objects and arrays in a document. OPA visits them
	// recursively.
	maxDocumentDepth = 64
)

// Normalize sorts the values and drops duplicates. It brings a valid document into the form of RFC 8785.
func (l *List) Normalize() {
	slices.Sort(l.Values)
	l.Values = slices.Compact(l.Values)
	_ = l.Data.Canonicalize() // Validate says what is wrong
}

// Texts returns the texts of a list. It reports false if the list is a document that is no array of
// texts, each fit to be one of the values.
func (l *List) Texts() ([]string, bool) {
	if l.Data == nil {
		return l.Values, true
	}
	var as List
	if l.Data.Kind() != '[' || json.Unmarshal(l.Data, &as.Values) != nil {
		return nil, false
	}
	as.Name = l.Name
	return as.Values, as.Validate() == nil
}

// Validate reports every mistake in the list as an *[InvalidError].
func (l *List) Validate() error {
	var p problems
	if err := condition.CheckListName(l.Name); err != nil {
		p.add("name", "%v", err)
	}
	if l.Data != nil {
		l.checkData(&p)
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

// checkData adds the mistakes in the document.
func (l *List) checkData(p *problems) {
	if l.Values != nil {
		p.add("data", "stands beside values: give one of them")
	}
	if len(l.Data) > MaxDocument {
		p.add("data", "has %d bytes, at most %d are allowed", len(l.Data), MaxDocument)
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(l.Data))
	for {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			p.add("data", "is not one JSON document: %v", err)
			return
		}
		field := fieldPath("data", d.StackPointer())
		switch token.Kind() {
		case 'n':
			p.add(field, noNull)
			return
		case '0':
			if n, err := token.Float(); err != nil || math.Abs(n) > condition.MaxInteger {
				p.add(field, "is a number outside of ±%d: write it as a text", int64(condition.MaxInteger))
				return
			}
		case '{', '[':
			if d.StackDepth() > maxDocumentDepth {
				p.add(field, "lies below %d objects and arrays, at most %[1]d are allowed", maxDocumentDepth)
				return
			}
		}
	}
}

// ListOf returns the list called name whose content is a JSON value: values if it is an array of strings, or
// else data. Files that have lists by their names give them so.
func ListOf(name string, content jsontext.Value) List {
	l := List{Name: name}
	if content.Kind() != '[' || json.Unmarshal(content, &l.Values) != nil {
		l.Values, l.Data = nil, content
	}
	return l
}

// Len returns the number of values, or of the elements or members of a document. A document that is
// neither an array nor an object has the length 1.
func (l *List) Len() (n int) {
	if l.Data == nil {
		return len(l.Values)
	}
	d := jsontext.NewDecoder(bytes.NewReader(l.Data))
	kind := l.Data.Kind()
	if kind != '[' && kind != '{' {
		return 1
	}
	_, err := d.ReadToken()
	for ; err == nil && d.PeekKind() != ']' && d.PeekKind() != '}'; n++ {
		err = d.SkipValue()
	}
	if kind == '{' {
		n /= 2 // names and values
	}
	return n
}

// Size returns the approximate size of the compiled list in memory, in bytes.
func (l *List) Size() int {
	if l.Data != nil {
		return condition.DocumentSize(l.Data)
	}
	return condition.ListSize(l.Values)
}

// Lists returns the names of the lists that the rule's condition uses, sorted. It is nil if the
// stored rule does not compile.
func (c *CompiledRule) Lists() []string {
	names := slices.Concat(c.Texts(), c.Documents())
	slices.Sort(names)
	return slices.Compact(names)
}

// Texts returns the names of the lists that the rule's condition uses as lists of texts, sorted.
func (c *CompiledRule) Texts() []string {
	if c.rego != nil {
		return c.rego.Lists()
	}
	return c.cond.Lists
}

// Documents returns the names of the lists that the rule's condition reads as data.lists, sorted.
func (c *CompiledRule) Documents() []string {
	if c.rego != nil {
		return c.rego.Documents()
	}
	return nil
}

// ListNames returns the names of the lists that the rules use, sorted, each once.
func (rs *RuleSet) ListNames() []string { return ListNames((*CompiledRule).Lists, rs.rules...) }

// ListNames calls of for each rule and returns all names, sorted, each once.
func ListNames(of func(*CompiledRule) []string, rules ...*CompiledRule) (names []string) {
	for _, r := range rules {
		names = append(names, of(r)...)
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
		l := &lists[i]
		if l.Data == nil {
			compiled[l.Name] = condition.NewList(l.Values)
			continue
		}
		texts, ok := l.Texts()
		compiled[l.Name] = condition.NewDocument(l.Data, texts, ok)
	}
	return compiled
}
