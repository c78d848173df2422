package condition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"

	"writ.example/writ/engine/resource"
)

func compileCEL(source string, o Options) (*Condition, error) {
	l, err := cels()
	if err != nil {
		return nil, err
	}
	if err := checkNesting(l, source); err != nil {
		return nil, inCEL(err)
	}
	checked, err := l.check(source)
	if err != nil {
		return nil, inCEL(err)
	}
	expr := checked.NativeRep().Expr()
	if err := cmp.Or(checkOrder(expr), checkZones(expr)); err != nil && !o.Stored {
		return nil, inCEL(err)
	}
	patterns, lists, err := checkCalls(checked.NativeRep())
	if err != nil {
		return nil, inCEL(err)
	}
	c := &Condition{Outcomes: translate(expr), cel: source, patternBytes: patterns.bytes, Lists: lists,
		ReadsResource: mentions(expr, fields[Resource].path),
		ReadsAgent: o.Side == resource.ForBlock &&
			(mentions(expr, fields[AgentID].path) || mentions(expr, fields[GovernedAgentID].path))}
	if c.ReadsAgent {
		c.Outcomes = Outcomes{c.Holds.asked(), c.Fails.asked()}
	}
	if c.Program, err = l.plan(checked, o.Side); err != nil {
		return nil, inCEL(err)
	}
	return c, nil
}

// checkOrder refuses to order a metadata value by a text that looks like a number. The author of
// such a condition meant a number.
func checkOrder(expr ast.Expr) error {
	for e := range parts(expr) {
		if text, key := textOrder(e); key.isMetadata() {
			return fmt.Errorf(
				`%[1]s orders as text, in which "10" comes before "9": write %[2]s(intent.%[1]s, %[3]s) and compare `+
					`that with 0`,
				key.Label(), fnDecimalCompare, Quote(text))
		}
	}
	return nil
}

// inCEL returns err as mistakes in the member cel.
func inCEL(err error) error {
	var bad *Error
	if errors.As(err, &bad) {
		return bad.In("/cel")
	}
	return refuse("/cel", "%v", err)
}

// checkNesting refuses literals that are nested too deeply, before they are type-checked. It
// parses a source only if enough brackets are open at once.
func checkNesting(l *language, source string) error {
	open, deepest := 0, 0
	for _, r := range source {
		switch r {
		case '[', '{':
			open++
			deepest = max(deepest, open)
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	if deepest <= maxDepth {
		return nil
	}
	parsed, issues := l.cel.Parse(source)
	if issues.Err() != nil {
		return l.explain(source, issues)
	}
	if literalDepth(parsed.NativeRep()) > maxDepth {
		return fmt.Errorf("lists and maps are nested deeper than %d levels", maxDepth)
	}
	return nil
}

func literalDepth(parsed *ast.AST) (deepest int) {
	isLiteral := func(e ast.NavigableExpr) bool { return e.Kind() == ast.ListKind || e.Kind() == ast.MapKind }
	for _, e := range ast.MatchDescendants(ast.NavigateAST(parsed), isLiteral) {
		depth := 1
		for p, ok := e.Parent(); ok; p, ok = p.Parent() {
			if isLiteral(p) {
				depth++
			}
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

// checkCalls refuses a regular expression that is not constant, because the caller could then
// choose the expression. It also refuses too many patterns and too large patterns. Planning, not
// checkCalls, refuses globs that are not constant. lists has the name of each list that the
// expression uses, once.
func checkCalls(checked *ast.AST) (patterns budget, lists []string, err error) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(checked), ast.KindMatcher(ast.CallKind)) {
		switch name, args := operandsOf(e); {
		case name == overloads.Matches:
			err = patterns.match(e, args[1])
		case takesPatterns(name):
			err = patterns.globs(name, args[0])
		case name == fnList:
			list, ok := listNamed(e)
			if in, isOperand := e.Parent(); !ok || !isOperand || in.Kind() != ast.CallKind ||
				in.AsCall().FunctionName() != operators.In {
				return patterns, nil, errListName
			}
			lists, err = append(lists, list), CheckListName(list)
		}
		if err != nil {
			return patterns, nil, err
		}
	}
	slices.Sort(lists)
	return patterns, slices.Compact(lists), nil
}

var errListName = fmt.Errorf(
	`%s: the name must be a constant, and only "in" asks a list: intent.agent_id in %s("trusted")`, fnList, fnList,
)

// match adds the regular expression expr of call. A macro around the call may run the expression
// for every metadata key. So each macro multiplies the count by [MaxMetadataKeys].
func (b *budget) match(call ast.NavigableExpr, expr ast.Expr) error {
	text, ok := textLiteral(expr)
	if !ok {
		return errors.New("matches: the regular expression must be a constant string")
	}
	times := 1
	for e, ok := call.Parent(); ok && times <= MaxInstructions; e, ok = e.Parent() {
		if e.Kind() == ast.ComprehensionKind {
			times *= MaxMetadataKeys
		}
	}
	return b.regexp(text, times)
}

func (b *budget) globs(function string, patterns ast.Expr) error {
	list := []ast.Expr{patterns}
	if patterns.Kind() == ast.ListKind {
		list = patterns.AsList().Elements()
	}
	for _, e := range list {
		text, ok := textLiteral(e)
		if !ok {
			continue
		}
		if err := b.glob(calls[function], text); err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
	}
	return nil
}

// mentions reports whether e reads the variable name.
func mentions(e ast.Expr, name string) bool {
	for e := range parts(e) {
		if isIdent(e, name) {
			return true
		}
	}
	return false
}
