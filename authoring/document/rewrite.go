package document

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Edit changes one document of a file.
type Edit struct {
	// Index is the document's index in the result of [Parse]. A greater Index adds a document at
	// the end.
	Index int
	// JSON is the new document, in the form of the wire or of files. Nil removes the document.
	JSON jsontext.Value
}

// Rewrite returns data with documents changed, added and removed. Values that do not change keep
// their comments and their places. If only scalars change, Rewrite replaces only their text.
// Otherwise it writes the whole file in the canonical form of [Format], but leaves Rego as it is. Data may
// be empty. Rewrite returns the errors of [Parse] and [Format].
func Rewrite(name string, data []byte, edits ...Edit) ([]byte, error) {
	f := newFile(name, data)
	var docs []*Document
	var err error
	if len(bytes.TrimSpace(data)) > 0 {
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
		if out, err = f.merge(docs, wanted); err != nil || len(out) == 0 {
			return nil, err
		}
	}
	if !says(name, out, wanted) {
		return nil, f.refuse(Place{1, 1}, "cannot be changed: write the change by hand, or format the file first")
	}
	return out, nil
}

// Set returns data with the values at some places replaced, as [Rewrite] does. The new values are
// JSON. A value and its aliases have one place.
func Set(name string, data []byte, values map[Place]jsontext.Value) ([]byte, error) {
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	others := make(map[Place]*node)
	for at, v := range values {
		if others[at], err = readNode(v); err != nil {
			return nil, err
		}
	}
	edits := make([]Edit, len(docs))
	for i, d := range docs {
		n := d.root.replaced(nil, func(n *node, _ []string) *node {
			if n.plain() {
				return others[n.at]
			}
			return nil
		})
		edits[i] = Edit{Index: i, JSON: n.json()}
	}
	return Rewrite(name, data, edits...)
}

// says reports whether data parses to exactly the wanted documents.
func says(name string, data []byte, wanted []*node) bool {
	docs, err := Parse(name, data)
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(n *node) bool { return n == nil })
	return err == nil && slices.EqualFunc(docs, wanted, func(d *Document, n *node) bool { return d.root.same(n) })
}

func (n *node) same(m *node) bool {
	return n.withObjects(kindOf(n)).equal(m.withObjects(kindOf(m)))
}

// readNode reads a JSON value. It returns nil for nil data.
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

// splice replaces the text of the scalars that differ. It reports false if anything else differs.
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
		changes, ok := d.root.withObjects(k).changes(wanted[i].withObjects(k))
		if !ok {
			return nil, false
		}
		all = append(all, changes...)
	}
	lines := bytes.SplitAfter(f.text, []byte("\n"))
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(b.at.Line-a.at.Line, b.at.Column-a.at.Column) })
	all = slices.CompactFunc(all, func(a, b change) bool { return a.at == b.at }) // aliases share one change
	// Changes are made from the end of the file to its start, so that the earlier places stay
	// right.
	for _, c := range all {
		if c.at.Line < 1 || c.at.Line > len(lines) {
			return nil, false
		}
		line := string(lines[c.at.Line-1])
		before := prefix(line, c.at.Column-1)
		rest := line[len(before):]
		length := c.length(rest)
		if length == 0 {
			return nil, false
		}
		lines[c.at.Line-1] = []byte(before + c.spelled(f.yaml, rest[0]) + rest[length:])
	}
	out := bytes.Join(lines, nil)
	return out, says(f.name, out, wanted)
}

type change struct {
	at     Place
	was    *node
	become *node
}

