package condition

import (
	"iter"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// over returns the outcomes of the comparison n with f. The comparison is an error if the intent
// lacks f.
func over(f Field, n *Node) Outcomes { return Outcomes{n, Both(Has(f), Negate(n))} }

// choose returns the outcomes of t ? u : v. If t is an error, the whole is an error.
func (t Outcomes) choose(u, v Outcomes) Outcomes {
	if t.Holds.Count()+t.Fails.Count() > MaxEntries/8 {
		return unknown()
	}
	either := func(yes, no *Node) *Node { return Either(Both(t.Holds, yes), Both(t.Fails, no)) }
	return Outcomes{either(u.Holds, v.Holds), either(u.Fails, v.Fails)}
}

// translate translates a boolean expression into trees. A part without a translation becomes an
// opaque node, so that an index can still use the other parts.
func translate(e ast.Expr) Outcomes {
	if e.Kind() == ast.LiteralKind {
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return total(Always(bool(b)))
		}
	}
	switch name, args := operandsOf(e); name {
	case operators.LogicalAnd:
		return translate(args[0]).and(translate(args[1]))
	case operators.LogicalOr:
		return translate(args[0]).or(translate(args[1]))
	case operators.LogicalNot:
		return translate(args[0]).not()
	case operators.Conditional:
		return translate(args[0]).choose(translate(args[1]), translate(args[2]))
	}
	if f, ok := presenceIn(e); ok {
		return total(Has(f))
	}
	f, n, negated, ok := comparisonOf(e)
	switch {
	case !ok:
		return unknown()
	case negated:
		return over(f, n).not()
	}
	return over(f, n)
}

// calls maps the name of a CEL function in the syntax tree to its operator. It has only functions
// with an operator.
var calls = map[string]Operator{
	operators.Equals: Eq, operators.Greater: Gt, operators.GreaterEquals: Gte,
	operators.Less: Lt, operators.LessEquals: Lte,
	overloads.Matches: Regex, overloads.Contains: Contains, overloads.StartsWith: StartsWith,
	overloads.EndsWith: EndsWith,
	table[Glob].symbol: Glob, table[ResourceGlob].symbol: ResourceGlob,
	table[ActionGlob].symbol: ActionGlob, table[ActionDenied].symbol: ActionDenied,
}

// takesPatterns reports whether the CEL function name is one of writ's that take patterns.
func takesPatterns(name string) bool {
	op, ok := calls[name]
	return ok && op.IsGlob()
}

// mirrored returns the operator that means the same after its operands are swapped. It returns "" if
// no operator does.
func mirrored(op string) string {
	switch op {
	case operators.Equals, operators.NotEquals:
		return op
	case operators.Less:
		return operators.Greater
	case operators.LessEquals:
		return operators.GreaterEquals
	case operators.Greater:
		return operators.Less
	case operators.GreaterEquals:
		return operators.LessEquals
	}
	return ""
}

// parts yields e and all expressions in e. It yields inner expressions first.
func parts(e ast.Expr) iter.Seq[ast.Expr] {
	return func(yield func(e ast.Expr) bool) {
		stopped := false
		ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) { stopped = stopped || !yield(e) }))
	}
}

// operandsOf returns the function that e calls and its operands. The receiver of a method is the
// first operand.
func operandsOf(e ast.Expr) (function string, args []ast.Expr) {
	if e.Kind() != ast.CallKind {
		return "", nil
	}
	call := e.AsCall()
	if call.IsMemberFunction() {
		args = []ast.Expr{call.Target()}
	}
	return call.FunctionName(), append(args, call.Args()...)
}

// presenceIn returns the field whose existence e tests, if e is such a test. Then e reads a
// variable that has() expands to, or looks for a key in the metadata.
func presenceIn(e ast.Expr) (f Field, ok bool) {
	if e.Kind() == ast.IdentKind {
		path, presence := strings.CutPrefix(e.AsIdent(), presenceOfField)
		f, ok = fieldByPath(path)
		return f, ok && presence
	}
	name, args := operandsOf(e)
	if name != operators.In || !isIdent(args[1], fields[Metadata].path) {
		return Field{}, false
	}
	key, ok := textLiteral(args[0])
	return MetadataKey(key), ok
}

// comparisonOf returns the field f and the comparison n if e compares a field with constants. If
// negated is set, e is the negation of n.
func comparisonOf(e ast.Expr) (f Field, n *Node, negated, ok bool) {
	function, args := operandsOf(e)
	if len(args) != 2 {
		return f, nil, false, false
	}
	left, right := args[0], args[1]
	if takesPatterns(function) {
		left, right = right, left
	}
	if f, ok = fieldOf(left); !ok {
		function, left, right = mirrored(function), right, left
		f, ok = fieldOf(left)
	}
	if list, isList := listNamed(right); isList && function == operators.In && f.Kind == Text {
		return f, Compare(f, InList, Constant{Str: list}), false, ok
	}
	values, constant := constantsOf(f, right)
	if ok = ok && constant; !ok {
		return f, nil, false, false
	}
	if function == operators.In {
		return f, among(f, values), false, right.Kind() == ast.ListKind
	}
	negated = function == operators.NotEquals
	if negated {
		function = operators.Equals
	}
	op, known := calls[function]
	return f, Compare(f, op, values...), negated, known && (len(values) == 1 || op.IsGlob())
}

// listNamed returns the name of the list if e is a call of list().
func listNamed(e ast.Expr) (string, bool) {
	if name, args := operandsOf(e); name == fnList {
		return textLiteral(args[0])
	}
	return "", false
}

func fieldOf(e ast.Expr) (Field, bool) {
	name, args := operandsOf(e)
	switch {
	case e.Kind() == ast.IdentKind:
		f, ok := fieldByPath(e.AsIdent())
		return f, ok && f.Kind != Object
	case e.Kind() == ast.SelectKind:
		sel := e.AsSelect()
		return MetadataKey(sel.FieldName()), isIdent(sel.Operand(), fields[Metadata].path) && !sel.IsTestOnly()
	case name == operators.Index && isIdent(args[0], fields[Metadata].path):
		key, ok := textLiteral(args[1])
		return MetadataKey(key), ok
	case name == overloads.TypeConvertInt:
		return fieldAsNumber(args[0])
	}
	return Field{}, false
}

// fieldAsNumber returns the field that int(e) reads. The kind of the result is the kind of number.
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

// constantsOf returns the constants in e. e is a constant or a list of constants. The result is
// false if f cannot be compared with e.
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
	switch name, args := operandsOf(e); {
	case f.Kind == Time && name == overloads.TypeConvertTimestamp:
		s, ok := textLiteral(args[0])
		_, err := ParseTime(s)
		return Constant{Str: s}, ok && err == nil
	case (f.Kind == Int || f.Kind == Digits) && e.Kind() == ast.LiteralKind:
		n, ok := e.AsLiteral().(types.Int)
		return Constant{Num: int64(n)}, ok
	case f.Kind == Text:
		s, ok := textLiteral(e)
		return Constant{Str: s}, ok
	}
	return Constant{}, false
}
