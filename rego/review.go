package rego

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// Review implements [engine.RegoCondition]. To find references and calls, it follows variables,
// imports and the module's rules. It recognizes three forms of negation: `not`, `!=` and the value
// false. It does not follow the arguments of the module's functions.
func (c *sandboxed) Review() condition.Review { return c.reviewed() }

func (c *sandboxed) review() condition.Review {
	m, err := parseCondition(c.source)
	if err != nil {
		return condition.Review{} // cannot happen: the source has compiled
	}
	r := reviewer{
		module: m, names: make(map[ast.Var]*ast.Term), seen: make(map[visit]bool),
		libraries: c.from,
		fields:    make(map[string]bool), dodges: make(map[string]bool), asks: make(map[string]bool),
	}
	r.name()
	r.rules(ast.Var(entryOf(m)), toHold)
	review := condition.Review{ExceptsResource: r.excepts}
	maps.DeleteFunc(r.dodges, func(name string, _ bool) bool { return r.asks[name] })
	review.Dodges = slices.Sorted(maps.Keys(r.dodges))
	r.read()
	review.Fields = slices.Sorted(maps.Keys(r.fields))
	review.CallerTime = r.fields["issued_at"] && !strings.Contains(c.source, decidedAt)
	var found condition.Error
	review.TextOrder = r.misordered(&found)
	r.zones(&found)
	r.misread(&found)
	severalEntries(m, &found)
	c.misspoken(m, &found)
	review.Echoes = c.echoes()
	if isLibrary(m) {
		found.Add(mistake(m.Package.Loc(), "the packages below %s are those of libraries: take a package of your own, "+
			"such as team.payments", libraryRoot))
	}
	review.Refused = found.Err()
	return review
}

// reviewer reads a module as its author wrote it.
type reviewer struct {
	module    *ast.Module
	libraries *Libraries
	// names are the values of variables, imports and rules without a body.
	names   map[ast.Var]*ast.Term
	seen    map[visit]bool
	excepts bool
	// fields, dodges and asks have names in the form of [condition.Review].
	fields, dodges, asks map[string]bool
}

// need is the value that a rule or an expression must have to make the condition match.
type need bool

// The needs. toHold needs true. toFail, behind an odd number of negations, needs undefined or
// false.
const (
	toHold need = false
	toFail need = true
)

// not returns the need of the expression behind a not. It returns n if there is no not.
func (n need) not(there bool) need { return n != need(there) }

// visit identifies a visit to the rules called name with one need.
type visit struct {
	name ast.Var
	need need
}

// operand is the context of a term: the need of the expression around it, and whether that
// expression begins with a not.
type operand struct {
	need  need
	under bool
}

// itself returns the need of the term: behind the not, if there is one.
func (o operand) itself() need { return o.need.not(o.under) }

// name fills r.names. If two values have one name, the later value counts.
func (r *reviewer) name() {
	for _, i := range r.module.Imports {
		r.names[i.Name()] = i.Path
	}
	for _, rule := range r.module.Rules {
		if v, ok := rule.Head.Ref()[0].Value.(ast.Var); ok && len(rule.Head.Ref()) == 1 && len(rule.Head.Args) == 0 {
			r.alias(v, rule.Head.Value)
		}
	}
	ast.WalkExprs(r.module, func(e *ast.Expr) bool {
		if e.IsAssignment() || e.IsEquality() {
			if v, ok := e.Operand(0).Value.(ast.Var); ok {
				r.alias(v, e.Operand(1))
			}
		}
		return false
	})
}

// alias records t as the value of v, if t is a reference or a call.
func (r *reviewer) alias(v ast.Var, t *ast.Term) {
	if t == nil {
		return
	}
	switch t.Value.(type) {
	case ast.Ref, ast.Call:
		r.names[v] = t
	}
}

// rules visits the rules called name.
func (r *reviewer) rules(name ast.Var, n need) {
	if r.seen[visit{name, n}] {
		return
	}
	r.seen[visit{name, n}] = true
	for _, rule := range r.module.Rules {
		if rule.Head.Ref()[0].Value.Compare(name) != 0 || rule.Default {
			continue
		}
		for ; rule != nil; rule = rule.Else {
			ofBody := n
			if v := rule.Head.Value; v != nil {
				ofBody = n.not(v.Value.Compare(ast.Boolean(false)) == 0)
				r.term(v, operand{need: ofBody})
			}
			r.body(rule.Body, ofBody)
		}
	}
}

func (r *reviewer) body(body ast.Body, n need) {
	for _, e := range body {
		r.expr(e, n)
	}
}

func (r *reviewer) expr(e *ast.Expr, n need) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		r.term(terms, operand{n, e.Negated})
	case []*ast.Term:
		if !e.IsAssignment() {
			r.call(terms, operand{n, e.Negated})
		} else {
			r.reads(e.Operand(1), func(ref ast.Ref) { r.absent(ref, n == toHold) })
		}
	case *ast.Every:
		r.body(terms.Body, n.not(e.Negated))
	}
}

