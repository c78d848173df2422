package rego

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A body with a line that is surely false does not match, whatever another line failed at. This
// holds for match objects, trees and CEL, too. OPA evaluates the lines of a body in order. So its
// result is an error if a line fails before it comes to the one that is false.
//
// Only after an error, the bodies of the condition are asked again in parts. A part is a line with
// the lines that give its variables their values. If a part has no result and no error, its body has
// none. A line that calls another rule is surely false if every body of that rule is.
//
// The parts have the guards and meters of the condition, and the same budget. If anything else goes
// wrong, the condition remains an error.

// apart asks for the lines of one condition.
type apart struct {
	p     *prepared
	input ast.Value
	left  *budget
	fresh int // numbers the calls of functions
	// marks is told what is asked. It may be nil.
	marks *marks
}

// match returns whether the condition matches. known is false if it remains an error. ref is the rule
// that decides the condition.
func (a *apart) match(ref ast.Ref) (matches, known bool) {
	var rest []*ast.Rule
	asked := 0
	for _, r := range a.p.compiler.GetRulesExact(ref) {
		if r.Default {
			if !r.Head.Value.Equal(ast.InternedTerm(false)) {
				return false, false
			}
			continue
		}
		asked++
		if !a.falseRule(nil, r) {
			rest = append(rest, r)
			continue
		}
		a.marks.concludes(r, false)
	}
	if len(rest) == asked {
		return false, false
	}
	for i, r := range rest {
		value, err := a.valueOf(r)
		if err != nil || i > 0 && value != matches && !isSet(r) {
			return false, false
		}
		a.marks.concludes(r, value)
		matches = value || matches && isSet(r)
	}
	return matches, true
}

// errApart is the error of a rule that cannot be asked by itself.
var errApart = errors.New("the rule cannot be asked by itself")

// valueOf returns the value of a rule that decides, false if the rule has no value. A rule of a set
// has one if it adds an element.
func (a *apart) valueOf(r *ast.Rule) (bool, error) {
	if isSet(r) {
		return a.holds(r.Body)
	}
	if r.Else != nil || r.Head.Key != nil || !r.Head.Value.Equal(ast.InternedTerm(true)) {
		return false, errApart
	}
	a.marks.asks(nil, 0)
	return a.holds(r.Body)
}

// falseRule reports whether a rule has surely no value. before has the lines that give the
// parameters of a function their values.
func (a *apart) falseRule(before []*ast.Expr, r *ast.Rule) bool {
	for ; r != nil; r = r.Else {
		if !a.falseBody(before, r.Body) {
			return false
		}
	}
	return true
}

// falseBody reports whether a line of b is surely false after the lines before it.
func (a *apart) falseBody(before []*ast.Expr, b ast.Body) bool {
	for i, e := range b {
		if a.p.isGuard(e) {
			continue
		}
		a.marks.asks(b, i)
		holds, err := a.holds(append(a.partOf(before, b, i), e))
		switch {
		case a.left.spent:
			return false
		case err == nil && !holds, err != nil && a.falseCall(before, b, i):
			a.marks.surelyFalse(e)
			return true
		}
	}
	return false
}

// falseCall reports whether line i of b needs the value of another rule that surely has none.
func (a *apart) falseCall(before []*ast.Expr, b ast.Body, i int) bool {
	e := b[i]
	if e.Negated || len(e.With) > 0 {
		return false
	}
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return a.falseRef(terms)
	case []*ast.Term:
		if e.IsEquality() || e.IsAssignment() {
			return slices.ContainsFunc(terms[1:], a.falseRef)
		}
		if isRuleRef(terms[0]) {
			return a.falseFunction(before, b, i)
		}
	}
	return false
}

// falseRef reports whether t refers to the value of a rule that surely has none.
func (a *apart) falseRef(t *ast.Term) bool {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref.HasPrefix(ast.DefaultRootRef) {
		return false
	}
	for n := 2; n <= len(ref); n++ {
		if rules := a.p.compiler.GetRulesExact(ref[:n]); len(rules) > 0 {
			return !slices.ContainsFunc(rules, func(r *ast.Rule) bool {
				return !isComplete(r) || len(r.Head.Args) > 0 || !a.falseRule(nil, r)
			})
		}
	}
	return false
}

// isComplete reports whether a rule has no value unless one of its bodies holds.
func isComplete(r *ast.Rule) bool {
	return !r.Default && r.Head.Key == nil && r.Head.RuleKind() == ast.SingleValue && r.Head.Ref().IsGround()
}

