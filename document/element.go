package document

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// element is a value as it is written: with its comments, and the author's spelling
// where it can be kept.
//
// Comments belong to what begins a line: the key of a member in a block mapping, the
// value of an item in a block sequence.
type element struct {
	kind jsontext.Kind
	text string // as a node's
	// raw is how the author spelled a scalar of one line; empty where it is spelled anew.
	raw string
	// flow says that an object or array is on one line, in braces or brackets.
	flow   bool
	anchor string // of YAML, with its & or *
	keys   []*element
	kids   []*element

	comments
	at Place
	// indent is the column of what begins the line, and up what begins the line around it.
	indent int
	up     *element
	doc    int
	// fixed is set on a document in which the order of members counts.
	fixed bool
}

// comments are those of an element.
type comments struct {
	head  []string // the lines above; "" is an empty line
	line  string   // at the end of the line
	foot  []string // below, before whatever follows further out
	blank bool     // an empty line is above the element, below head
}

// page is a YAML document with the comments above and below all of it.
type page struct {
	head []string
	root *element
	foot []string
}

type builder struct {
	text   *yamlText
	starts []*element // what begins a line, in the file's order
	doc    int
	// shared is set where a node has a second name, whose order counts.
	shared bool
}

// value makes an element. Where inline is set, nothing in it begins a line.
func (b *builder) value(y *yaml.Node, up *element, inline bool) *element {
	x := &element{at: Place{y.Line, y.Column}, up: up, doc: b.doc}
	if y.Anchor != "" {
		x.anchor, b.shared = "&"+y.Anchor, true
	}
	switch y.Kind {
	case yaml.AliasNode:
		x.kind, x.raw, b.shared = '"', "*"+y.Value, true
	case yaml.MappingNode, yaml.SequenceNode:
		x.kind = '['
		if y.Kind == yaml.MappingNode {
			x.kind = '{'
		}
		x.flow = inline || y.Style&yaml.FlowStyle != 0 && !b.text.commented(x.at)
		b.collect(x, y, up)
	default:
		b.scalar(x, y)
	}
	return x
}

func (b *builder) collect(x *element, y *yaml.Node, up *element) {
	step := 1
	if x.kind == '{' {
		step = 2
	}
	for i := 0; i+step <= len(y.Content); i += step {
		if x.kind == '[' {
			// The item begins the line before anything in it does.
			place := len(b.starts)
			b.starts = append(b.starts, nil)
			item := b.value(y.Content[i], nil, x.flow)
			x.kids = append(x.kids, item)
			if x.flow {
				b.starts = b.starts[:place]
				continue
			}
			item.up, item.indent, b.starts[place] = up, b.text.dash(item.at), item
			for _, inner := range b.starts[place+1:] {
				if inner.up == nil {
					inner.up = item
				}
			}
			continue
		}
		k := b.value(y.Content[i], up, true)
		if k.indent = k.at.Column; !x.flow {
			b.starts = append(b.starts, k)
		}
		x.keys = append(x.keys, k)
		x.kids = append(x.kids, b.value(y.Content[i+1], k, x.flow))
	}
}

// scalar keeps the spelling of a scalar of one line that means the same wherever it stands.
func (b *builder) scalar(x *element, y *yaml.Node) {
	x.kind, x.text = '"', y.Value
	switch y.Tag {
	case "!!bool":
		x.kind, x.text = 't', strings.ToLower(y.Value)
	case "!!null":
		x.kind, x.text = 'n', "null"
	case "!!int", "!!float":
		x.kind = '0'
	}
	switch {
	case y.Style&yaml.TaggedStyle != 0:
	case y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		x.raw = b.text.quoted[x.at]
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && b.text.has(x.at, y.Value):
		x.raw = y.Value
	}
}

// made makes an element of a node. Lists of a document are written an item a line, what
// is short inside of conditions and actions on one.
func made(n *node, depth int) *element {
	x := &element{kind: n.kind, text: n.text}
	for i, kid := range n.kids {
		deeper := depth + 1
		if n.kind == '{' {
			x.keys = append(x.keys, &element{kind: '"', text: n.keys[i].name})
			if depth == 0 {
				deeper = depthOf(n.keys[i].name)
			}
		}
		x.kids = append(x.kids, made(kid, deeper))
	}
	inside := 0
	if n.kind == '{' {
		inside = 1
	}
	width, ok := n.width(inside)
	x.flow = depth > 1 && ok && width <= MaxLine*4/5
	return x
}

// width is about how long the value is on one line, or false where it has more than so
// many levels of objects and arrays in it.
func (n *node) width(inside int) (width int, ok bool) {
	width = len(n.text) + 2
	if strings.Contains(n.text, "\n") {
		return 0, false
	}
	for i, kid := range n.kids {
		if (kid.kind == '{' || kid.kind == '[') && inside == 0 {
			return 0, false
		}
		w, ok := kid.width(inside - 1)
		if !ok {
			return 0, false
		}
		if n.kind == '{' {
			w += len(n.keys[i].name) + 2
		}
		width += w
	}
	return width, true
}

func (x *element) node() *node {
	n := &node{kind: x.kind, text: x.text}
	for i, kid := range x.kids {
		if x.kind == '{' {
			n.keys = append(n.keys, key{name: x.keys[i].text})
		}
		n.kids = append(n.kids, kid.node())
	}
	return n
}
