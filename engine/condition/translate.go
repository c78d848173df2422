package condition

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// over is a comparison with f, which is an error where the intent lacks f.
func over(f Field, n *Node) Outcomes { return Outcomes{n, Both(Has(f), Negate(n))} }

// choose is t ? u : v. An error of t is an error, whatever u and v are.
func (t Outcomes) choose(u, v Outcomes) Outcomes {
	if t.Holds.Count()+t.Fails.Count() > MaxEntries/8 {
		return unknown()
	}
	either := func(yes, no *Node) *Node { return Either(Both(t.Holds, yes), Both(t.Fails, no)) }
	return Outcomes{either(u.Holds, v.Holds), either(u.Fails, v.Fails)}
}

// translate translates a boolean expression. What it does not know becomes
// opaque, so that the rest can still be indexed.
func translate(e ast.Expr) Outcomes {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return total(Always(bool(b)))
		}
	case ast.IdentKind:
		return translatePresence(e.AsIdent())
	case ast.CallKind:
		return translateCall(e.AsCall())
	}
	return unknown()
}

// translatePresence translates the variables that has() becomes.
func translatePresence(name string) Outcomes {
	path, presence := strings.CutPrefix(name, presenceOfField)
	if f, ok := fieldByPath(path); ok && presence {
		return total(Has(f))
	}
	return unknown()
}

func translateCall(call ast.CallExpr) Outcomes {
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return translate(args[0]).and(translate(args[1]))
	case operators.LogicalOr:
		return translate(args[0]).or(translate(args[1]))
	case operators.LogicalNot:
		return translate(args[0]).not()
	case operators.In:
		return translateIn(args[0], args[1])
	case operators.Conditional:
		return translate(args[0]).choose(translate(args[1]), translate(args[2]))
	}
	if len(args) != 2 {
		return unknown()
	}
	return translateComparison(call.FunctionName(), args[0], args[1])
}

func translateIn(member, collection ast.Expr) Outcomes {
	if key, ok := textLiteral(member); ok && isIdent(collection, fields[Metadata].path) {
		return total(Has(MetadataKey(key)))
	}
	f, ok := fieldOf(member)
	if name, named := listNamed(collection); named && ok && f.Kind == Text {
		return over(f, Compare(f, InList, Constant{Str: name}))
	}
	if !ok || collection.Kind() != ast.ListKind {
		return unknown()
	}
	values, ok := constantsOf(f, collection)
	if !ok {
		return unknown()
	}
	return over(f, among(f, values))
}

func translateComparison(function string, left, right ast.Expr) Outcomes {
	if takesPatterns(function) {
		left, right = right, left
	}
	f, ok := fieldOf(left)
	if !ok {
		function, left, right = mirrored(function), right, left
		f, ok = fieldOf(left)
	}
	negated := function == operators.NotEquals
	if negated {
		function = operators.Equals
	}
	op, known := called(function)
	if !ok || !known {
		return unknown()
	}
	values, ok := constantsOf(f, right)
	if !ok || len(values) != 1 && !op.IsGlob() {
		return unknown()
	}
	t := over(f, Compare(f, op, values...))
	if negated {
		return t.not()
	}
	return t
}

func fieldOf(e ast.Expr) (Field, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		f, ok := fieldByPath(e.AsIdent())
		return f, ok && f.Kind != Object
	case ast.SelectKind:
		sel := e.AsSelect()
		return MetadataKey(sel.FieldName()), isIdent(sel.Operand(), fields[Metadata].path) && !sel.IsTestOnly()
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == operators.Index && isIdent(call.Args()[0], fields[Metadata].path):
			key, ok := textLiteral(call.Args()[1])
			return MetadataKey(key), ok
		case call.FunctionName() == overloads.TypeConvertInt:
			return fieldAsNumber(call.Args()[0])
		}
	}
	return Field{}, false
}

// fieldAsNumber returns the field that int(e) reads.
func fieldAsNumber(e ast.Expr) (Field, bool) {
	f, ok := fieldOf(e)
	switch f.Kind {
	case Int:
		return f, ok
	case Text:
		return f.as(Digits), ok
	}
	return Field{}, false
}

func isIdent(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

func textLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// constantsOf returns the constant, or the list of them, that e is, if f can be
// compared with it.
func constantsOf(f Field, e ast.Expr) ([]Constant, bool) {
	if e.Kind() != ast.ListKind {
		c, ok := constantOf(f, e)
		return []Constant{c}, ok
	}
	values := make([]Constant, 0, e.AsList().Size())
	for _, element := range e.AsList().Elements() {
		c, ok := constantOf(f, element)
		if !ok {
			return nil, false
		}
		values = append(values, c)
	}
	return values, len(e.AsList().OptionalIndices()) == 0
}

func constantOf(f Field, e ast.Expr) (Constant, bool) {
	switch {
	case f.Kind == Time && e.Kind() == ast.CallKind && e.AsCall().FunctionName() == overloads.TypeConvertTimestamp:
		s, ok := textLiteral(e.AsCall().Args()[0])
		return Constant{Str: s}, ok && isTime(s)
	case (f.Kind == Int || f.Kind == Digits) && e.Kind() == ast.LiteralKind:
		n, ok := e.AsLiteral().(types.Int)
		return Constant{Num: int64(n)}, ok
	case f.Kind == Text:
		s, ok := textLiteral(e)
		return Constant{Str: s}, ok
	}
	return Constant{}, false
}

func isTime(s string) bool {
	_, err := ParseTime(s)
	return err == nil
}
