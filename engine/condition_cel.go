package engine

import (
	"errors"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
)

// compileCEL compiles a condition of form 3.
func compileCEL(source string) (*condition, error) {
	env, err := standardEnv()
	if err != nil {
		return nil, err
	}
	checked, err := env.rules.check(source)
	if err != nil {
		return nil, celError(err)
	}
	expr := checked.NativeRep().Expr()
	if err := checkMatches(checked.NativeRep()); err != nil {
		return nil, celError(err)
	}
	c := &condition{cel: source, readsResource: mentions(expr, "intent.resource")}
	if c.program, err = env.rules.plan(checked); err != nil {
		return nil, celError(err)
	}
	t := translate(expr)
	c.holds, c.fails = t.holds, t.fails
	return c, nil
}

func celError(err error) error {
	var at *ExprError
	if errors.As(err, &at) && at.Line > 0 {
		return badCondition("at /cel, line %d, column %d: %s", at.Line, at.Column, at.Message)
	}
	return badCondition("at /cel: %v", err)
}

// checkMatches refuses regular expressions that are not constant, because their
// author would be the caller, and those that are too large. One within a macro
// over the metadata counts for every key.
func checkMatches(checked *ast.AST) error {
	total := 0
	for _, match := range ast.MatchDescendants(ast.NavigateAST(checked), ast.FunctionMatcher(overloads.Matches)) {
		args := match.AsCall().Args()
		expr, ok := textLiteral(args[len(args)-1])
		if !ok {
			return errors.New("matches: the regular expression must be a constant string")
		}
		size, err := regexpSize(expr)
		if err != nil {
			return err
		}
		for e, ok := match.Parent(); ok; e, ok = e.Parent() {
			if e.Kind() == ast.ComprehensionKind {
				size *= MaxMetadataKeys
			}
		}
		if total += size; size > maxRegexProgram || total > maxRegexProgram {
			return errRegexpSize
		}
	}
	return nil
}

// mentions reports whether e reads the variable called name.
func mentions(e ast.Expr, name string) (found bool) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || isIdent(e, name)
	}))
	return found
}
