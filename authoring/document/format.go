package document

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Format returns the documents in data in canonical form, with their comments. The name selects
// JSON or YAML, as for [Parse]. Every error is an *[Error].
//
// In canonical form, the members of a policy, a rule or an intent are in the order of the Go types.
// Conditions and actions are objects. Indentation is two spaces. A YAML object or list stays on one
// line if the line has at most 100 characters and no comment. Single empty lines stay. Format does
// not change the value of any document. Formatting a formatted file changes nothing. Format refuses
// a file of which it would lose a comment.
//
// The Rego in the condition of a rule is formatted as OPA does, if it is a block of lines or fits on one
// line. A file whose name ends in .rego is Rego alone. Format refuses Rego that cannot be parsed.
func Format(name string, data []byte) ([]byte, error) {
	if path.Ext(name) == ".rego" {
		return formatRegoFile(name, data)
	}
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	if err := checkRego(docs); err != nil {
		return nil, err
	}
	return format(docs, data, true)
}

// arrange is [Format], but it leaves Rego as it is.
func arrange(name string, data []byte) ([]byte, error) {
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	return format(docs, data, false)
}

// format returns the documents of a file in canonical form. It formats their Rego only if rego says so.
func format(docs []*Document, data []byte, rego bool) ([]byte, error) {
	f := docs[0].file
	if !f.yaml {
		return f.formatJSON(rego)
	}
	out := data
	for range MaxPasses {
		pages, err := yamlNodes(withMarks(out))
		if err != nil {
			return nil, f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
		}
		if rego {
			f.formatRegoIn(pages)
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

// unchanged returns an error unless out has the same documents and comments as f. Formatting must
// not lose anything that an author wrote.
func (f *file) unchanged(docs []*Document, out []byte) error {
	after, err := Parse(f.name, out)
	if err != nil {
		return f.refuse(Place{1, 1}, "cannot be formatted: %v", err)
	}
	if !slices.EqualFunc(docs, after, equalFormatted) {
		return f.refuse(Place{1, 1}, "cannot be formatted: a document would change")
	}
	return f.checkComments(texts(commentsOf(f.text)), texts(commentsOf(out)))
}

// checkComments returns an error if a change of f loses one of the comments. kept has the comments
// of the changed file.
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
		if len(doc.Content) > 0 && !isEmpty(doc.Content[0]) { // the document has a value, not only comments
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

// arrange puts the members of a document into canonical order, and writes the condition and the
// action of a rule as objects. Comments above the first member and below the last member belong to
// the document. page is the YAML document that y is in.
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

// hasAlias reports whether y has an alias. The anchor of an alias must stay above the alias.
func hasAlias(y *yaml.Node) (found bool) {
	walk(y, func(y *yaml.Node) { found = found || y.Kind == yaml.AliasNode })
	return found
}

// layOut prepares a node for the encoder. It breaks lines that are too long, and quotes texts that
// the YAML library would change. It moves the comments that the library would write at another
// place. y begins at column. Its lines begin at indent.
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
			if len(kid.Content) > 0 && kid.Style&yaml.FlowStyle == 0 { // the child begins on the line of the dash
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

// writable reports whether the YAML library reads a plain text back unchanged.
func writable(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
		return false
	}
	body := strings.TrimSuffix(text, "\n")
	return !strings.Contains(text, "\n") || body != "" && strings.TrimSpace(body) == body &&
		!strings.Contains(body, " \n") && !strings.Contains(body, "\t\n")
}

func (f *file) formatJSON(rego bool) ([]byte, error) {
	roots, err := f.readJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, root := range roots {
		each := root.documents()
		for i, n := range each {
			k := kindOf(n)
			if each[i] = n.withObjects(k); rego && k == Rule {
				each[i] = each[i].withRego(onOneLine)
			}
			if k != Suite {
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

// order returns the indexes of an object's members in the canonical order of kind k. Members that k
// does not have come last.
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

// yamlOf makes a YAML node of a value. A list that is a member of a document has one item on each
// line. A short value within a condition or an action is on one line.
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

// yamlText makes a YAML node of a text. The text is quoted if YAML would read it as another type. A
// time is not quoted.
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

// depthOf returns the depth for [yamlOf] of a document's member. An action is short, so its depth
// is greater.
func depthOf(member string) int {
	if member == "action" {
		return 2
	}
	return 1
}

// conditionObject returns the object that a string holds as JSON, if the string is the condition or
// the action of a rule. Otherwise it returns nil.
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

// Equal reports whether two documents have the same values. It ignores the order of members. It
// compares conditions and actions as JSON.
func (d *Document) Equal(e *Document) bool {
	return d.Kind == e.Kind && string(d.Canonical()) == string(e.Canonical())
}

// Canonical returns the document in JSON with sorted members. Conditions and actions are objects.
func (d *Document) Canonical() jsontext.Value {
	return d.inlined().withObjects(d.Kind).canonical()
}

func (n *node) withObjects(k Kind) *node {
	if n.kind != '{' {
		return n
	}
	return n.withKids(func(i int, kid *node) *node { return cmp.Or(kid.conditionObject(k, n.keys[i].name), kid) })
}

func (n *node) canonical() jsontext.Value {
	text := n.json()
	_ = text.Format(jsontext.ReorderRawObjects(true)) // cannot fail: text is valid JSON
	return text
}

func (n *node) equal(m *node) bool { return bytes.Equal(n.canonical(), m.canonical()) }
