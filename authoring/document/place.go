package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Place is a place in a file. Line and Column count from 1. Column counts characters.
type Place struct{ Line, Column int }

// Problem is one mistake in a file.
type Problem struct {
	File string
	Place
	// Document names a rule or a list, such as `rule "Large payments"`. It is empty for other
	// kinds.
	Document string
	// Field is the path of the field, such as "policy.status". It is empty if the problem is about
	// the whole file.
	Field   string
	Message string
	// Source is the text of the line in the file.
	Source string
}

// String returns the problem on one line: file:line:column: document: field: message.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Document != "" {
		s += p.Document + ": "
	}
	if p.Field != "" {
		s += p.Field + ": "
	}
	return s + p.Message
}

// Caret returns the line of the file and, on the next line, a caret below the place. A long line is
// shortened to the part around the place.
func (p Problem) Caret() string {
	line, at := []rune(p.Source), p.Column-1
	if len(line) > MaxLine {
		from := max(0, min(at-MaxLine/2, len(line)-MaxLine))
		line, at = line[from:from+MaxLine], at-from
		if from > 0 {
			line[0] = '…'
		}
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(line[:max(0, min(len(line), at))]))
	return string(line) + "\n" + indent + "^"
}

// Error has all problems of a document or a file.
type Error struct{ Problems []Problem }

// Error implements error, with one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Add adds the problems of err if err is an *Error. It adds equal problems only once. It returns
// any other error.
func (e *Error) Add(err error) error {
	var found *Error
	if !errors.As(err, &found) {
		return err
	}
	for _, p := range found.Problems {
		if !slices.Contains(e.Problems, p) {
			e.Problems = append(e.Problems, p)
		}
	}
	return nil
}

// Err returns e if it has a problem, and nil otherwise.
func (e *Error) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// Locate turns an *[engine.InvalidError] into an *[Error] with a problem for each field, in the
// order of the file. It returns any other error unchanged.
func (d *Document) Locate(err error) error {
	var invalid *engine.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	e := new(Error)
	for _, f := range invalid.Fields {
		e.Problems = append(e.Problems, d.locate(f))
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return e
}

// Problem returns a problem of a field of d, such as "policy.status" or "status". If the field is
// missing, the problem has the place of the object that lacks the field.
func (d *Document) Problem(field, message string) Problem {
	return d.locate(engine.FieldError{Field: field, Message: message})
}

func (d *Document) locate(f engine.FieldError) Problem {
	n := d.find(f.Field)
	field, message := f.Field, f.Message
	at := n.at
	if f.In.Message != "" && (n.kind != '"' || f.In.At == "") {
		n, field, message = n.follow(f.In.At), joined(field, f.In.At), f.In.Message
		if n.rego != nil {
			return d.inRegoFile(n.rego, f.In.Line, f.In.Column, message)
		}
		switch at = n.at; {
		case f.In.Key && n.keyAt.Line > 0:
			at = n.keyAt
		case f.In.Line > 0 && n.kind == '"':
			at = d.file.inText(n, f.In.Line, f.In.Column)
		}
	}
	if n.split != "" {
		message += fmt.Sprintf("; if %s is one text, write it in quotes", condition.Quote(n.split))
	}
	p := d.file.problem(at, field, message)
	p.Document = d.title()
	return p
}

// find returns the value of a field, such as "policy.status" or "status". If the field is missing,
// it returns the nearest value around the field.
func (d *Document) find(field string) *node {
	n, _ := d.root.find(strings.TrimPrefix(strings.TrimPrefix(field, string(d.Kind)), "."))
	return n
}

// joined returns the path of the value at a JSON pointer within a field.
func joined(field, pointer string) string {
	for token := range jsontext.Pointer(pointer).Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			field += "[" + token + "]"
		} else {
			field += "." + token
		}
	}
	return field
}

// title returns the kind and the name of a rule or a list. Other kinds have no title.
func (d *Document) title() string {
	if name := d.root.member("name"); (d.Kind == Rule || d.Kind == List) && name != nil && name.kind == '"' {
		return string(d.Kind) + " " + condition.Quote(name.text)
	}
	return ""
}

// inText returns where in the file a line and a column of a string's text are. If the file spells
// the text with escapes, it returns the place of the string.
func (f *file) inText(n *node, line, column int) Place {
	lines := strings.SplitAfterN(n.text, "\n", line)
	if len(lines) < line {
		return n.at
	}
	before := strings.Join(lines[:line-1], "") + prefix(lines[line-1], column-1)
	at := n.textAt
	written := []rune(f.from(at))
	for _, r := range before {
		written = skip(written, r, &at)
		if len(written) == 0 || written[0] != r && (!unicode.IsSpace(r) || !unicode.IsSpace(written[0])) {
			return n.at
		}
		written = step(written, &at)
	}
	for _, r := range strings.TrimPrefix(n.text, before) {
		skip(written, r, &at)
		break
	}
	return at
}

// skip passes the characters that are in the file but not in a text before its character r. They
// are the indentation of a block's lines, and the backslash before a quote.
func skip(written []rune, r rune, at *Place) []rune {
	for !unicode.IsSpace(r) && len(written) > 0 && unicode.IsSpace(written[0]) {
		written = step(written, at)
	}
	if len(written) > 1 && written[0] == '\\' && written[1] == r && (r == '"' || r == '\\') {
		written = step(written, at)
	}
	return written
}

func step(written []rune, at *Place) []rune {
	if at.Column++; written[0] == '\n' {
		at.Line, at.Column = at.Line+1, 1
	}
	return written[1:]
}

func prefix(s string, n int) string { return string([]rune(s)[:min(max(n, 0), len([]rune(s)))]) }

// from returns the file's text after at. It returns no more than the longest condition.
func (f *file) from(at Place) string {
	rest := f.text
	for line := 1; line < at.Line; line++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return ""
		}
		rest = rest[i+1:]
	}
	text := string(rest[:min(len(rest), 4*condition.MaxCondition)])
	return strings.TrimPrefix(text, prefix(text, at.Column-1))
}

func (f *file) problem(at Place, field, message string) Problem {
	return Problem{File: f.name, Place: at, Field: field, Message: message, Source: f.line(at.Line)}
}

// refuse returns an error with one problem.
func (f *file) refuse(at Place, format string, args ...any) error {
	return &Error{Problems: []Problem{f.problem(at, "", fmt.Sprintf(format, args...))}}
}

func (f *file) line(n int) string {
	lines := f.lines()
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSuffix(string(lines[n-1]), "\r")
}
