package engine

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// translation is a CEL expression as two trees: of the intents of which it is
// true and of those of which it is false. It is an error of all others. CEL's
// && and || let an operand that decides win over one that fails, in either
// order, which makes both trees exact.
type translation struct{ holds, fails *node }

// total is an expression that is never an error.
func total(n *node) translation { return translation{n, not(n)} }

// over is a comparison with f, which is an error where the intent lacks f.
func over(f field, n *node) translation { return translation{n, all(exists(f), not(n))} }

func unknown() translation { return translation{opaque(), opaque()} }

func (t translation) not() translation { return translation{t.fails, t.holds} }

func (t translation) and(u translation) translation {
	return translation{all(t.holds, u.holds), anyOf(t.fails, u.fails)}
}

func (t translation) or(u translation) translation { return t.not().and(u.not()).not() }

// maxChoice bounds the condition of a choice, which is written twice: choices
// within the conditions of others would grow exponentially.
const maxChoice = 128

// choose is t ? u : v. An error of t is an error, whatever u and v are.
func (t translation) choose(u, v translation) translation {
	if t.holds.count()+t.fails.count() > maxChoice {
		return unknown()
	}
	either := func(yes, no *node) *node { return anyOf(all(t.holds, yes), all(t.fails, no)) }
	return translation{either(u.holds, v.holds), either(u.fails, v.fails)}
}

// translate translates a boolean expression. What it does not know becomes
// opaque, so that the rest can still be indexed.
func translate(e ast.Expr) translation {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return total(always(bool(b)))
		}
	case ast.IdentKind:
		return translatePresence(e.AsIdent())
	case ast.CallKind:
		return translateCall(e.AsCall())
	}
	return unknown()
}

// translatePresence translates the variables that has() becomes.
func translatePresence(name string) translation {
	switch name {
	case varHasCost:
		return total(exists(cost()))
	case varHasMetadata:
		f, _ := fieldByPath(metadataPath)
		return total(exists(f))
	}
	return unknown()
}

func translateCall(call ast.CallExpr) translation {
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

func translateIn(member, collection ast.Expr) translation {
	if key, ok := textLiteral(member); ok && isIdent(collection, metadataPath) {
		return total(exists(metadata(key)))
	}
	f, ok := fieldOf(member)
	if !ok || collection.Kind() != ast.ListKind {
		return unknown()
	}
	values, ok := constantsOf(f, collection)
	if !ok {
		return unknown()
	}
	return over(f, among(f, values))
}

func translateComparison(function string, left, right ast.Expr) translation {
	if isPatternFunction(function) {
		left, right = right, left
	}
	f, ok := fieldOf(left)
	if !ok {
		function, left, right = mirrored(function), right, left
		f, ok = fieldOf(left)
	}
	op, negated, known := operatorOf(function)
	if !ok || !known {
		return unknown()
	}
	values, ok := constantsOf(f, right)
	if !ok || len(values) != 1 && !op.isGlob() {
		return unknown()
	}
	t := over(f, compare(f, op, values...))
	if negated {
		return t.not()
	}
	return t
}

// operatorOf returns the operator that a CEL function is, and whether negated.
func operatorOf(function string) (op operator, negated, ok bool) {
	switch function {
	case operators.NotEquals:
		return opEq, true, true
	case operators.Equals:
		return opEq, false, true
	case operators.Greater:
		return opGt, false, true
	case operators.GreaterEquals:
		return opGte, false, true
	case operators.Less:
		return opLt, false, true
	case operators.LessEquals:
		return opLte, false, true
	case overloads.Contains:
		return opContains, false, true
	case overloads.StartsWith:
		return opStartsWith, false, true
	case overloads.EndsWith:
		return opEndsWith, false, true
	case overloads.Matches:
		return opRegex, false, true
	case fnGlob:
		return opGlob, false, true
	case fnResourceGlob:
		return opResourceGlob, false, true
	case fnActionMatches:
		return opActionGlob, false, true
	}
	return 0, false, false
}

// fieldOf returns the field that e reads.
func fieldOf(e ast.Expr) (field, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		f, ok := fieldByPath(e.AsIdent())
		return f, ok && f.kind != kindObject
	case ast.SelectKind:
		sel := e.AsSelect()
		return metadata(sel.FieldName()), isIdent(sel.Operand(), metadataPath) && !sel.IsTestOnly()
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == operators.Index && isIdent(call.Args()[0], metadataPath):
			key, ok := textLiteral(call.Args()[1])
			return metadata(key), ok
		case call.FunctionName() == overloads.TypeConvertInt:
			return fieldAsNumber(call.Args()[0])
		}
	}
	return field{}, false
}

// fieldAsNumber returns the field that int(e) reads.
func fieldAsNumber(e ast.Expr) (field, bool) {
	f, ok := fieldOf(e)
	switch f.kind {
	case kindInt:
		return f, ok
	case kindString:
		f.kind = kindDigits
		return f, ok
	}
	return field{}, false
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
func constantsOf(f field, e ast.Expr) ([]constant, bool) {
	if e.Kind() != ast.ListKind {
		c, ok := constantOf(f, e)
		return []constant{c}, ok
	}
	values := make([]constant, 0, e.AsList().Size())
	for _, element := range e.AsList().Elements() {
		c, ok := constantOf(f, element)
		if !ok {
			return nil, false
		}
		values = append(values, c)
	}
	return values, len(e.AsList().OptionalIndices()) == 0
}

func constantOf(f field, e ast.Expr) (constant, bool) {
	switch {
	case f.kind == kindTime && e.Kind() == ast.CallKind && e.AsCall().FunctionName() == overloads.TypeConvertTimestamp:
		s, ok := textLiteral(e.AsCall().Args()[0])
		return constant{str: s}, ok && checkTime(s) == nil
	case (f.kind == kindInt || f.kind == kindDigits) && e.Kind() == ast.LiteralKind:
		n, ok := e.AsLiteral().(types.Int)
		return constant{num: int64(n)}, ok
	case f.kind == kindString:
		s, ok := textLiteral(e)
		return constant{str: s}, ok
	}
	return constant{}, false
}
