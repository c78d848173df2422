package condition

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	celparser "github.com/google/cel-go/parser"
)

// celClause returns the clause of an expression that has compiled.
func celClause(source string) *Clause {
	whole := &Clause{Kind: Leaf, Text: source}
	l, err := cels()
	if err != nil {
		return whole
	}
	parsed, issues := l.cel.Parse(source)
	if issues.Err() != nil {
		return whole
	}
	leaves := 0
	info := parsed.NativeRep().SourceInfo()
	var clause func(e ast.Expr) *Clause
	clause = func(e ast.Expr) *Clause {
		kind, operands := joined(e)
		c := &Clause{Kind: kind}
		if kind == Leaf {
			c.Text, c.Index = written(e, info), leaves
			leaves++
		}
		for _, operand := range operands {
			c.Kids = append(c.Kids, clause(operand))
		}
		return c
	}
	return clause(parsed.NativeRep().Expr())
}

// joined returns the kind by which a CEL expression joins its operands, and the operands. The kind
// is Leaf if the expression joins nothing. A constant has no operands: true is an All, false is an
// Any.
func joined(e ast.Expr) (NodeKind, []ast.Expr) {
	name, operands := operandsOf(e)
	switch {
	case name == operators.LogicalAnd, e.Kind() == ast.LiteralKind && e.AsLiteral() == types.True:
		return All, operands
	case name == operators.LogicalOr, e.Kind() == ast.LiteralKind && e.AsLiteral() == types.False:
		return Any, operands
	case name == operators.LogicalNot:
		return Not, operands
	}
	return Leaf, nil
}

// oneLine is longer than any expression, so that texts are not wrapped.
const oneLine = 2 * MaxCondition

// written returns e as CEL text in the syntax that authors use.
func written(e ast.Expr, info *ast.SourceInfo) string {
	text, err := celparser.Unparse(e, info, celparser.WrapOnColumn(oneLine))
	if err != nil {
		return "an expression in CEL"
	}
	return text
}
