package document

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Format returns the documents in data in canonical form, with their comments. As for
// [Parse] the name tells JSON from YAML, and every error is an *[Error].
//
// The members of a policy, a rule and an intent are in the order of the Go types, conditions and
// actions are objects, and indentation is two spaces. A YAML object or list on one line stays
// there if the line has at most 100 characters and no comment. Single empty lines stay. Format
// changes no document, and formatting twice is formatting once. It refuses a file of which it
// would lose a comment.
func Format(name string, data []byte) ([]byte, error) {
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	f := docs[0].file
	if !f.yaml {
		return f.formatJSON()
	}
	out := data
	for range MaxPasses {
		pages, err := yamlNodes(withMarks(out))
		if err != nil {
			return nil, f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
		}
		next, err := f.write(pages)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(next, out) {
			return out, f.unchanged(docs, out)
		}
		out = next
	}
	return nil, f.refuse(Place{1, 1}, "cannot be formatted: its comments would move each time")
}

// unchanged refuses out unless it has the documents and the comments of f: formatting must lose
// nothing that an author wrote.
func (f *file) unchanged(docs []*Document, out []byte) error {
	after, err := Parse(f.name, out)
	if err != nil {
		return f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
	}
	if !slices.EqualFunc(docs, after, (*Document).Equal) {
		return f.refuse(Place{1, 1}, "cannot be formatted: a document would change")
	}
	return f.checkComments(texts(commentsOf(f.text)), texts(commentsOf(out)))
}

// checkComments refuses a change of f that loses one of its comments. kept are the comments of
// the result.
func (f *file) checkComments(comments, kept []string) error {
	left := map[string]int{}
	for _, c := range kept {
		left[c]++
	}
	for _, text := range comments {
		if left[text]--; left[text] < 0 {
			at := Place{1, 1}
			all := commentsOf(f.text)
			if i := slices.IndexFunc(all, func(c comment) bool { return c.text == text }); i >= 0 {
				at = all[i].at
			}
			return f.refuse(at, "this comment would be lost: write it on a line of its own, above a member")
		}
	}
	return nil
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

// write writes YAML documents in canonical form.
func (f *file) write(pages []*yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, page := range pages {
		root := page.Content[0]
		each := []*yaml.Node{root}
		if root.Kind == yaml.SequenceNode {
			each = root.Content
		}
		for _, y := range each {
			if err := f.arrange(page, y); err != nil {
				return nil, err
			}
		}
		layOut(root, 0, 0)
		if err := enc.Encode(page); err != nil {
			return nil, f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
		}
	}
	err := enc.Close()
	return withoutMarks(b.Bytes()), err
}

// arrange puts the members of a document of a page in order, and writes a rule's condition and
// action as objects. Comments above the first member and below the last belong to the document.
func (f *file) arrange(page, y *yaml.Node) error {
	n, err := (&yamlReader{file: f}).value(y)
	if err != nil || y.Kind != yaml.MappingNode {
		return err
	}
	k := kindOf(n)
	for i, name := range n.keys {
		if object := n.kids[i].conditionObject(k, name.name); object != nil &&
			y.Content[2*i+1].Kind == yaml.ScalarNode &&
			y.Content[2*i+1].Anchor == "" {
			y.Content[2*i+1] = keepComments(yamlOf(object, depthOf(name.name)), y.Content[2*i+1])
		}
	}
	if k == Suite || len(n.kids) == 0 || hasAlias(page) {
		return nil
	}
	var members []*yaml.Node
	for _, i := range n.order(k) {
		members = append(members, y.Content[2*i], y.Content[2*i+1])
	}
	if members[0] != y.Content[0] {
		y.HeadComment, y.Content[0].HeadComment = join(y.HeadComment, y.Content[0].HeadComment), ""
	}
	last := y.Content[len(y.Content)-2]
	if members[len(members)-2] != last {
		y.FootComment, last.FootComment = join(last.FootComment, y.FootComment), ""
	}
	y.Content = members
	return nil
}

func join(above, below string) string { return strings.Trim(above+"\n"+below, "\n") }

// hasAlias reports whether y has an alias. Its anchor must stay above it.
func hasAlias(y *yaml.Node) (found bool) {
	walk(y, func(y *yaml.Node) { found = found || y.Kind == yaml.AliasNode })
	return found
}

// layOut prepares a node for the encoder. It breaks lines that are too long, quotes texts that
// the YAML library would change, and moves comments to where the library writes them as it reads
// them. y begins at column, its lines at indent.
func layOut(y *yaml.Node, indent, column int) {
	switch {
	case y.Tag == "!!null":
		y.Value = "null"
	case y.Tag == "!!str" && !writable(y.Value):
		y.Style = yaml.DoubleQuotedStyle
	}
	if column+width(y)-2 > MaxLine {
		y.Style &^= yaml.FlowStyle
	}
	for i, kid := range y.Content {
		switch {
		case y.Style&yaml.FlowStyle != 0:
			layOut(kid, 0, -MaxLine)
		case y.Kind == yaml.SequenceNode:
			layOut(kid, indent+2, indent+2)
			if len(kid.Content) > 0 && kid.Style&yaml.FlowStyle == 0 { // on the line of the dash
				kid.HeadComment, kid.Content[0].HeadComment = join(kid.HeadComment, kid.Content[0].HeadComment), ""
			}
			below := &y.FootComment
			if i+1 < len(y.Content) {
				below = &y.Content[i+1].HeadComment
			}
			*below, kid.FootComment = join(kid.FootComment, *below), ""
		case i%2 == 1:
			layOut(kid, indent+2, indent+len([]rune(y.Content[i-1].Value))+2)
			y.Content[i-1].FootComment, kid.FootComment = join(kid.FootComment, y.Content[i-1].FootComment), ""
		}
	}
}

// width estimates the length of a value on one line.
func width(y *yaml.Node) (n int) {
	walk(y, func(y *yaml.Node) {
		if n += len([]rune(y.Value)) + 2; y.Style&inQuotes != 0 {
			n += 2
		}
	})
	return n
}

// writable reports whether the YAML library reads a plain text back as it was written.
func writable(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
		return false
	}
	body := strings.TrimSuffix(text, "\n")
	return !strings.Contains(text, "\n") || body != "" && strings.TrimSpace(body) == body &&
		!strings.Contains(body, " \n") && !strings.Contains(body, "\t\n")
}