// falseFunction reports whether line i of b calls a function that surely has no result.
func (a *apart) falseFunction(before []*ast.Expr, b ast.Body, i int) bool {
	args := b[i].Operands()
	ref, _ := b[i].OperatorTerm().Value.(ast.Ref)
	rules := a.p.compiler.GetRulesExact(ref)
	for _, r := range rules {
		if !isComplete(r) || len(r.Head.Args) > len(args) {
			return false
		}
	}
	before = a.partOf(before, b, i)
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r *ast.Rule) bool {
		own := a.renamed(r)
		if own == nil {
			return true
		}
		given := slices.Clone(before)
		for k, param := range own.Head.Args {
			given = append(given, ast.Equality.Expr(param, args[k]))
		}
		return !a.falseRule(given, own)
	})
}

// renamed returns a copy of a function in which no variable has the name of another rule's, or nil.
func (a *apart) renamed(r *ast.Rule) *ast.Rule {
	a.fresh++
	names := variablesIn(r)
	own, err := ast.TransformVars(r.Copy(), func(v ast.Var) (ast.Value, error) {
		if names.Contains(v) {
			return ast.Var(fmt.Sprintf("%s of call %d", v, a.fresh)), nil
		}
		return v, nil
	})
	if err != nil {
		return nil
	}
	copied, _ := own.(*ast.Rule)
	return copied
}

// variablesIn returns the variables in x, which are neither functions nor documents.
func variablesIn(x any) ast.VarSet {
	vars := ast.NewVarSet()
	var visitor *ast.GenericVisitor
	walk := func(terms []*ast.Term) {
		for _, t := range terms {
			visitor.Walk(t)
		}
	}
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			terms, ok := x.Terms.([]*ast.Term)
			if !ok {
				return false
			}
			walk(terms[1:])
			for _, w := range x.With {
				visitor.Walk(w)
			}
			return true
		case *ast.With:
			if target, ok := x.Target.Value.(ast.Ref); ok {
				walk(target[1:])
			}
			visitor.Walk(x.Value)
			return true
		case ast.Var:
			if !ast.RootDocumentNames.Contains(ast.NewTerm(x)) {
				vars.Add(x)
			}
		}
		return false
	})
	visitor.Walk(x)
	return vars
}

// partOf returns the lines before, and then the lines of b that give the variables of line i their
// values, with their guards.
func (a *apart) partOf(before []*ast.Expr, b ast.Body, i int) []*ast.Expr {
	known := ast.NewVarSet()
	for _, e := range before {
		known.Update(variablesIn(e))
	}
	vars := make([]ast.VarSet, i+1)
	first := make(map[ast.Var]int) // the first line with a variable gives it its value
	for k := range vars {
		vars[k] = variablesIn(b[k])
		for v := range vars[k] {
			if _, ok := first[v]; !ok && !known.Contains(v) {
				first[v] = k
			}
		}
	}
	needed := make([]bool, i+1)
	var need func(k int)
	need = func(k int) {
		needed[k] = true
		for v := range vars[k] {
			if at, ok := first[v]; ok && !needed[at] {
				need(at)
			}
		}
	}
	need(i)
	part := slices.Clone(before)
	for k := range i {
		if needed[k] || a.p.isGuard(b[k]) && len(vars[k].Diff(known)) == 0 {
			part = append(part, b[k])
			known.Update(vars[k])
		}
	}
	return part
}

// isGuard reports whether e only charges for values: see guard.go.
func (p *prepared) isGuard(e *ast.Expr) bool {
	if !e.IsCall() {
		return false
	}
	f := p.functions[e.Operator().String()]
	return f != nil && f.Decl.Decl.Result() == nil
}

// holds reports whether lines have a result. Every error before the first result is an error.
func (a *apart) holds(lines []*ast.Expr) (bool, error) {
	body := make(ast.Body, len(lines))
	for i, e := range lines {
		line := *e
		line.Index = i
		body[i] = &line
	}
	err := a.p.iterate(body, a.input, a.left, func(topdown.QueryResult) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// errFound ends an evaluation after its first result.
var errFound = errors.New("a result was found")

// recovered returns the result of a condition after an error.
func (c *sandboxed) recovered(input ast.Value, left *budget) (matches, known bool) {
	if left.spent {
		return false, false
	}
	a := apart{p: c.question, input: input, left: left}
	matches, known = a.match(c.ref)
	return matches, known && !left.spent
}
