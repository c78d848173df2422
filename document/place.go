package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"writ/engine"
)

// Place is a place in a file. Line and Column count from 1, columns in characters.
type Place struct{ Line, Column int }

// Problem is one thing that is wrong in a file.
type Problem struct {
	File string
	Place
	// Field is the path of what is wrong, such as "policy.status"; empty where the file as
	// such is.
	Field   string
	Message string
	// Source is the line of the file.
	Source string
}

// String is the problem on one line: file:line:column: field: message.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Field != "" {
		s += p.Field + ": "
	}
	return s + p.Message
}

// Caret returns the line of the file and, below it, a caret under the place.
func (p Problem) Caret() string {
	before := []rune(p.Source)
	before = before[:min(len(before), p.Column-1)]
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(before))
	return p.Source + "\n" + indent + "^"
}

// Error is everything that is wrong with a document.
type Error struct{ Problems []Problem }

// Error implements error: a line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Locate gives the fields that err names their places in the file. Any other error it
// returns as it is.
func (d *Document) Locate(err error) error {
	var invalid *engine.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	e := new(Error)
	for _, f := range invalid.Fields {
		e.Problems = append(e.Problems, d.Problem(f.Field, f.Message))
	}
	return e
}

// Problem says something of a field of d, such as "policy.status" or "status". Where the
// field is not there, the place is that of the value that lacks it.
func (d *Document) Problem(field, message string) Problem {
	n, _ := d.root.find(strings.TrimPrefix(strings.TrimPrefix(field, string(d.Kind)), "."))
	return d.file.problem(n.at, field, message)
}

func (f *file) problem(at Place, field, message string) Problem {
	return Problem{File: f.name, Place: at, Field: field, Message: message, Source: f.line(at.Line)}
}

// refuse is an error with one problem.
func (f *file) refuse(at Place, format string, args ...any) error {
	return &Error{Problems: []Problem{f.problem(at, "", fmt.Sprintf(format, args...))}}
}

// line returns a line of the file.
func (f *file) line(n int) string {
	lines := bytes.Split(f.text, []byte("\n"))
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSuffix(string(lines[n-1]), "\r")
}
