package document

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"writ/engine/condition"
)

func writeYAML(pages []page) []byte {
	var w yamlWriter
	for i, p := range pages {
		if i > 0 {
			w.b.WriteString("---\n")
		}
		head := p.head
		for len(head) > 0 && head[0] == "" {
			head = head[1:]
		}
		w.lines(0, head)
		switch x := p.root; {
		case len(x.kids) == 0 || x.flow:
			w.value("", x, 0, "")
		default:
			if x.anchor != "" {
				w.b.WriteString(x.anchor + "\n")
			}
			w.block(x, 0)
		}
		w.lines(0, p.foot)
	}
	return w.b.Bytes()
}

type yamlWriter struct{ b bytes.Buffer }

func (w *yamlWriter) lines(indent int, lines []string) {
	for _, line := range lines {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		w.b.WriteString(line + "\n")
	}
}

// block writes what is in a collection, a line an item.
func (w *yamlWriter) block(x *element, indent int) {
	for i, kid := range x.kids {
		start, lead := kid, "-"
		if x.kind == '{' {
			start = x.keys[i]
			lead = w.scalar(start, true) + ":"
		}
		w.item(start, kid, lead, indent, i == 0)
	}
}

func (w *yamlWriter) item(start, kid *element, lead string, indent int, first bool) {
	head, line := start.head, start.line
	kid.flow = kid.flow && w.fits(strings.Repeat(" ", indent)+lead, kid)
	if lead == "-" && kid.kind == '{' && len(kid.kids) > 0 && !kid.flow {
		// The first member is on the line of the dash, so what is above it goes above both.
		inner := kid.keys[0]
		head = append(slices.Clone(head), inner.head...)
		if line != "" {
			head = append(head, line)
		}
		inner.head, inner.blank, line = nil, false, ""
	}
	if start.blank {
		head = append(slices.Clone(head), "")
	}
	for first && len(head) > 0 && head[0] == "" {
		head = head[1:]
	}
	w.lines(indent, head)
	w.value(strings.Repeat(" ", indent)+lead, kid, indent, line)
	w.lines(indent, start.foot)
}

// value writes a value after what leads to it on its line.
func (w *yamlWriter) value(lead string, x *element, indent int, comment string) {
	if x.anchor != "" {
		lead += " " + x.anchor
	}
	if comment != "" {
		comment = " " + comment
	}
	if x.kind != '{' && x.kind != '[' {
		w.b.WriteString(lead)
		w.literalOrText(x, lead, indent, comment)
		return
	}
	if line := w.inline(x); len(x.kids) == 0 || x.flow && w.fits(lead, x) {
		if lead != "" {
			lead += " "
		}
		w.b.WriteString(lead + line + comment + "\n")
		return
	}
	inner := indent + 2
	if lead == "" {
		inner = 0
	}
	if strings.HasSuffix(lead, "-") && x.kind == '{' {
		at := w.b.Len()
		w.block(x, inner)
		copy(w.b.Bytes()[at:], lead) // over the indentation
		return
	}
	if lead != "" {
		w.b.WriteString(lead + comment + "\n")
	}
	w.block(x, inner)
}

// fits reports whether a line can hold the value after what leads to it.
func (w *yamlWriter) fits(lead string, x *element) bool {
	return utf8.RuneCountInString(lead)+1+utf8.RuneCountInString(w.inline(x)) <= MaxLine
}

// literalOrText writes a scalar: text of several lines as a block, if it can be one.
func (w *yamlWriter) literalOrText(x *element, lead string, indent int, comment string) {
	if lead != "" {
		w.b.WriteByte(' ')
	}
	if x.raw != "" || x.kind != '"' || !blockable(x.text) {
		w.b.WriteString(w.scalar(x, false) + comment + "\n")
		return
	}
	body, ended := strings.CutSuffix(x.text, "\n")
	header := "|-"
	if ended {
		header = "|"
	}
	w.b.WriteString(header + comment + "\n")
	w.lines(indent+2, strings.Split(body, "\n"))
}

