package rego

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// OPA asks the budget once for an expression. But an expression that compares two values, iterates
// over one or looks one up can take as long as the values are large. So a condition is compiled with
// guards: calls that stand before such an expression and charge for the values that it reads.
//
//	x = y                          metered.read(x, y); x = y
//	x = [y, z]                     metered.read(y, z); x = [y, z]
//	data.p.s[k] = v                g = data.p.s; metered.read(g, k); g[k] = v
//	{v | …}                        {v | …; metered.insert(v)}
//	f(x)                           metered.insert(x); f(x)
//
// An iteration visits each part of a value once at most, so the price of a value covers it. A value
// is charged in each expression that reads it, because OPA does no work between two expressions.
//
// OPA's index of rules and its index of comprehensions are off, because they do work that depends on
// values but has no expression.

// guarding adds guards to the modules of one condition.
type guarding struct {
	m *meters
	// mocks says that a function stands in for another one, so that a call of a built-in function
	// may be a call of the module's function.
	mocks bool
	fresh int // numbers the variables for the values of references
	// documents has the variables that are documents: see [parseDocument]. The look-up of a known key in one
	// takes no longer for a large document. So it is not charged for the document.
	documents names
	// ownsLists says that a module defines what is at data.lists.
	ownsLists bool
}

// guard adds guards to c's modules. It must run before operators are replaced by their meters.
func (m *meters) guard(c *ast.Compiler) {
	g := &guarding{m: m, fresh: m.fresh, documents: make(names)}
	defer func() { m.fresh = g.fresh }()
	for _, module := range c.Modules {
		g.ownsLists = g.ownsLists || ownsDataLists(module)
		ast.WalkWiths(module, func(w *ast.With) bool {
			ref, ok := w.Target.Value.(ast.Ref)
			g.mocks = g.mocks || !ok || !ref.HasPrefix(ast.InputRootRef)
			return g.mocks
		})
	}
	for _, module := range c.Modules {
		for _, r := range module.Rules {
			for ; r != nil; r = r.Else {
				g.rule(r)
			}
		}
	}
}

// rule adds guards to a rule's body. At the end of the body the values of the head are charged,
// because OPA compares them with those that the rule has already.
func (g *guarding) rule(r *ast.Rule) {
	known := make(names)
	for _, a := range r.Head.Args {
		known.add(a)
	}
	var value []*ast.Term
	key := slices.Clone(r.Head.Ref()[1:])
	if r.Head.Key != nil {
		key = append(key, r.Head.Key)
	}
	if r.Head.Value != nil {
		value = append(value, r.Head.Value)
	}
	name := "rule " + r.Ref().String()
	r.Body = g.body(r.Body, known, r.Loc(), func(known names) []*ast.Expr {
		return g.kept(name, known.whole(key...), known.in(value...))
	})
}

// names are the variables that have a value.
type names map[ast.Var]bool

// add adds the variables of x that are not local to a comprehension or a body in x.
func (n names) add(x any) {
	walkTerms(x, func(t *ast.Term) {
		if v, ok := t.Value.(ast.Var); ok && !ast.RootDocumentNames.Contains(t) {
			n[v] = true
		}
	})
}

// in returns the variables in terms that have a value, as often as they occur.
func (n names) in(terms ...*ast.Term) (vars []*ast.Term) {
	for _, t := range terms {
		walkTerms(t, func(t *ast.Term) {
			if v, ok := t.Value.(ast.Var); ok && n[v] {
				vars = append(vars, t)
			}
		})
	}
	return vars
}

// literal returns the variables in t that have a value, if t is a list, an object or a set. OPA hashes
// the values when it makes t.
func (n names) literal(t *ast.Term) []*ast.Term {
	switch t.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return n.in(t)
	}
	return nil
}

