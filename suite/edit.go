package suite

import (
	"bytes"
	"slices"
	"strings"

	"writ/document"
	"writ/engine"
)

// flat is a text on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// edit puts a text in the place of the bytes from and to of a file.
type edit struct {
	at       document.Place
	from, to int
	text     string
}

// edit returns the edit that has the value at a place say what the field is to say.
func (u *updater) edit(at document.Place, field *update) (edit, bool) {
	e := edit{at: at, from: offset(u.text, at)}
	if e.from >= len(u.text) {
		return e, false
	}
	quoted := strings.HasSuffix(u.path, ".json")
	switch first := u.text[e.from]; {
	case !field.list:
		e.to = scalarEnd(u.text, e.from)
		e.text = spelled(field.values[0][0], quoted || first == '"')
	case first == '[':
		e.to = listEnd(u.text, e.from)
		e.text = flowList(u.text[e.from:e.to], field.values[0], quoted)
	case first == '-' && !quoted:
		e.to, e.text = blockList(u.text, e.from, at.Column-1, field.values[0])
	}
	return e, e.to > e.from
}

// offset returns where a place is in text.
func offset(text []byte, at document.Place) int {
	start := 0
	for range at.Line - 1 {
		i := bytes.IndexByte(text[start:], '\n')
		if i < 0 {
			return len(text)
		}
		start += i + 1
	}
	for i, r := range []rune(string(line(text, start))) {
		if i == at.Column-1 {
			break
		}
		start += len(string(r))
	}
	return start
}

// line returns the line of text that starts at an offset, without its end.
func line(text []byte, start int) []byte {
	before, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return before
}

// isWord reports whether b can be of a decision or a code.
func isWord(b byte) bool {
	return b == '_' || b == '.' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// scalarEnd returns where the scalar at from ends, which is a word, quoted or not; from
// where it is neither.
func scalarEnd(text []byte, from int) int {
	end := from
	if q := text[from]; q == '"' || q == '\'' {
		end++
		for end < len(text) && isWord(text[end]) {
			end++
		}
		if end >= len(text) || text[end] != q {
			return from
		}
		return end + 1
	}
	for end < len(text) && isWord(text[end]) {
		end++
	}
	return end
}

// listEnd returns where the list between brackets at from ends, from where it does not.
func listEnd(text []byte, from int) int {
	for i := from; i < len(text); i++ {
		switch text[i] {
		case ']':
			return i + 1
		case '#':
			return from // a comment, which has to stay
		}
	}
	return from
}

func words(text []byte) (all []engine.Code) {
	for _, w := range bytes.FieldsFunc(text, func(r rune) bool { return r > 0x7f || !isWord(byte(r)) }) {
		all = append(all, engine.Code(w))
	}
	return all
}

// arranged returns codes with those that stood there first, in their order, and then the
// others as checks are.
func arranged(stood, codes []engine.Code) (all []engine.Code) {
	for _, c := range slices.Concat(stood, engine.Codes()) {
		if slices.Contains(codes, c) && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func flowList(old []byte, codes []engine.Code, quoted bool) string {
	var texts []string
	for _, c := range arranged(words(old), codes) {
		texts = append(texts, spelled(c, quoted || bytes.IndexByte(old, '"') >= 0))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func spelled(c engine.Code, quoted bool) string {
	if quoted {
		return `"` + string(c) + `"`
	}
	return string(c)
}

// blockList returns the list of lines that begin with a dash, the first at from after
// indent bytes, and where it ends. The lines of codes that stay keep their comments.
func blockList(text []byte, from, indent int, codes []engine.Code) (end int, list string) {
	var kept []string
	var stood []engine.Code
	for end = from; end < len(text); {
		start := end
		if start != from {
			start += indent
		}
		if start >= len(text) || start != from && len(bytes.TrimLeft(text[end:start], " ")) > 0 || text[start] != '-' {
			break
		}
		l := line(text, start)
		code := words(bytes.Trim(l[1:], " "))
		if len(code) == 0 {
			return from, ""
		}
		if slices.Contains(codes, code[0]) {
			kept = append(kept, strings.TrimRight(string(l), "\r"))
			stood = append(stood, code[0])
		}
		end = min(start+len(l)+1, len(text))
	}
	for _, c := range arranged(nil, codes) {
		if !slices.Contains(stood, c) {
			kept = append(kept, "- "+string(c))
		}
	}
	eol := "\n"
	if bytes.HasSuffix(line(text, from), []byte("\r")) {
		eol = "\r\n"
	}
	end -= len(text[from:end]) - len(bytes.TrimSuffix(text[from:end], []byte(eol)))
	return end, strings.Join(kept, eol+strings.Repeat(" ", indent))
}
