package document

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"writ/engine/condition"
)

// Edit is what one document of a file becomes.
type Edit struct {
	// Index is that of the document in what [Parse] returns. One that is not there is added
	// at the end.
	Index int
	// JSON is the document, in the wire form or that of files; nil: it is removed.
	JSON jsontext.Value
}

// Rewrite returns data with documents changed, added and removed. What stays equal keeps its
// comments and its place. Where only scalars change, nothing but those is written; else the
// file is, in canonical form. Data may be empty. The errors are [Parse]'s and [Format]'s.
func Rewrite(name string, data []byte, edits ...Edit) ([]byte, error) {
	f := newFile(name, data)
	var docs []*Document
	if len(bytes.TrimSpace(data)) > 0 {
		var err error
		if docs, err = Parse(name, data); err != nil {
			return nil, err
		}
	}
	var wanted []*node
	for _, d := range docs {
		wanted = append(wanted, d.root)
	}
	for _, e := range edits {
		n, err := readNode(e.JSON)
		switch {
		case err != nil:
			return nil, err
		case e.Index < len(docs):
			wanted[e.Index] = n
		default:
			wanted = append(wanted, n)
		}
	}
	out, ok := f.splice(docs, wanted)
	if !ok {
		merged, err := f.merge(docs, wanted)
		if err != nil || len(merged) == 0 {
			return nil, err
		}
		if out, err = Format(name, merged); err != nil {
			return nil, err
		}
	}
	if !says(name, out, wanted) {
		return nil, f.refuse(Place{1, 1}, "cannot be changed: write the change by hand, or format the file first")
	}
	return out, nil
}

// says reports whether a file has exactly the wanted documents.
func says(name string, data []byte, wanted []*node) bool {
	docs, err := Parse(name, data)
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(n *node) bool { return n == nil })
	return err == nil && slices.EqualFunc(docs, wanted, func(d *Document, n *node) bool { return d.root.same(n) })
}

func (n *node) same(m *node) bool {
	return bytes.Equal(n.natural(kindOf(n)).sorted().json(), m.natural(kindOf(m)).sorted().json())
}

// readNode reads a JSON value; nil is none.
func readNode(data jsontext.Value) (*node, error) {
	if data == nil {
		return nil, nil
	}
	f := newFile("document.json", data)
	roots, err := f.readJSON()
	if err != nil || len(roots) != 1 {
		return nil, cmp.Or(err, f.refuse(Place{1, 1}, "want one JSON value"))
	}
	return roots[0], nil
}

// splice replaces the scalars that differ, if nothing else does.
func (f *file) splice(docs []*Document, wanted []*node) ([]byte, bool) {
	if len(docs) != len(wanted) {
		return nil, false
	}
	var all []change
	for i, d := range docs {
		if wanted[i] == nil {
			return nil, false
		}
		k := kindOf(d.root)
		changes, ok := d.root.natural(k).changes(wanted[i].natural(k))
		if !ok {
			return nil, false
		}
		all = append(all, changes...)
	}
	lines := bytes.SplitAfter(f.text, []byte("\n"))
	slices.SortFunc(all, func(a, b change) int {
		if a.at.before(b.at) {
			return 1
		}
		return -1
	})
	for _, c := range all { // the last first, so that places stay what they are
		if c.at.Line < 1 || c.at.Line > len(lines) {
			return nil, false
		}
		line := []rune(string(lines[c.at.Line-1]))
		start := c.at.Column - 1
		if start < 0 || start > len(line) {
			return nil, false
		}
		length := c.length(line[start:])
		if length == 0 {
			return nil, false
		}
		text := string(line[:start]) + c.spelled(f.yaml, line[start]) + string(line[start+length:])
		lines[c.at.Line-1] = []byte(text)
	}
	out := bytes.Join(lines, nil)
	return out, says(f.name, out, wanted)
}

type change struct {
	at     Place
	was    *node
	become *node
}

// changes returns the scalars that differ, or false where more does.
func (n *node) changes(to *node) (all []change, ok bool) {
	collection := n.kind == '{' || n.kind == '['
	switch {
	case bytes.Equal(n.sorted().json(), to.sorted().json()):
		return nil, true
	case !collection && to.kind != '{' && to.kind != '[':
		return []change{{n.at, n, to}}, true
	case n.kind != to.kind || len(n.kids) != len(to.kids):
		return nil, false
	}
	for i := range n.kids {
		other := to.kids[i]
		if n.kind == '{' {
			other = to.member(n.keys[i].name)
		}
		if other == nil {
			return nil, false
		}
		more, ok := n.kids[i].changes(other)
		if !ok {
			return nil, false
		}
		all = append(all, more...)
	}
	return all, true
}

// length is how many characters of a line the scalar takes that begins it; 0 where it
// cannot be told.
func (c change) length(line []rune) int {
	switch {
	case len(line) == 0:
	case line[0] == '"' || line[0] == '\'':
		for i := 1; i < len(line); i++ {
			switch {
			case line[i] == '\\' && line[0] == '"':
				i++
			case line[i] == line[0] && line[0] == '\'' && i+1 < len(line) && line[i+1] == '\'':
				i++
			case line[i] == line[0]:
				return i + 1
			}
		}
	default:
		if text := []rune(c.was.text); len(text) <= len(line) && string(line[:len(text)]) == c.was.text {
			return len(text)
		}
	}
	return 0
}

// spelled writes the scalar as the one was whose first character is given.
func (c change) spelled(asYAML bool, first rune) string {
	x := &element{kind: c.become.kind, text: c.become.text}
	if x.kind == '"' && (!asYAML || first == '"' || first == '\'') {
		return condition.Quote(x.text)
	}
	return new(yamlWriter).scalar(x, true)
}