// whole returns terms without those that are constant. Of a term that has no value yet, or that a
// function cannot take, it returns the variables that have one.
func (n names) whole(terms ...*ast.Term) (out []*ast.Term) {
	for _, t := range terms {
		takes, constant := true, true
		walkTerms(t, func(t *ast.Term) {
			switch v := t.Value.(type) {
			case ast.Var:
				takes, constant = takes && n[v], false
			case ast.Ref, ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				takes, constant = false, false
			}
		})
		switch {
		case !takes:
			out = append(out, n.in(t)...)
		case !constant:
			out = append(out, t)
		}
	}
	return out
}

// walkTerms calls f with the terms in x, except those in comprehensions and bodies.
func walkTerms(x any, f func(*ast.Term)) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every, *ast.Not, ast.Body:
			return true
		case *ast.Term:
			f(x)
		}
		return false
	}).Walk(x)
}

// body returns b with guards. known are the variables that have a value before b. end returns the
// guards at b's end.
func (g *guarding) body(b ast.Body, known names, at *ast.Location, end func(names) []*ast.Expr) ast.Body {
	known = maps.Clone(known)
	var out ast.Body
	for _, e := range b {
		if e.Negated {
			e = g.negated(e)
		}
		out = append(out, g.expr(e, known)...)
		switch terms := e.Terms.(type) {
		case *ast.Term:
			known.add(terms)
		case []*ast.Term:
			for _, t := range terms[1:] {
				known.add(t)
			}
		}
	}
	if end != nil {
		for _, e := range end(known) {
			out = append(out, e.SetLocation(at))
		}
	}
	for i, e := range out {
		e.Index = i
	}
	return out
}

// negated returns `not e` as `not { e }`, so that guards can stand beside e.
func (g *guarding) negated(e *ast.Expr) *ast.Expr {
	inner := *e
	inner.Negated, inner.With = false, nil
	outer := *e
	outer.Negated, outer.Terms = false, ast.NewNot(&inner)
	return &outer
}

// expr returns e with its guards before it.
func (g *guarding) expr(e *ast.Expr, known names) (out []*ast.Expr) {
	add := func(before ...*ast.Expr) {
		for _, b := range before {
			out = append(out, b.SetLocation(e.Location))
		}
	}
	for _, w := range e.With {
		add(g.read(known.in(w.Value))...)
		add(g.call(meterPrefix+"with", nil, func(b *budget, _ []*ast.Term) bool { return b.charge(stepsPerWith) })...)
	}
	switch terms := e.Terms.(type) {
	case *ast.Not:
		terms.Body = g.body(terms.Body, known, e.Location, nil)
	case *ast.Every:
		add(g.lookUp(known, ast.NewTerm(ast.Ref{terms.Domain, ast.VarTerm("each")}))...)
		inner := maps.Clone(known)
		inner.add(terms.Domain)
		inner.add(terms.Value)
		if terms.Key != nil {
			inner.add(terms.Key)
		}
		terms.Body = g.body(terms.Body, inner, e.Location, nil)
	case *ast.Term:
		one := []*ast.Term{terms}
		g.inTerms(one, known)
		ref := g.hoisted(one[0], e, known, false, add)
		add(g.lookUp(known, ref)...)
		e.Terms = ref
	case []*ast.Term:
		g.inTerms(terms[1:], known)
		switch {
		case e.IsEquality():
			g.equality(e, terms, known, add)
		case isRuleRef(terms[0]) || g.mocks:
			add(g.kept("call "+terms[0].String(), known.whole(terms[1:]...), nil)...)
		}
	}
	return append(out, e)
}

func isRuleRef(t *ast.Term) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && ref.HasPrefix(ast.DefaultRootRef)
}

