package condition

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Unrendered returns the parts of a CEL condition that Rego cannot express, as mistakes in the
// member cel. Each mistake has the place and the reason. For a condition in another form the result
// is nil. Unrendered compiles the CEL again.
func (c *Condition) Unrendered() []Mistake {
	if c.cel == "" || c.Holds.IsRendered() && c.Fails.IsRendered() {
		return nil
	}
	l, err := cels()
	if err != nil {
		return nil
	}
	checked, err := l.check(c.cel)
	if err != nil {
		return nil // cannot happen: the CEL compiled before
	}
	u := unrendered{info: checked.NativeRep().SourceInfo()}
	u.visit(checked.NativeRep().Expr())
	return u.found
}

type unrendered struct {
	info  *ast.SourceInfo
	found []Mistake
}

// visit adds the smallest boolean parts of e that Rego cannot express.
func (u *unrendered) visit(e ast.Expr) {
	if translate(e).Holds.IsRendered() {
		return
	}
	before := len(u.found)
	switch name, operands := operandsOf(e); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, operand := range operands {
			u.visit(operand)
		}
	}
	if len(u.found) > before {
		return
	}
	m := Mistake{At: "/cel", Message: "has no rendering in Rego: " + whyUnrendered(e)}
	m.Line, m.Column = u.start(e)
	u.found = append(u.found, m)
}

// start returns the line and column where the text of e begins. CEL itself gives the place of the
// operator, of the last dot in a path, or of a call's parenthesis.
func (u *unrendered) start(e ast.Expr) (line, column int) {
	for e := range parts(e) {
		at := u.info.GetStartLocation(e.ID())
		if at.Line() < 1 {
			continue // a macro made this expression, so it has no place
		}
		begin := at.Column() + 1
		switch e.Kind() {
		case ast.IdentKind:
			begin -= max(strings.LastIndexByte(e.AsIdent(), '.'), 0)
		case ast.CallKind:
			if name := e.AsCall().FunctionName(); !e.AsCall().IsMemberFunction() && isWord(rune(name[0])) &&
				name[0] != '_' {
				begin -= len(name)
			}
		}
		if line == 0 || at.Line() < line || at.Line() == line && begin < column {
			line, column = at.Line(), begin
		}
	}
	return max(line, 1), max(column, 1)
}

// whyUnrendered says why Rego cannot express e.
func whyUnrendered(e ast.Expr) string {
	comparison := "writ renders comparisons of one field with constants"
	name, args := operandsOf(e)
	switch {
	case e.Kind() == ast.ComprehensionKind:
		return "it is a macro such as exists or all"
	case name == "":
		return comparison
	case name == operators.Conditional:
		return "it is a choice (?:) between too many comparisons"
	}
	if len(args) == 2 {
		_, left := fieldOf(args[0])
		if _, right := fieldOf(args[1]); left && right {
			return "it compares two fields; " + comparison
		}
	}
	if why := calculated(e); why != "" {
		return why + "; " + comparison
	}
	return comparison
}

// calculated describes the innermost call in e that computes an operand of the comparison.
func calculated(e ast.Expr) string {
	for e := range parts(e) {
		name, _ := operandsOf(e)
		_, isField := fieldOf(e)
		_, isOperator := calls[name]
		switch {
		case e.Kind() == ast.ComprehensionKind:
			return "it has a macro such as exists or all"
		case name != "" && !isField && !isOperator && mirrored(name) == "":
			return "it calculates with " + spelled(name)
		}
	}
	return ""
}

// spelled returns a function's name as authors write it.
func spelled(function string) string {
	if symbol, ok := operators.FindReverse(function); ok && symbol != "" {
		return symbol
	}
	return function
}
