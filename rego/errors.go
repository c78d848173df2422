package rego

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Error is one mistake in a Rego source. Line and Column count from 1, in
// characters of the source as its author wrote it; both are 0 where the mistake
// has no place. File is "" for a source that is no file.
type Error struct {
	File         string
	Line, Column int
	Message      string
}

// Errors are the mistakes in a source, in the order of their places. It is
// never empty.
type Errors []Error

// Error implements error, on one line: "2:14: undefined ref: …; 3:1: …".
func (es Errors) Error() string {
	parts := make([]string, 0, len(es))
	for _, e := range es {
		if e.Line == 0 {
			parts = append(parts, e.Message)
			continue
		}
		place := fmt.Sprintf("%d:%d: ", e.Line, e.Column)
		if e.File != "" {
			place = e.File + ":" + place
		}
		parts = append(parts, place+e.Message)
	}
	return strings.Join(parts, "; ")
}

func mistake(loc *ast.Location, format string, args ...any) Error {
	e := Error{Message: fmt.Sprintf(format, args...)}
	if loc != nil {
		e.File, e.Line, e.Column = loc.File, loc.Row, loc.Col
	}
	return e
}

// explain turns OPA's errors into ours: one line each, with what would be right.
func explain(err error) error {
	var list ast.Errors
	if !errors.As(err, &list) {
		return err
	}
	list.Sort()
	var out Errors
	for _, e := range list {
		if len(out) == maxErrors {
			break
		}
		out = append(out, mistake(e.Location, "%s", message(e)))
	}
	return out
}

func message(e *ast.Error) string {
	if name, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
		if b, known := ast.BuiltinMap[name]; known {
			return fmt.Sprintf("the built-in function %s cannot be called: %s", name, refusal(b))
		}
	}
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		if names := choices(d.OneOf); names != "" {
			return fmt.Sprintf("%s: %v is none of %s", strings.TrimSuffix(e.Message, ":"), d.Ref[d.Pos], names)
		}
	case *ast.ArgErrDetail:
		return fmt.Sprintf("%s: have %v, want %v", e.Message, d.Have, d.Want)
	case *ast.UnificationErrDetail:
		return fmt.Sprintf("%s: %v is not %v", e.Message, d.Left, d.Right)
	}
	return oneLine(e.Message)
}

// choices lists the members that an object has.
func choices(values []ast.Value) string {
	names := make([]string, 0, len(values))
	for _, v := range values {
		if s, ok := v.(ast.String); ok {
			names = append(names, string(s))
		}
	}
	return strings.Join(names, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