// equality adds the guards of a = b. If one side is a scalar or a variable that gets its value here,
// only literals are charged.
func (g *guarding) equality(e *ast.Expr, terms []*ast.Term, known names, add func(...*ast.Expr)) {
	_, ref2 := terms[2].Value.(ast.Ref)
	terms[1] = g.hoisted(terms[1], e, known, ref2 || ast.IsComprehension(terms[2].Value), add)
	terms[2] = g.hoisted(terms[2], e, known, ast.IsComprehension(terms[1].Value), add)
	for i, t := range terms[1:] {
		v, isVar := t.Value.(ast.Var)
		if ref, isRef := terms[2-i].Value.(ast.Ref); isVar && !known[v] && isRef && g.isDocument(ref) {
			g.documents.add(t)
		}
	}
	simple := func(t *ast.Term) bool {
		v, isVar := t.Value.(ast.Var)
		return ast.IsScalar(t.Value) || isVar && !known[v]
	}
	whole := func(t *ast.Term) bool { // no part of it is looked up
		_, isRef := t.Value.(ast.Ref)
		return !isRef
	}
	switch {
	case simple(terms[1]) && whole(terms[2]), simple(terms[2]) && whole(terms[1]):
		add(g.read(append(known.literal(terms[1]), known.literal(terms[2])...))...)
	case whole(terms[1]) && whole(terms[2]):
		if a, b := known.whole(terms[1]), known.whole(terms[2]); len(a) == 1 && len(b) == 1 {
			add(g.call(meterPrefix+"compare", []*ast.Term{a[0], b[0]}, func(b *budget, args []*ast.Term) bool {
				return b.charge(comparing(args[0].Value, args[1].Value, b.left()))
			})...)
			return
		}
		add(g.read(known.in(terms[1:]...))...)
	default:
		add(g.lookUp(known, terms[1:]...)...)
	}
}

// lookUp returns the guard of references among terms. To visit a part takes longer than to read it.
func (g *guarding) lookUp(known names, terms ...*ast.Term) []*ast.Expr {
	var vars []*ast.Term
	visited := false
	for _, t := range terms {
		if g.looksUp(known, t) {
			vars = append(vars, known.in(t.Value.(ast.Ref)[1:]...)...)
			continue
		}
		vars = append(vars, known.in(t)...)
		if ref, ok := t.Value.(ast.Ref); ok {
			walkTerms(ref[1:], func(t *ast.Term) {
				v, isVar := t.Value.(ast.Var)
				visited = visited || isVar && !known[v]
			})
		}
	}
	if !visited || len(vars) == 0 {
		return g.read(vars)
	}
	name := fmt.Sprintf("%svisit%d", meterPrefix, len(vars))
	return g.call(name, vars, func(b *budget, args []*ast.Term) bool {
		for _, a := range args {
			if !b.charge(visits * reading(a.Value, b.left())) {
				return false
			}
		}
		return true
	})
}

// isDocument reports whether the value at ref is a document or a part of one.
func (g *guarding) isDocument(ref ast.Ref) bool {
	v, _ := ref[0].Value.(ast.Var)
	return g.documents[v] || ref.HasPrefix(dataLists) && !g.ownsLists
}

// looksUp reports whether t looks up known keys in a document.
func (g *guarding) looksUp(known names, t *ast.Term) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && g.isDocument(ref) && !slices.ContainsFunc(ref[1:], func(t *ast.Term) bool {
		v, isVar := t.Value.(ast.Var)
		return isVar && !known[v] || !isVar && !ast.IsScalar(t.Value)
	})
}

