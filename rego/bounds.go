package rego

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"writ/engine/condition"
)

// A budget cannot interrupt OPA while it copies or compares one value, while one
// glob backtracks or while a regular expression is matched. So what could make
// either large is refused beforehand.

// checkBounds refuses a module, which has been compiled, that could take
// memory or time without bound.
func checkBounds(m *ast.Module) error {
	found := condition.Error{Mistakes: badPatterns(m)}
	g := growth{module: m, known: map[ast.Var]int{}}
	for _, r := range m.Rules {
		if n := g.rule(r.Head.Ref()[0].Value); n > maxGrowth {
			found.Add(mistake(r.Loc(),
				"%v can become thousands of times larger than its input: build fewer values out of other values",
				r.Head.Ref()))
		}
	}
	return found.Err()
}

// growth bounds how much larger than the input the values of rules can become.
// A literal or a call of n variable parts is at most n times as large as the
// largest of them, a chain of them at most the product.
type growth struct {
	module *ast.Module
	known  map[ast.Var]int
}

// rule bounds the rules called name. Rules are not recursive: OPA has refused
// that.
func (g *growth) rule(name ast.Value) int {
	v, ok := name.(ast.Var)
	if !ok {
		return 1
	}
	if n, ok := g.known[v]; ok {
		return n
	}
	// Rules are not recursive, yet a name in a reference may only look like one of
	// a rule that is being bounded: that is refused rather than followed for ever.
	g.known[v] = maxGrowth + 1
	total := 1
	for _, r := range g.module.Rules {
		for ; r != nil; r = r.Else {
			if r.Head.Ref()[0].Value.Compare(v) == 0 {
				total = saturate(total, g.body(r))
			}
		}
	}
	g.known[v] = total
	return total
}

// body bounds one rule: the product of its literals and calls, of the functions
// that it calls, and of the largest rule that it refers to.
func (g *growth) body(r *ast.Rule) int {
	total, largest := 1, 1
	visit := func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			return x != r // an else is bounded on its own
		case *ast.Expr:
			if x.IsCall() {
				total = saturate(total, g.call(x.Operator(), x.Operands()))
			}
		case ast.Call:
			ref, ok := x[0].Value.(ast.Ref)
			if ok {
				total = saturate(total, g.call(ref, x[1:]))
			}
		case *ast.Array, ast.Object, ast.Set:
			total = saturate(total, variables(x))
		case ast.Ref:
			if _, ok := ast.BuiltinMap[x.String()]; ok {
				return true // regex.match is no reference to a rule called match
			}
			largest = max(largest, g.refersTo(r, x))
		case ast.Var:
			largest = max(largest, g.refersTo(r, ast.Ref{ast.NewTerm(x)}))
		}
		return false
	}
	ast.NewGenericVisitor(visit).Walk(r)
	return saturate(total, largest)
}

// refersTo bounds the rule of the module that ref could mean, other than r.
func (g *growth) refersTo(r *ast.Rule, ref ast.Ref) int {
	largest := 1
	if ref.HasPrefix(ast.InputRootRef) {
		return largest
	}
	own := r.Head.Ref()[0].Value
	for _, t := range ref {
		var name ast.Var
		switch v := t.Value.(type) {
		case ast.Var:
			name = v
		case ast.String:
			name = ast.Var(v)
		}
		if name != "" && own.Compare(name) != 0 {
			largest = max(largest, g.rule(name))
		}
	}
	return largest
}

// call bounds what a call makes of its arguments. A function that answers true
// or false makes nothing of them.
func (g *growth) call(operator ast.Ref, args []*ast.Term) int {
	if b, ok := ast.BuiltinMap[operator.String()]; ok {
		if b.Decl.Result() == nil || types.Compare(b.Decl.Result(), types.B) == 0 {
			return 1
		}
		return saturate(saturate(variables(args), textGrowth(b.Name, args)), repetition(b.Name, args))
	}
	total := variables(args)
	for _, t := range operator {
		switch v := t.Value.(type) {
		case ast.Var:
			total = saturate(total, g.rule(v))
		case ast.String:
			total = saturate(total, g.rule(ast.Var(v)))
		}
	}
	return total
}

