package document

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// comment is a comment of a YAML file. It is alone where nothing but indentation, dashes
// or a document's start is before it on its line.
type comment struct {
	at     Place
	column int    // of what begins the line, where that is a dash
	text   string // from the #
	alone  bool
	blank  bool // an empty line is above it
}

// yamlText is a YAML file with what a reader of its values skips. The YAML library loses
// some comments and moves others, so the comments are found here, by the places of the
// library's nodes: outside of quoted strings and blocks a # after white space begins one.
type yamlText struct {
	lines    [][]rune
	comments []comment
	quoted   map[Place]string // how quoted strings of one line are written
	ends     map[Place]Place  // of collections in braces or brackets
	starts   []int            // the lines that start a document (---)
	nodes    map[Place]*yaml.Node
	parents  map[*yaml.Node]int // the indentation around a block
}

// lineBreaks makes one of all that YAML 1.1 takes for the end of a line.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func readText(text []byte, docs []*yaml.Node) *yamlText {
	t := &yamlText{
		quoted: map[Place]string{}, ends: map[Place]Place{}, nodes: map[Place]*yaml.Node{}, parents: map[*yaml.Node]int{},
	}
	for line := range strings.SplitSeq(lineBreaks.Replace(string(text)), "\n") {
		t.lines = append(t.lines, []rune(line))
	}
	for _, d := range docs {
		t.index(d, 0)
	}
	t.scan()
	return t
}

// index files the nodes that hide a # by their places. indent is how far the lines of a
// block in y are indented at least.
func (t *yamlText) index(y *yaml.Node, indent int) {
	hides := yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.FlowStyle
	if y.Style&hides != 0 && y.Kind != yaml.AliasNode {
		t.nodes[Place{y.Line, y.Column}] = y
		t.parents[y] = indent
	}
	for i, c := range y.Content {
		switch {
		case y.Kind == yaml.MappingNode && i%2 == 1:
			t.index(c, y.Content[i-1].Column)
		case y.Kind == yaml.SequenceNode:
			t.index(c, t.dash(Place{c.Line, c.Column}))
		default:
			t.index(c, indent)
		}
	}
}

// dash returns the column of the dash before an item.
func (t *yamlText) dash(at Place) int {
	line := t.lines[at.Line-1]
	for i := min(at.Column-2, len(line)-1); i >= 0; i-- {
		if line[i] == '-' {
			return i + 1
		}
		if line[i] != ' ' && line[i] != '\t' {
			break
		}
	}
	return max(at.Column-2, 1)
}

// has reports whether text stands at a place, on one line.
func (t *yamlText) has(at Place, text string) bool {
	return text != "" && at.Line <= len(t.lines) && at.Column-1 <= len(t.lines[at.Line-1]) &&
		strings.HasPrefix(string(t.lines[at.Line-1][at.Column-1:]), text)
}

// commented reports whether a collection in braces or brackets has a comment in it.
func (t *yamlText) commented(at Place) bool {
	end := t.ends[at]
	return slices.ContainsFunc(t.comments, func(c comment) bool { return at.before(c.at) && c.at.before(end) })
}

func (p Place) before(q Place) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

func (t *yamlText) scan() {
	var open []Place // collections in braces or brackets
	for at := (Place{1, 1}); at.Line <= len(t.lines); {
		line := t.lines[at.Line-1]
		i := at.Column - 1
		if i >= len(line) {
			at = Place{at.Line + 1, 1}
			continue
		}
		if i == 0 && len(open) == 0 && strings.HasPrefix(string(line), "---") && (len(line) == 3 || line[3] == ' ' || line[3] == '\t') {
			t.starts = append(t.starts, at.Line)
			at.Column += 3
			continue
		}
		y := t.nodes[at]
		switch {
		case y != nil && y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
			at = t.skipQuoted(at, y)
			continue
		case y != nil && y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			at = t.skipBlock(at, y)
			continue
		case (line[i] == '{' || line[i] == '[') && (y != nil || len(open) > 0):
			open = append(open, at)
		case (line[i] == '}' || line[i] == ']') && len(open) > 0:
			t.ends[open[len(open)-1]] = at
			open = open[:len(open)-1]
		case line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			t.found(at)
			at = Place{at.Line + 1, 1}
			continue
		}
		at.Column++
	}
}

