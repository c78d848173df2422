package document

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads one or several JSON values.
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

// jsonReader reads nodes from a decoder.
type jsonReader struct {
	*file
	dec *jsontext.Decoder
	// seen is how far the places were counted, and counted is the place there.
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

// container reads what is in an object or an array, and its end.
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

// place returns the place of an offset, which never goes back.
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

// syntax says where the file stops being JSON, and why.
func (r *jsonReader) syntax(err error) error {
	var placed *Error
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &placed):
		return err
	case errors.As(err, &syntactic):
		offset := min(int(syntactic.ByteOffset), len(r.text))
		reason := "it ends too early"
		if !errors.Is(err, io.ErrUnexpectedEOF) && syntactic.Err != nil {
			reason = strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
		}
		return r.refuse(r.place(offset), "is not valid JSON: %s", reason)
	}
	return r.refuse(r.place(len(r.text)), "is not valid JSON: it ends too early")
}