// repetition bounds what a call makes of constants: the numbers of a range,
// which loops over it multiply, and the characters of a text. What it makes of
// the input is charged when it runs.
func repetition(function string, args []*ast.Term) int {
	switch function {
	case ast.NumbersRange.Name, ast.NumbersRangeStep.Name:
		return max(1, rangeBytes(args, termBytes*(maxGrowth+1))/termBytes)
	case ast.Split.Name:
		if len(args) > 1 && args[1].Value.Compare(ast.String("")) == 0 {
			return splitGrowth
		}
	}
	return 1
}

// variables counts the parts of x that are not constants, at least 1. The input
// is bounded, so that what is read from it counts as a constant.
func variables(x any) int {
	n := 0
	count := func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if !x.HasPrefix(ast.InputRootRef) {
				n++
			}
			return true
		case ast.Var, ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			n++
			return true
		}
		return false
	}
	if terms, ok := x.([]*ast.Term); ok {
		for _, t := range terms {
			ast.NewGenericVisitor(count).Walk(t)
		}
	} else {
		ast.NewGenericVisitor(count).Walk(x)
	}
	return max(n, 1)
}

func saturate(a, b int) int { return min(a*b, maxGrowth+1) }

// badPatterns finds calls of glob.match whose pattern could backtrack, which
// takes time that is a power of the length of what it is matched with, or has an
// escape, which OPA's index of rules takes for two characters, so that it leaves
// out rules that match; and regular expressions that are too large or whose
// author would be the caller.
func badPatterns(m *ast.Module) []condition.Mistake {
	var found []condition.Mistake
	var exprs regexps
	calls(m, func(operator *ast.Term, args []*ast.Term) {
		name := operator.Value.String()
		if name == ast.GlobMatch.Name && len(args) >= 2 {
			if problem := unfit(args[0], args[1]); problem != "" {
				found = append(found, mistake(args[0].Location, "%s: %s", name, problem))
			}
		}
		if i, ok := patternArgument(name); ok && len(args) > i {
			if problem := exprs.unfit(args[i]); problem != "" {
				found = append(found, mistake(args[i].Location, "%s: %s", name, problem))
			}
		}
	})
	// Built-in functions that stand in for others have arguments that are not seen.
	ast.WalkWiths(m, func(w *ast.With) bool {
		if _, builtin := ast.BuiltinMap[w.Value.Value.String()]; builtin {
			found = append(found, mistake(w.Location, "%v cannot stand in for another function", w.Value))
		}
		return false
	})
	return found
}

// calls calls f with each call of a function in a module.
func calls(m *ast.Module, f func(operator *ast.Term, args []*ast.Term)) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			if x.IsCall() {
				f(x.OperatorTerm(), x.Operands())
			}
		case ast.Call:
			f(x[0], x[1:])
		}
		return false
	}).Walk(m)
}

// unfit says why a pattern cannot be used. An asterisk that ends the
// pattern, or that the slash which it stops at follows, has one place to end.
func unfit(pattern, delimiters *ast.Term) string {
	s, ok := pattern.Value.(ast.String)
	if !ok {
		return "the pattern must be a constant"
	}
	if strings.Contains(string(s), `\`) {
		return "the pattern has an escape: use regex.match"
	}
	slash := delimiters.Value.Compare(ast.NewArray(ast.StringTerm("/"))) == 0
	searching := 0
	for rest := string(s); ; {
		at := strings.IndexByte(rest, '*')
		if at < 0 {
			break
		}
		after := strings.TrimLeft(rest[at:], "*")
		single := len(rest[at:])-len(after) == 1
		if after != "" && (!slash || !single || after[0] != '/') {
			searching++
		}
		rest = after
	}
	if searching > 1 {
		return fmt.Sprintf("the pattern has %d asterisks that need a search, at most 1 is allowed: use regex.match",
			searching)
	}
	return ""
}