func (f *file) formatJSON() ([]byte, error) {
	roots, err := f.readJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, root := range roots {
		each := root.documents()
		for i, n := range each {
			k := kindOf(n)
			if each[i] = n.withObjects(k); k != Suite {
				each[i] = each[i].reordered(each[i].order(k))
			}
		}
		if root.kind != '[' {
			root = each[0]
		}
		text := root.json()
		if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
			return nil, err
		}
		b.Write(append(text, '\n'))
	}
	return b.Bytes(), nil
}

// order returns the indexes of an object's members in the canonical order of a kind. Unknown
// members are last.
func (n *node) order(k Kind) []int {
	names := members()[k]
	rank := func(i int) int {
		if at := slices.Index(names, n.keys[i].name); at >= 0 {
			return at
		}
		return len(names)
	}
	places := make([]int, len(n.kids))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(rank(i), rank(j)) })
	return places
}

// reordered returns an object with its members in another order.
func (n *node) reordered(order []int) *node {
	if n.kind != '{' {
		return n
	}
	c := *n
	c.keys, c.kids = nil, nil
	for _, i := range order {
		c.keys, c.kids = append(c.keys, n.keys[i]), append(c.kids, n.kids[i])
	}
	return &c
}

// yamlOf makes YAML of a value. A list of a document has an item a line. Short values inside of
// conditions and actions are on one line.
func yamlOf(n *node, depth int) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	switch n.kind {
	case '{', '[':
		y.Kind, y.Value = yaml.MappingNode, ""
		if n.kind == '[' {
			y.Kind = yaml.SequenceNode
		}
		for i, kid := range n.kids {
			deeper := depth + 1
			if n.kind == '{' {
				y.Content = append(y.Content, yamlText(n.keys[i].name))
				if depth == 0 {
					deeper = depthOf(n.keys[i].name)
				}
			}
			y.Content = append(y.Content, yamlOf(kid, deeper))
		}
		if depth > 1 && width(y) <= MaxLine*4/5 || len(n.kids) == 0 {
			y.Style = yaml.FlowStyle
		}
	case '"':
		return yamlText(n.text)
	}
	return y
}

// yamlText makes YAML of a text. It is quoted if YAML would read it as another type. Times stay
// plain.
func yamlText(s string) *yaml.Node {
	y := new(yaml.Node)
	if err := yaml.Unmarshal([]byte(s), y); err == nil && len(y.Content) == 1 && y.Content[0].Tag == "!!timestamp" &&
		y.Content[0].Value == s {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: s}
	}
	y.SetString(s)
	if err := y.Encode(s); err != nil || y.Tag != "!!str" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	}
	return y
}

// keepComments gives y the comments and the anchor of the node that it replaces.
func keepComments(y, old *yaml.Node) *yaml.Node {
	y.HeadComment, y.LineComment, y.FootComment, y.Anchor = old.HeadComment, old.LineComment, old.FootComment,
		old.Anchor
	return y
}

// depthOf returns the depth of a member of a document for [yamlOf]: an action is short.
func depthOf(member string) int {
	if member == "action" {
		return 2
	}
	return 1
}

// conditionObject returns the object in the string of a condition or an action, or nil.
func (n *node) conditionObject(k Kind, member string) *node {
	if k != Rule || member != "condition" && member != "action" || n.kind != '"' {
		return nil
	}
	roots, err := newFile("", []byte(n.text)).readJSON()
	if err != nil || len(roots) != 1 || roots[0].kind != '{' {
		return nil
	}
	return roots[0]
}

// Equal reports whether two documents have the same values. The order of members does not count,
// and conditions and actions are compared as JSON.
func (d *Document) Equal(e *Document) bool {
	return d.Kind == e.Kind && string(d.Canonical()) == string(e.Canonical())
}

// Canonical returns the document in JSON with sorted members, conditions and actions as
// objects.
func (d *Document) Canonical() jsontext.Value {
	return d.root.withObjects(d.Kind).canonical()
}

// withObjects returns a rule with its condition and action as objects.
func (n *node) withObjects(k Kind) *node {
	if n.kind != '{' {
		return n
	}
	return n.withKids(func(i int, kid *node) *node { return cmp.Or(kid.conditionObject(k, n.keys[i].name), kid) })
}

// canonical returns the value in JSON with sorted members.
func (n *node) canonical() jsontext.Value {
	text := n.json()
	_ = text.Format(jsontext.ReorderRawObjects(true)) // it is valid
	return text
}

// equal reports whether two values are the same but for the order of members.
func (n *node) equal(m *node) bool { return bytes.Equal(n.canonical(), m.canonical()) }