// blockable reports whether a block can hold the text as it is.
func blockable(text string) bool {
	body := strings.TrimSuffix(text, "\n")
	if !strings.Contains(text, "\n") || strings.HasPrefix(body, " ") || strings.HasPrefix(body, "\n") || strings.HasSuffix(body, "\n") || body == "" {
		return false
	}
	for line := range strings.SplitSeq(body, "\n") {
		if strings.TrimRight(line, " \t") != line {
			return false
		}
	}
	return !strings.ContainsFunc(body, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

func (w *yamlWriter) inline(x *element) string {
	if x.kind != '{' && x.kind != '[' {
		return w.scalar(x, true)
	}
	parts := make([]string, len(x.kids))
	for i, kid := range x.kids {
		parts[i] = w.inline(kid)
		if kid.anchor != "" {
			parts[i] = kid.anchor + " " + parts[i]
		}
		if x.kind == '{' {
			parts[i] = w.scalar(x.keys[i], true) + ": " + parts[i]
		}
	}
	if x.kind == '{' {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// words are texts that some readers of YAML take for true, false or null.
var words = []string{"y", "n", "yes", "no", "on", "off"}

// scalar writes a scalar on one line. Within braces and brackets, and before a colon,
// text needs quotes more often.
func (w *yamlWriter) scalar(x *element, inside bool) string {
	switch {
	case x.raw != "":
		return x.raw
	case x.kind != '"':
		return x.text
	}
	y := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: x.text}
	var as yaml.Node
	if err := yaml.Unmarshal([]byte(x.text), &as); err == nil && len(as.Content) == 1 && as.Content[0].Tag == "!!timestamp" {
		y.Tag = "!!timestamp"
	}
	if strings.Contains(x.text, "\n") || inside && strings.ContainsAny(x.text, ",[]{}") || slices.Contains(words, strings.ToLower(x.text)) {
		y.Style = yaml.DoubleQuotedStyle
	}
	out, err := yaml.Marshal(&y)
	text := strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.Contains(text, "\n") || !reads(text, x.text) {
		return condition.Quote(x.text) // JSON's strings are YAML's
	}
	return text
}

// reads reports whether a scalar is read as a text.
func reads(scalar, text string) bool {
	var y yaml.Node
	err := yaml.Unmarshal([]byte(scalar), &y)
	return err == nil && len(y.Content) == 1 && y.Content[0].Value == text && (y.Content[0].Tag == "!!str" || y.Content[0].Tag == "!!timestamp")
}

// writeJSON writes values in JSON: what is short and holds nothing that is not a scalar is
// on one line.
func writeJSON(roots []*element) []byte {
	var b bytes.Buffer
	for _, x := range roots {
		jsonValue(&b, x, 0, 0)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func jsonValue(b *bytes.Buffer, x *element, indent, lead int) {
	open, end := byte(x.kind), byte(x.kind)+2
	switch {
	case x.kind == '"':
		b.WriteString(condition.Quote(x.text))
		return
	case x.kind != '{' && x.kind != '[':
		b.WriteString(x.text)
		return
	case len(x.kids) == 0:
		b.Write([]byte{open, end})
		return
	}
	sep, tail := ",\n"+strings.Repeat(" ", indent+2), "\n"+strings.Repeat(" ", indent)
	first := sep[1:]
	if indent > 0 && x.fitsLine(MaxLine-indent-lead) {
		first, sep, tail = "", ", ", ""
	}
	b.WriteByte(open)
	for i, kid := range x.kids {
		if i == 0 {
			b.WriteString(first)
		} else {
			b.WriteString(sep)
		}
		before := 0
		if x.kind == '{' {
			name := condition.Quote(x.keys[i].text) + ": "
			before = len(name)
			b.WriteString(name)
		}
		jsonValue(b, kid, indent+2, before)
	}
	b.WriteString(tail)
	b.WriteByte(end)
}

// fitsLine reports whether a collection has scalars alone and fits on so many columns.
func (x *element) fitsLine(columns int) bool {
	columns -= 2
	for i, kid := range x.kids {
		if kid.kind == '{' || kid.kind == '[' {
			return false
		}
		columns -= len(kid.text) + 4
		if x.kind == '{' {
			columns -= len(x.keys[i].text) + 4
		}
	}
	return columns >= 0
}