// changes returns the scalars and the lists of scalars that differ. It reports false if anything
// else differs.
func (n *node) changes(to *node) (all []change, ok bool) {
	switch {
	case n.equal(to):
		return nil, true
	case n.kind == to.kind && len(n.kids) > 0 && len(n.kids) == len(to.kids):
	case n.plain() && to.plain():
		return []change{{n.at, n, to}}, true
	default:
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

func (n *node) plain() bool {
	collection := func(kid *node) bool { return kid.kind == '{' || kid.kind == '[' }
	return !collection(n) || n.kind == '[' && !slices.ContainsFunc(n.kids, collection)
}

// quotedText and flowList match a value that ends on the line where it begins.
var (
	quotedText = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')`)
	flowList   = regexp.MustCompile(`^\[(?:[^\[\]{}"'#]|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')*\]`)
)

// length returns how many bytes of line the old value takes. line begins with the value. It returns
// 0 if the value may continue on the next line.
func (c change) length(line string) int {
	switch {
	case line == "" || c.was.kind == '[' && line[0] != '[':
		return 0
	case line[0] == '"' || line[0] == '\'':
		return len(quotedText.FindString(line))
	case line[0] == '[':
		return len(flowList.FindString(line))
	case strings.HasPrefix(line, c.was.text):
		return len(c.was.text)
	}
	return 0
}

// spelled returns the new value in the style of the old value. first is the old value's first byte.
func (c change) spelled(asYAML bool, first byte) string {
	if !asYAML || c.become.kind == '"' && (first == '"' || first == '\'' || strings.Contains(c.become.text, "\n")) {
		return string(c.become.json())
	}
	y := yamlOf(c.become, 2)
	y.Style |= yaml.FlowStyle
	if strings.ContainsAny(y.Value, ",[]{}") { // these characters end a value within braces or brackets
		return string(c.become.json())
	}
	text, err := yaml.Marshal(y)
	if err != nil {
		return string(c.become.json())
	}
	return strings.TrimSuffix(string(text), "\n")
}

// merge writes the file with the wanted documents instead of docs. Values that stay keep their
// comments.
func (f *file) merge(docs []*Document, wanted []*node) ([]byte, error) {
	if !f.yaml {
		return f.mergeJSON(wanted)
	}
	pages, err := yamlNodes(withMarks(f.text))
	if err != nil {
		return nil, f.refuse(Place{1, 1}, "cannot be changed: %v", err)
	}
	if err := f.checkComments(texts(commentsOf(f.text)), nodeComments(pages)); err != nil {
		return nil, err
	}
	i := 0
	next := func(y *yaml.Node) *yaml.Node {
		n, k := wanted[i], kindOf(docs[i].root)
		if i++; n == nil {
			return nil
		}
		return f.mergeNode(y, k, n.withObjects(k), 0)
	}
	for _, page := range pages {
		root := page.Content[0]
		if root.Kind != yaml.SequenceNode {
			page.Content[0] = next(root)
			continue
		}
		for j, y := range root.Content {
			root.Content[j] = next(y)
		}
		root.Content = slices.DeleteFunc(root.Content, func(y *yaml.Node) bool { return y == nil })
	}
	pages = slices.DeleteFunc(pages, func(page *yaml.Node) bool {
		root := page.Content[0]
		return root == nil || root.Kind == yaml.SequenceNode && len(root.Content) == 0
	})
	for _, n := range wanted[i:] {
		y := yamlOf(n.withObjects(kindOf(n)), 0)
		if last := len(pages) - 1; last >= 0 && pages[last].Content[0].Kind == yaml.SequenceNode {
			pages[last].Content[0].Content = append(pages[last].Content[0].Content, y)
			continue
		}
		pages = append(pages, &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{y}})
	}
	if len(pages) == 0 {
		return nil, nil
	}
	comments := nodeComments(pages)
	out, err := f.write(pages)
	if err == nil {
		out, err = arrange(f.name, out)
	}
	if err != nil {
		return nil, err
	}
	return out, f.checkComments(comments, texts(commentsOf(out)))
}

func nodeComments(pages []*yaml.Node) (all []string) {
	for _, page := range pages {
		walk(page, func(y *yaml.Node) {
			for line := range strings.SplitSeq(y.HeadComment+"\n"+y.LineComment+"\n"+y.FootComment, "\n") {
				if line = strings.TrimSpace(line); line != "" && line != mark {
					all = append(all, line)
				}
			}
		})
	}
	return all
}

// mergeJSON writes the wanted documents in JSON. If the file was an array, the result is an array.
func (f *file) mergeJSON(wanted []*node) ([]byte, error) {
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(n *node) bool { return n == nil })
	if len(wanted) == 0 {
		return nil, nil
	}
	if text := bytes.TrimSpace(f.text); len(text) > 0 && text[0] == '[' {
		wanted = []*node{{kind: '[', kids: wanted}}
	}
	var all []byte
	for _, n := range wanted {
		all = append(append(all, n.json()...), '\n')
	}
	return arrange(f.name, all)
}

// mergeNode returns y changed to the value n. Parts that are equal keep their spelling. k is the
// kind of n. It is empty if n is a part of a document.
func (f *file) mergeNode(y *yaml.Node, k Kind, n *node, depth int) *yaml.Node {
	was, err := (&yamlReader{file: f}).value(y)
	if err == nil && was.withObjects(k).equal(n) {
		return y
	}
	z := keepComments(yamlOf(n, depth), y)
	if err != nil || was.kind != n.kind || n.kind != '{' && n.kind != '[' || y.Kind == yaml.AliasNode {
		return z
	}
	z.Style, z.Content = y.Style, nil
	if n.kind == '{' {
		f.mergeMembers(z, y, n, depth)
		return z
	}
	used := make([]bool, len(y.Content))
	for i, kid := range n.kids {
		j := slices.IndexFunc(was.kids, kid.equal)
		if (j < 0 || used[j]) && len(n.kids) == len(y.Content) {
			j = i
		}
		if j < 0 || used[j] {
			z.Content = append(z.Content, yamlOf(kid, depth+1))
			continue
		}
		used[j] = true
		z.Content = append(z.Content, f.mergeNode(y.Content[j], "", kid, depth+1))
	}
	return z
}

// mergeMembers gives z the members of n. The members that y already has come first, in y's order.
func (f *file) mergeMembers(z, y *yaml.Node, n *node, depth int) {
	fresh := yamlOf(n, depth).Content
	for i := 0; i < len(y.Content); i += 2 {
		name := y.Content[i]
		if at := slices.IndexFunc(n.keys, func(k key) bool { return k.name == name.Value }); at >= 0 {
			deeper := depth + 1
			if depth == 0 {
				deeper = depthOf(name.Value)
			}
			z.Content = append(z.Content, name, f.mergeNode(y.Content[i+1], "", n.kids[at], deeper))
			fresh[2*at] = nil
		}
	}
	for i := 0; i < len(fresh); i += 2 {
		if fresh[i] != nil {
			z.Content = append(z.Content, fresh[i], fresh[i+1])
		}
	}
}