// found adds the comment at a place.
func (t *yamlText) found(at Place) {
	line := t.lines[at.Line-1]
	before := strings.TrimSpace(string(line[:at.Column-1]))
	column := at.Column
	if strings.HasPrefix(before, "-") {
		column = strings.Index(string(line), "-") + 1
	}
	t.comments = append(t.comments, comment{
		at: at, column: column, text: strings.TrimRight(string(line[at.Column-1:]), " \t\r"),
		alone: strings.Trim(before, "- ") == "", blank: t.blank(at.Line),
	})
}

// blank reports whether an empty line is above a line.
func (t *yamlText) blank(line int) bool {
	return line > 1 && strings.TrimSpace(string(t.lines[line-2])) == ""
}

// skipQuoted returns the place after a quoted string, which an anchor or a tag may precede.
func (t *yamlText) skipQuoted(at Place, y *yaml.Node) Place {
	quote, start := '\'', at
	if y.Style&yaml.DoubleQuotedStyle != 0 {
		quote = '"'
	}
	opened := false
	for ; at.Line <= len(t.lines); at = (Place{at.Line + 1, 1}) {
		line := t.lines[at.Line-1]
		for ; at.Column <= len(line); at.Column++ {
			c := line[at.Column-1]
			switch {
			case !opened:
				opened = c == quote
			case c == '\\' && quote == '"':
				at.Column++
			case c == quote && quote == '\'' && at.Column < len(line) && line[at.Column] == '\'':
				at.Column++
			case c == quote:
				if at.Line == start.Line && y.Anchor == "" {
					t.quoted[start] = string(line[start.Column-1 : at.Column])
				}
				return Place{at.Line, at.Column + 1}
			}
		}
	}
	return at
}

// skipBlock returns the place after a block (| or >).
func (t *yamlText) skipBlock(at Place, y *yaml.Node) Place {
	line := t.lines[at.Line-1]
	for i := at.Column; i < len(line); i++ {
		if line[i] == '#' && (line[i-1] == ' ' || line[i-1] == '\t') {
			t.found(Place{at.Line, i + 1})
			break
		}
	}
	for next := at.Line + 1; next <= len(t.lines); next++ {
		text := string(t.lines[next-1])
		trimmed := strings.TrimLeft(text, " ")
		if strings.TrimSpace(text) != "" && len(text)-len(trimmed) < t.parents[y] {
			return Place{next, 1}
		}
	}
	return Place{len(t.lines) + 1, 1}
}

// document returns which document a line is in, counting the starts before it.
func (t *yamlText) document(line int) int {
	i, _ := slices.BinarySearch(t.starts, line+1)
	return i
}

// attach gives the comments to what begins the lines.
func (t *yamlText) attach(starts []*element) {
	for _, x := range starts {
		x.blank = t.blank(x.at.Line)
	}
	for _, c := range t.comments {
		var before, after *element
		i, _ := slices.BinarySearchFunc(starts, c.at, func(x *element, at Place) int {
			if x.at.before(at) {
				return -1
			}
			return 1
		})
		doc := t.document(c.at.Line)
		if i > 0 && t.document(starts[i-1].at.Line) == doc {
			before = starts[i-1]
		}
		if i < len(starts) && t.document(starts[i].at.Line) == doc {
			after = starts[i]
		}
		switch {
		case !c.alone && before != nil && before.line == "":
			before.line = c.text
		case after != nil && (before == nil || !c.alone || c.column <= after.indent || after.up == before):
			after.head = c.appendTo(after.head)
		case before != nil:
			for before.up != nil && before.indent > c.column {
				before = before.up
			}
			before.foot = c.appendTo(before.foot)
		case i < len(starts):
			starts[i].head = c.appendTo(starts[i].head)
		case i > 0:
			for before = starts[i-1]; before.up != nil; {
				before = before.up
			}
			before.foot = c.appendTo(before.foot)
		}
	}
}

func (c comment) appendTo(lines []string) []string {
	if c.blank {
		lines = append(lines, "")
	}
	return append(lines, c.text)
}
