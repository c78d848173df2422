package document

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// comment is a comment of a YAML file. Its text begins with the #.
type comment struct {
	at   Place
	text string
}

// layout is the text of a YAML file with its comments and empty lines. The YAML library loses some
// comments, so layout finds comments in the text itself. Outside of quoted strings and blocks, a #
// after white space begins a comment.
type layout struct {
	lines    [][]rune
	comments []comment
	blank    []int // numbers of empty lines outside of braces, brackets and texts

	nodes map[Place]*yaml.Node // the nodes whose text may contain a # that does not begin a comment
}

// lineBreaks replaces every line break of YAML 1.1 by \n.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

const (
	inQuotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle
	inBlock  = yaml.LiteralStyle | yaml.FoldedStyle
)

func layoutOf(text []byte, docs []*yaml.Node) *layout {
	l := &layout{nodes: map[Place]*yaml.Node{}}
	for line := range strings.SplitSeq(lineBreaks.Replace(string(text)), "\n") {
		l.lines = append(l.lines, []rune(line))
	}
	for _, d := range docs {
		walk(d, func(y *yaml.Node) {
			if y.Style&(inQuotes|inBlock|yaml.FlowStyle) != 0 && y.Kind != yaml.AliasNode {
				l.nodes[Place{y.Line, y.Column}] = y
			}
		})
	}
	l.scan()
	return l
}

func walk(y *yaml.Node, f func(*yaml.Node)) {
	f(y)
	for _, c := range y.Content {
		walk(c, f)
	}
}

func (l *layout) scan() {
	depth := 0 // how many braces and brackets are open
	for at := (Place{1, 1}); at.Line <= len(l.lines); {
		line, i := l.lines[at.Line-1], at.Column-1
		if i == 0 && depth == 0 && isBlank(line) {
			l.blank = append(l.blank, at.Line)
		}
		if i >= len(line) {
			at = Place{at.Line + 1, 1}
			continue
		}
		y := l.nodes[at]
		switch {
		case y != nil && y.Style&inQuotes != 0:
			at = l.afterQuotes(at, y)
			continue
		case y != nil && y.Style&inBlock != 0:
			at = l.afterBlock(at, y)
			continue
		case (line[i] == '{' || line[i] == '[') && (y != nil || depth > 0):
			depth++
		case (line[i] == '}' || line[i] == ']') && depth > 0:
			depth--
		case l.comment(at, depth > 0):
			at = Place{at.Line + 1, 1}
			continue
		}
		at.Column++
	}
}

func isBlank(line []rune) bool {
	return !slices.ContainsFunc(line, func(r rune) bool { return !unicode.IsSpace(r) })
}

// comment adds the comment that begins at a place. It reports whether a comment begins there.
// Within braces and brackets a comment can also begin right after a brace, a bracket or a comma.
func (l *layout) comment(at Place, inFlow bool) bool {
	line, i := l.lines[at.Line-1], at.Column-1
	before := " \t"
	if inFlow {
		before = " \t{[,"
	}
	if line[i] != '#' || i > 0 && !strings.ContainsRune(before, line[i-1]) {
		return false
	}
	l.comments = append(l.comments, comment{at, strings.TrimRight(string(line[i:]), " \t\r")})
	return true
}

// afterQuotes returns the place after a quoted string. An anchor or a tag may precede the quote.
func (l *layout) afterQuotes(at Place, y *yaml.Node) Place {
	quote, opened := '\'', false
	if y.Style&yaml.DoubleQuotedStyle != 0 {
		quote = '"'
	}
	for ; at.Line <= len(l.lines); at = (Place{at.Line + 1, 1}) {
		line := l.lines[at.Line-1]
		for ; at.Column <= len(line); at.Column++ {
			c := line[at.Column-1]
			switch {
			case !opened:
				opened = c == quote
			case c == '\\' && quote == '"', c == quote && quote == '\'' && at.Column < len(line) &&
				line[at.Column] == '\'':
				at.Column++
			case c == quote:
				return Place{at.Line, at.Column + 1}
			}
		}
	}
	return at
}

// afterBlock returns the place after a block (| or >). The block's header may have a comment. A
// block ends before a line that is indented less than the block's first line.
func (l *layout) afterBlock(at Place, y *yaml.Node) Place {
	for i := at.Column; i < len(l.lines[at.Line-1]); i++ {
		if l.comment(Place{at.Line, i + 1}, false) {
			break
		}
	}
	indent, end := -1, at.Line+1
	first := "" // the first line of the text that is not blank
	for text := range strings.Lines(y.Value) {
		if first = text; strings.TrimSpace(text) != "" {
			break
		}
	}
	for n := end; n <= len(l.lines); n++ {
		line := l.lines[n-1]
		if isBlank(line) {
			continue
		}
		spaces := leading(line)
		if indent < 0 { // the text itself may begin with spaces
			indent = spaces - leading([]rune(first))
		}
		if spaces < indent || strings.TrimSpace(y.Value) == "" {
			break
		}
		end = n + 1
	}
	for end <= len(l.lines) && isBlank(l.lines[end-1]) &&
		(strings.HasSuffix(y.Value, "\n\n") || strings.TrimSpace(y.Value) == "") {
		end++
	}
	return Place{end, 1}
}

func leading(line []rune) (spaces int) {
	for spaces < len(line) && line[spaces] == ' ' {
		spaces++
	}
	return spaces
}

func commentsOf(text []byte) []comment {
	docs, err := yamlNodes(text)
	if err != nil {
		return nil
	}
	return layoutOf(text, docs).comments
}

func texts(all []comment) []string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.text
	}
	return texts
}

// mark is a comment that replaces an empty line while the YAML library handles a file. The library
// keeps comments but loses empty lines.
const mark = "#\ue000"

// withMarks replaces each run of empty lines by a mark.
func withMarks(text []byte) []byte {
	return replaceBlanks(text, func(next []rune) string { return strings.Repeat(" ", leading(next)) + mark + "\n" })
}

// withoutMarks replaces each run of marks by an empty line.
func withoutMarks(text []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if before, marked := strings.CutSuffix(line, mark+"\n"); marked {
			line = strings.TrimRight(before, " ") + "\n"
		}
		b.WriteString(line)
	}
	return replaceBlanks([]byte(b.String()), func([]rune) string { return "\n" })
}

// replaceBlanks replaces each run of empty lines by the result of by, which gets the line below the
// run. It removes a run at the start or at the end of a document. It does not change a text with
// line breaks other than \n and \r\n, because such line breaks may be part of a value.
func replaceBlanks(text []byte, by func(next []rune) string) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	docs, err := yamlNodes(text)
	if err != nil || bytes.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return text
	}
	l := layoutOf(text, docs)
	var b strings.Builder
	started, blank := false, false
	for i, line := range l.lines {
		if _, empty := slices.BinarySearch(l.blank, i+1); empty {
			blank = true
			continue
		}
		ends := strings.HasPrefix(string(line), "---")
		if blank && started && !ends {
			b.WriteString(by(line))
		}
		started, blank = !ends, false
		b.WriteString(string(line) + "\n")
	}
	return []byte(b.String())
}