// hoisted gives the value of a reference to a rule or to the input a name, if the reference goes on
// into that value by something else than a constant text. If whole is set, it names the value of
// every reference. It returns the term that stands for t.
func (g *guarding) hoisted(t *ast.Term, e *ast.Expr, known names, whole bool, add func(...*ast.Expr)) *ast.Term {
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		return t
	}
	name := func(ref ast.Ref) *ast.Term {
		g.fresh++
		name := ast.VarTerm(fmt.Sprintf("__value%d__", g.fresh)).SetLocation(t.Location)
		value := ast.NewTerm(ref).SetLocation(t.Location)
		add(g.read(known.in(value))...)
		bind := ast.Equality.Expr(name, value)
		bind.With = e.With
		add(bind)
		known.add(name)
		if g.isDocument(ref) {
			g.documents.add(name)
		}
		return name
	}
	if ref.HasPrefix(ast.DefaultRootRef) || ref.HasPrefix(ast.InputRootRef) {
		computed := slices.IndexFunc(ref[1:], func(t *ast.Term) bool {
			_, text := t.Value.(ast.String)
			return !text
		})
		if computed >= 0 {
			ref = append(ast.Ref{name(slices.Clone(ref[:1+computed]))}, ref[1+computed:]...)
		}
	}
	if whole {
		return name(ref)
	}
	return ast.NewTerm(ref).SetLocation(t.Location)
}

// inTerms adds guards to the comprehensions in terms. It replaces each comprehension by another
// term, for which OPA has no index.
func (g *guarding) inTerms(terms []*ast.Term, known names) {
	for i, t := range terms {
		at := t.Location
		g.fresh++
		name := fmt.Sprintf("comprehension %d", g.fresh)
		switch v := t.Value.(type) {
		case *ast.ArrayComprehension:
			v.Body = g.body(v.Body, known, at, func(known names) []*ast.Expr { return g.read(known.in(v.Term)) })
		case *ast.SetComprehension:
			v.Body = g.body(v.Body, known, at, func(known names) []*ast.Expr {
				return g.kept(name, known.whole(v.Term), nil)
			})
		case *ast.ObjectComprehension:
			v.Body = g.body(v.Body, known, at, func(known names) []*ast.Expr {
				return g.kept(name, known.whole(v.Key), known.in(v.Value))
			})
		default:
			continue
		}
		terms[i] = ast.NewTerm(t.Value).SetLocation(at)
	}
}

// read returns a guard that charges for the values of vars, if there are any.
func (g *guarding) read(vars []*ast.Term) []*ast.Expr {
	if len(vars) == 0 {
		return nil
	}
	name := fmt.Sprintf("%sread%d", meterPrefix, len(vars))
	return g.call(name, vars, func(b *budget, args []*ast.Term) bool {
		for _, a := range args {
			if !b.charge(reading(a.Value, b.left())) {
				return false
			}
		}
		return true
	})
}

// kept returns a guard that charges for keys and values that are added to the collection called
// name. OPA looks for the key there first.
func (g *guarding) kept(name string, keys, values []*ast.Term) []*ast.Expr {
	if len(keys) == 0 {
		return g.read(values)
	}
	if g.m.collections[name] == 0 {
		g.m.collections[name] = len(g.m.collections) + 1
	}
	collection := g.m.collections[name]
	called := fmt.Sprintf("%sinsert%d_%d_%d", meterPrefix, collection, len(keys), len(values))
	return g.call(called, slices.Concat(keys, values), func(b *budget, args []*ast.Term) bool {
		for i, a := range args {
			if !b.charge(reading(a.Value, b.left())) || i < len(keys) && !b.charge(b.insert(collection, a.Value)) {
				return false
			}
		}
		return true
	})
}

// call returns a call of a function that charges for its arguments.
func (g *guarding) call(name string, args []*ast.Term, charge func(*budget, []*ast.Term) bool) []*ast.Expr {
	if g.m.functions[name] == nil {
		kinds := make([]types.Type, len(args))
		for i := range kinds {
			kinds[i] = types.A
		}
		g.m.functions[name] = &topdown.Builtin{
			Decl: &ast.Builtin{Name: name, Decl: types.NewFunction(kinds, nil)},
			Func: func(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
				b, ok := bctx.Cancel.(*budget)
				if !ok || !charge(b, args) {
					return tooMuch()
				}
				return iter(nil)
			},
		}
	}
	terms := []*ast.Term{ast.NewTerm(ast.Ref{ast.VarTerm(name)})}
	return []*ast.Expr{ast.NewExpr(append(terms, args...))}
}
