package document

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine/condition"
)

// node is a value of a document with its place in the file.
type node struct {
	// kind is the first byte of the value in JSON: one of { [ " 0 t f n.
	kind jsontext.Kind
	// text is the text of a string, or the JSON of a number, true, false or null.
	text string
	at   Place
	// keyAt is the place of the member's name. It is zero for an element of an array.
	keyAt Place
	// textAt is where a string's text begins: after the quote, or on the line below a block's
	// header.
	textAt Place
	// split is set on the empty value of a key in braces, if the key follows a text without
	// quotes. There YAML may have split one text at a comma. split joins the text and the key
	// again. It is empty for any other value.
	split string
	// rego is the content of the Rego file that the object names. [Load] sets it.
	rego *RegoFile
	keys []key   // the names of an object's members; kids has their values
	kids []*node // the elements of an array, the values of an object
}

type key struct {
	name string
	at   Place
}

func (n *node) documents() []*node {
	if n.kind == '[' {
		return n.kids
	}
	return []*node{n}
}

func (n *node) member(name string) *node {
	for i := range n.keys {
		if n.keys[i].name == name {
			return n.kids[i]
		}
	}
	return nil
}

// json returns the value in JSON, without white space.
func (n *node) json() jsontext.Value {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case '"':
		b.WriteString(condition.Quote(n.text))
	case '{', '[':
		b.WriteByte(byte(n.kind))
		for i, kid := range n.kids {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.kind == '{' {
				b.WriteString(condition.Quote(n.keys[i].name) + ":")
			}
			kid.write(b)
		}
		b.WriteByte(byte(n.kind) + 2) // in ASCII, } is { + 2 and ] is [ + 2
	default:
		b.WriteString(n.text)
	}
}

// replaced returns n with some of its values replaced. by returns the new value, or nil to keep the
// old one. path has the names of members and the indexes that lead to a value.
func (n *node) replaced(path []string, by func(n *node, path []string) *node) *node {
	if other := by(n, path); other != nil {
		return other
	}
	return n.withKids(func(i int, kid *node) *node {
		name := strconv.Itoa(i)
		if n.kind == '{' {
			name = n.keys[i].name
		}
		return kid.replaced(append(path, name), by)
	})
}

// withKids returns n with each kid replaced by the result of other. The kids are the elements of an
// array or the values of an object.
func (n *node) withKids(other func(i int, kid *node) *node) *node {
	c := *n
	c.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		c.kids[i] = other(i, kid)
	}
	return &c
}

// find follows a path, such as policy.denied_action_types[2] or intent.metadata.fact.env, as far as
// values exist. It returns the last value that exists and the remaining path. A key may have dots,
// so find takes the longest key that fits.
func (n *node) find(path string) (found *node, rest string) {
	for path != "" {
		next, left := n.step(path)
		if next == nil {
			return n, path
		}
		n, path = next, left
	}
	return n, ""
}

func (n *node) step(path string) (next *node, rest string) {
	if index, ok := strings.CutPrefix(path, "["); ok {
		digits, rest, _ := strings.Cut(index, "]")
		i, err := strconv.Atoi(digits)
		if err != nil || i < 0 || i >= len(n.kids) {
			return nil, path
		}
		return n.kids[i], rest
	}
	path = strings.TrimPrefix(path, ".")
	longest := -1
	for i := range n.keys {
		left, ok := strings.CutPrefix(path, n.keys[i].name)
		if ok && len(n.keys[i].name) > longest && (left == "" || left[0] == '.' || left[0] == '[') {
			next, rest, longest = n.kids[i], left, len(n.keys[i].name)
		}
	}
	return next, rest
}

func (n *node) follow(pointer string) *node {
	for token := range jsontext.Pointer(pointer).Tokens() {
		next := n.member(token)
		if i, err := strconv.Atoi(token); err == nil && n.kind == '[' && i < len(n.kids) {
			next = n.kids[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
