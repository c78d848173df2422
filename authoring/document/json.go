package document

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func (f *file) readJSON() (roots []*node, err error) {
	r := &jsonReader{file: f, dec: jsontext.NewDecoder(bytes.NewReader(f.text), jsontext.AllowDuplicateNames(true))}
	for {
		n, err := r.value()
		switch {
		case errors.Is(err, io.EOF) && len(roots) > 0:
			return roots, nil
		case err != nil:
			return nil, r.syntax(err)
		}
		roots = append(roots, n)
	}
}

type jsonReader struct {
	*file
	dec *jsontext.Decoder
	// counted is the place of the offset seen. place goes on from there.
	seen    int
	counted Place
}

func (r *jsonReader) value() (*node, error) {
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &node{kind: token.Kind(), text: token.String()}
	switch n.kind {
	case '{', '[':
		n.at = r.place(int(r.dec.InputOffset()) - 1)
		return n, r.container(n)
	case '"':
		n.at = r.place(r.startOfString())
		n.textAt = Place{n.at.Line, n.at.Column + 1}
	default:
		n.at = r.place(int(r.dec.InputOffset()) - len(n.text))
	}
	return n, nil
}

func (r *jsonReader) container(n *node) error {
	for {
		switch kind := r.dec.PeekKind(); kind {
		case '}', ']':
			_, err := r.dec.ReadToken()
			return err
		case 0:
			_, err := r.dec.ReadToken()
			return err
		}
		if n.kind == '{' {
			name, err := r.value()
			if err != nil {
				return err
			}
			if n.member(name.text) != nil {
				return r.refuse(name.at, "%s is given more than once", name.text)
			}
			n.keys = append(n.keys, key{name.text, name.at})
		}
		kid, err := r.value()
		if err != nil {
			return err
		}
		if n.kind == '{' {
			kid.keyAt = n.keys[len(n.keys)-1].at
		}
		n.kids = append(n.kids, kid)
	}
}

// startOfString returns the offset of the quote that opens the string just read.
func (r *jsonReader) startOfString() int {
	end := int(r.dec.InputOffset()) - 1
	for i := end - 1; ; i-- {
		if r.text[i] != '"' {
			continue
		}
		slashes := 0
		for slashes < i && r.text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// place returns the place of an offset. It is fast if offsets grow from call to call.
func (r *jsonReader) place(offset int) Place {
	if r.counted.Line == 0 || offset < r.seen {
		r.seen, r.counted = 0, Place{1, 1}
	}
	passed := r.text[r.seen:offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		r.counted = Place{r.counted.Line + bytes.Count(passed, []byte("\n")), 1}
		passed = passed[i+1:]
	}
	r.counted.Column += utf8.RuneCount(passed)
	r.seen = offset
	return r.counted
}

// syntax returns an error that says where the file stops being JSON, and why.
func (r *jsonReader) syntax(err error) error {
	var placed *Error
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &placed) {
		return err
	}
	offset := len(r.text)
	if errors.As(err, &syntactic) && !errors.Is(err, io.ErrUnexpectedEOF) {
		offset = min(int(syntactic.ByteOffset), offset)
	}
	for offset < len(r.text) && strings.IndexByte(" \t\r\n", r.text[offset]) >= 0 {
		offset++
	}
	if offset == len(r.text) {
		offset = len(bytes.TrimRight(r.text, " \t\r\n"))
	}
	return r.refuse(r.place(offset), "is not valid JSON: %s", r.expected(offset))
}

// expected says what is wrong at the offset at which the file stops being JSON.
func (r *jsonReader) expected(offset int) string {
	rest, before := bytes.TrimRight(r.text[offset:], " \t\r\n"), bytes.TrimRight(r.text[:offset], " \t\r\n")
	last := byte(0)
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	next := byte(0) // the next character, after a comma if there is one
	if behind := bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), " \t\r\n"); len(behind) > 0 {
		next = behind[0]
	}
	closes := next == '}' || next == ']'
	switch {
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), bytes.HasPrefix(rest, []byte("#")):
		return "JSON has no comments: use a .yaml file"
	case last == 0 && len(rest) > 0:
		return "this looks like YAML: name the file .yaml"
	case len(rest) == 0:
		return "it ends too early: a closing } or ] or quote is missing"
	case closes && (rest[0] == ',' || last == ','):
		return "there is a comma before the closing " + string(next)
	case rest[0] == ',':
		return "there is a comma too many"
	case rest[0] == '\'':
		return "text and names stand in double quotes, not in single ones"
	case last == '{' || last == ',' && rest[0] != '"' && r.dec.StackDepth() > 0 && r.inObject():
		return "the names of members stand in double quotes"
	case rest[0] == '"' || rest[0] == '{' || rest[0] == '[':
		return "a comma or a colon is missing before this"
	}
	switch word := string(bytes.ToLower(rest[:min(len(rest), 4)])); word {
	case "true", "fals":
		return "write true or false, in lower case"
	case "none", "null", "nil":
		return "there is no null: leave the member out"
	}
	return "want a text in double quotes, a number, true, false, an object or an array; a .yaml file needs fewer quotes"
}

func (r *jsonReader) inObject() bool {
	kind, _ := r.dec.StackIndex(r.dec.StackDepth())
	return kind == '{'
}
