package document

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Format returns the documents in data in canonical form, with their comments. As for
// [Parse] the name tells JSON from YAML, and every error is an *[Error].
//
// The members of a policy, a rule and an intent are in the order of the Go types, conditions
// and actions are objects, and indentation is two spaces. What the author wrote on one line in
// braces or brackets stays so where it fits on a line of 100 characters and holds no comment.
// Scalars are spelled as they were; single empty lines stay. Format changes no document, and
// formatting twice is formatting once.
func Format(name string, data []byte) ([]byte, error) {
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	f := docs[0].file
	out := data
	for range MaxPasses {
		passed := newFile(name, out)
		pages, err := passed.pages()
		if err != nil {
			return nil, err
		}
		next := passed.write(pages)
		if bytes.Equal(next, out) {
			return out, f.unchanged(docs, out)
		}
		out = next
	}
	return nil, f.refuse(Place{1, 1}, "cannot be formatted: its comments would move each time")
}

// unchanged refuses a form of f that says something else or lacks a comment: nothing an
// author wrote may get lost by formatting.
func (f *file) unchanged(docs []*Document, out []byte) error {
	after, err := Parse(f.name, out)
	if err != nil {
		return f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
	}
	if !slices.EqualFunc(docs, after, (*Document).Equal) {
		return f.refuse(Place{1, 1}, "cannot be formatted: a document would change")
	}
	if !f.yaml {
		return nil
	}
	was, is := commentsOf(f.text), commentsOf(out)
	for i, c := range was {
		if j := slices.IndexFunc(is, func(d comment) bool { return c.text == d.text }); j >= 0 {
			is = slices.Delete(is, j, j+1)
			continue
		}
		return f.refuse(was[i].at, "cannot be formatted: this comment would be lost; write it on a line of its own")
	}
	return nil
}

func commentsOf(text []byte) []comment {
	nodes, err := yamlNodes(text)
	if err != nil {
		return nil
	}
	return readText(text, nodes).comments
}

// pages reads a file as it is written.
func (f *file) pages() ([]page, error) {
	if !f.yaml {
		roots, err := f.readJSON()
		pages := make([]page, len(roots))
		for i, n := range roots {
			pages[i].root = made(n, 0)
		}
		return pages, err
	}
	nodes, err := yamlNodes(f.text)
	if err != nil {
		return nil, f.yamlSyntax(err)
	}
	b := &builder{text: readText(f.text, nodes)}
	var pages []page
	for _, doc := range nodes {
		pages = append(pages, page{root: b.value(doc.Content[0], nil, false)})
		b.doc++
	}
	b.text.attach(b.starts)
	for i := range pages {
		pages[i].takeComments(b.starts, i)
		if b.shared {
			pages[i].root.fixed = true
		}
	}
	return pages, nil
}

// yamlNodes returns the documents of a file that are not empty.
func yamlNodes(text []byte) (docs []*yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		doc := new(yaml.Node)
		err := dec.Decode(doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(doc.Content) > 0 && !isEmpty(doc.Content[0]) { // more than comments
			docs = append(docs, doc)
		}
	}
}

// takeComments takes the comments above and below all of a document from its first and its
// last member, in whose place another may be later.
func (p *page) takeComments(starts []*element, doc int) {
	var first, last *element
	for _, x := range starts {
		if x.doc == doc && x.up == nil {
			first, last = cmp.Or(first, x), x
		}
	}
	if first == nil {
		return
	}
	p.foot, last.foot = last.foot, nil
	if first.blank && len(first.head) > 0 {
		first.head = append(first.head, "")
	}
	first.blank = false
	p.head, first.head = first.head, nil
}

func (f *file) write(pages []page) []byte {
	roots := make([]*element, len(pages))
	for i, p := range pages {
		roots[i] = p.root
		each := []*element{p.root}
		if p.root.kind == '[' {
			each = p.root.kids
		}
		for _, x := range each {
			x.natural(kindOf(x.node()))
			if !p.root.fixed {
				x.arrange(kindOf(x.node()))
			}
		}
	}
	if f.yaml {
		return writeYAML(pages)
	}
	return writeJSON(roots)
}

// natural writes a rule's condition and action as objects.
func (x *element) natural(k Kind) {
	for i, name := range x.keys {
		if k != Rule || name.text != "condition" && name.text != "action" || x.kids[i].kind != '"' {
			continue
		}
		if n := parseObject(x.kids[i].text); n != nil && x.kids[i].anchor == "" {
			x.kids[i] = made(n, depthOf(name.text))
		}
	}
}

// depthOf returns how deep a member of a document counts for [made]: an action is short.
func depthOf(member string) int {
	if member == "action" {
		return 2
	}
	return 1
}

// parseObject reads JSON in a string, nil unless it is an object.
func parseObject(text string) *node {
	roots, err := newFile("", []byte(text)).readJSON()
	if err != nil || len(roots) != 1 || roots[0].kind != '{' {
		return nil
	}
	return roots[0]
}

// arrange puts the members of a document in order. Those that it does not know are last.
func (x *element) arrange(k Kind) {
	order := members()[k]
	if x.kind != '{' || k == Suite || len(order) == 0 {
		return
	}
	x.sortMembers(func(name string) int {
		if at := slices.Index(order, name); at >= 0 {
			return at
		}
		return len(order)
	})
}

// sortMembers sorts the members by the ranks of their names.
func (x *element) sortMembers(rank func(name string) int) {
	places := make([]int, len(x.keys))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(rank(x.keys[i].text), rank(x.keys[j].text)) })
	keys, kids := slices.Clone(x.keys), slices.Clone(x.kids)
	for i, from := range places {
		x.keys[i], x.kids[i] = keys[from], kids[from]
	}
}

// Equal reports whether two documents say the same: the order of members does not count,
// and conditions and actions are compared as the JSON that they are.
func (d *Document) Equal(e *Document) bool {
	return d.Kind == e.Kind && string(d.Canonical()) == string(e.Canonical())
}

// Canonical returns the document in JSON with sorted members, conditions and actions as
// objects.
func (d *Document) Canonical() jsontext.Value {
	return d.root.natural(d.Kind).sorted().json()
}

// natural is a rule with its condition and action as objects.
func (n *node) natural(k Kind) *node {
	if k != Rule || n.kind != '{' {
		return n
	}
	c := *n
	c.kids = slices.Clone(n.kids)
	for i, name := range n.keys {
		if name.name != "condition" && name.name != "action" || n.kids[i].kind != '"' {
			continue
		}
		if object := parseObject(n.kids[i].text); object != nil {
			c.kids[i] = object
		}
	}
	return &c
}

// sorted is the value with the members of each object in the order of their names.
func (n *node) sorted() *node {
	c := &node{kind: n.kind, text: n.text}
	places := make([]int, len(n.kids))
	for i := range places {
		places[i] = i
	}
	if n.kind == '{' {
		slices.SortFunc(places, func(i, j int) int { return strings.Compare(n.keys[i].name, n.keys[j].name) })
	}
	for _, i := range places {
		if n.kind == '{' {
			c.keys = append(c.keys, key{name: n.keys[i].name})
		}
		c.kids = append(c.kids, n.kids[i].sorted())
	}
	return c
}