func (r *reviewer) term(t *ast.Term, o operand) {
	switch v := t.Value.(type) {
	case ast.Call:
		r.call(v, o)
	case ast.Var, ast.Ref:
		if name, ok := optional(r.resolve(t)); ok {
			r.asks[name] = true
		}
		for _, name := range ruleNames(r.module, v) {
			r.rules(name, o.itself())
			if value := r.names[name]; value != nil && !r.seen[visit{name + ":", o.itself()}] {
				r.seen[visit{name + ":", o.itself()}] = true
				r.term(value, operand{need: o.itself()})
			}
		}
	}
}

func (r *reviewer) call(call []*ast.Term, o operand) {
	operator := call[0].Value.String()
	except := o.itself() != need(operator == ast.NotEqual.Name)
	equality := operator == ast.Equal.Name || operator == ast.Equality.Name
	for _, arg := range call[1:] {
		_, plain := arg.Value.(ast.Ref)
		r.reads(arg, func(ref ast.Ref) {
			r.excepts = r.excepts || except && ref.HasPrefix(resourceRef)
			// For an equality, Rego moves the operand out of the not only if the operand is
			// computed. Then the expression is undefined, not true.
			r.absent(ref, (o.need == toFail) == (o.under && equality && plain))
		})
	}
	for _, name := range ruleNames(r.module, call[0].Value) {
		r.rules(name, o.itself())
	}
}

// absent records the name of ref if it is optional and dodges is true. dodges says that the
// condition fails if ref is absent.
func (r *reviewer) absent(ref ast.Ref, dodges bool) {
	if name, ok := optional(ref); ok && dodges {
		r.dodges[name] = true
	}
}

// optional returns the name of the optional member that ref reads: a metadata key, or the cost.
func optional(ref ast.Ref) (string, bool) {
	if key, ok := metadataKey(ref); ok {
		return "metadata." + key, true
	}
	return "cost", ref.HasPrefix(costRef)
}

var (
	resourceRef = ast.MustParseRef("input.intent.resource")
	metadataRef = ast.MustParseRef("input.intent.metadata")
	costRef     = ast.MustParseRef("input.intent.cost")
)

// metadataKey returns the metadata key that ref reads.
func metadataKey(ref ast.Ref) (string, bool) {
	if len(ref) != len(metadataRef)+1 || !ref.HasPrefix(metadataRef) {
		return "", false
	}
	key, ok := ref[len(ref)-1].Value.(ast.String)
	return string(key), ok
}

// resolve returns t as a reference that begins with no name: a name is replaced by its value. It
// returns nil if t is not a reference.
func (r *reviewer) resolve(t *ast.Term) ast.Ref {
	var ref ast.Ref
	switch v := t.Value.(type) {
	case ast.Var:
		ref = ast.Ref{t}
	case ast.Ref:
		ref = v
	}
	for range maxNames {
		if len(ref) == 0 {
			return nil
		}
		v, _ := ref[0].Value.(ast.Var)
		value, ok := r.names[v]
		if !ok {
			return ref
		}
		head, ok := value.Value.(ast.Ref)
		if !ok {
			return ref
		}
		ref = head.Concat(ref[1:])
	}
	return ref
}

// reads calls found with each reference that t reads, directly or through names.
func (r *reviewer) reads(t *ast.Term, found func(ast.Ref)) {
	r.readsBut(t, found, make(map[ast.Var]bool))
}

// readsBut is like reads, but does not follow the names in followed.
func (r *reviewer) readsBut(t *ast.Term, found func(ast.Ref), followed map[ast.Var]bool) {
	ast.NewGenericVisitor(func(x any) bool {
		t, ok := x.(*ast.Term)
		if !ok {
			return false
		}
		switch t.Value.(type) {
		case ast.Ref, ast.Var:
			ref := r.resolve(t)
			found(ref)
			if v, ok := ref[0].Value.(ast.Var); ok && r.names[v] != nil && !followed[v] {
				followed[v] = true
				r.readsBut(r.names[v], found, followed)
			}
			return true
		}
		return false
	}).Walk(t)
}

// ruleNames returns the names of m's rules that v refers to.
func ruleNames(m *ast.Module, v ast.Value) []ast.Var {
	ref, ok := v.(ast.Ref)
	if name, isVar := v.(ast.Var); isVar {
		return []ast.Var{name}
	}
	if !ok {
		return nil
	}
	if rest := len(m.Package.Path); ref.HasPrefix(m.Package.Path) && len(ref) > rest {
		if s, ok := ref[rest].Value.(ast.String); ok {
			return []ast.Var{ast.Var(s)}
		}
	}
	if name, ok := ref[0].Value.(ast.Var); ok {
		return []ast.Var{name}
	}
	return nil
}
