package rego

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine/condition"
)

// OPA's type checker knows the members of the input. It does not know them in two places: in a
// function of the module that gets the input as an argument, and in the key of object.get. A
// misspelt member there is undefined, or the default. [reviewer.misread] finds such members. It
// gives the type checker a copy of each function, with the input in the place of the parameter, and
// a reference in the place of each object.get.

// maxCopies bounds how many copies of functions one condition needs. Further calls are not checked.
const maxCopies = 100

// misread adds a mistake for each member that the input never has and OPA's type checker does not
// see.
func (r *reviewer) misread(found *condition.Error) {
	m := r.module.Copy()
	c := copier{module: m, constants: r.constants(), copied: make(map[string]bool)}
	written := len(m.Rules)
	for at := 0; at < len(m.Rules); at++ { // the copies also call functions
		c.add(m.Rules[at])
	}
	if len(m.Rules) == written {
		return
	}
	compiler := newCompiler(sandbox(), conditionSchema())
	if names, _, _ := refersTo(m); len(names) > 0 && !isLibrary(m) {
		r.libraries.link(compiler)
	}
	compiler.Compile(map[string]*ast.Module{entry: m})
	for _, e := range compiler.Errors {
		switch e.Details.(type) {
		case *ast.RefErrInvalidDetail, *ast.RefErrUnsupportedDetail:
			if m := mistake(e.Location, "%s", message(e)); !slices.Contains(found.Mistakes, m) {
				found.Add(m)
			}
		}
	}
}

// copier adds rules to a module. Only the type checker reads them.
type copier struct {
	module    *ast.Module
	constants map[ast.Var]*ast.Term
	copied    map[string]bool // functions with arguments
}

// add adds a rule for each call in r that gets a part of the input.
func (c *copier) add(r *ast.Rule) {
	calls(r, func(operator *ast.Term, args []*ast.Term) {
		if operator.Value.String() == ast.ObjectGet.Name && len(args) > 1 {
			c.member(args[0], args[1])
			return
		}
		c.call(operator.Value.String(), args)
	})
}

// member adds a rule that reads the member that object.get reads.
func (c *copier) member(object, key *ast.Term) {
	ref := c.input(object)
	if ref == nil {
		return
	}
	key = named(key, c.constants)
	path := []*ast.Term{key}
	if list, ok := key.Value.(*ast.Array); ok {
		path = nil
		list.Foreach(func(t *ast.Term) { path = append(path, t) })
	}
	for _, t := range path {
		if _, ok := t.Value.(ast.String); !ok {
			return
		}
	}
	reads := ast.NewTerm(ref.Concat(path)).SetLocation(key.Location)
	body := ast.NewBody(ast.NewExpr(reads).SetLocation(key.Location))
	head := ast.NewHead(c.name(), nil, ast.BooleanTerm(true))
	c.append(&ast.Rule{Head: head, Body: body, Location: key.Location}, nil)
}

// call adds copies of the rules of a function. The parameters that get a part of the input are
// replaced by that part.
func (c *copier) call(function string, args []*ast.Term) {
	given := make([]ast.Ref, len(args))
	for i, arg := range args {
		given[i] = c.input(arg)
	}
	if !slices.ContainsFunc(given, func(ref ast.Ref) bool { return ref != nil }) {
		return
	}
	id := fmt.Sprint(function, given)
	if c.copied[id] || len(c.copied) == maxCopies {
		return
	}
	c.copied[id] = true
	name := c.name()
	for _, r := range slices.Clone(c.module.Rules) {
		if r.Default || len(r.Head.Args) != len(args) || r.Head.Ref().String() != function {
			continue
		}
		c.append(r.Copy(), func(r *ast.Rule) bool { return replaced(r, name, given) })
	}
}

// append adds r to the module, unless change returns false for r or one of its else rules.
func (c *copier) append(r *ast.Rule, change func(*ast.Rule) bool) {
	for of := r; of != nil; of = of.Else {
		of.Module = c.module
		if change != nil && !change(of) {
			return
		}
	}
	c.module.Rules = append(c.module.Rules, r)
}

// name returns a name that no rule has.
func (c *copier) name() ast.Var { return ast.Var(fmt.Sprintf("copy of rule %d", len(c.module.Rules))) }

// input returns the part of the input that t is, or nil.
func (c *copier) input(t *ast.Term) ast.Ref {
	ref, _ := named(t, c.constants).Value.(ast.Ref)
	for range maxNames {
		if len(ref) == 0 || ref.HasPrefix(ast.InputRootRef) {
			break
		}
		head, _ := named(ref[0], c.constants).Value.(ast.Ref)
		if head == nil {
			return nil
		}
		ref = head.Concat(ref[1:])
	}
	if !ref.HasPrefix(ast.InputRootRef) || !ref.IsGround() {
		return nil
	}
	return ref
}

// replaced gives r another name, and given[i] in the place of its parameter i. It returns false if
// a parameter has no name, or if an every in r declares the parameter again. OPA refuses any other
// rule that declares a parameter again.
func replaced(r *ast.Rule, name ast.Var, given []ast.Ref) bool {
	parts := make(map[ast.Var]ast.Ref)
	var rest []*ast.Term
	for i, arg := range r.Head.Args {
		v, isVar := arg.Value.(ast.Var)
		switch {
		case given[i] == nil:
			rest = append(rest, arg)
		case isVar:
			parts[v] = given[i]
		case !arg.IsGround():
			return false
		}
	}
	anew := false
	ast.NewGenericVisitor(func(x any) bool {
		if every, ok := x.(*ast.Every); ok {
			for _, t := range [...]*ast.Term{every.Key, every.Value} {
				if t != nil {
					v, _ := t.Value.(ast.Var)
					anew = anew || parts[v] != nil
				}
			}
		}
		return false
	}).Walk(r.Body)
	if anew {
		return false
	}
	r.Head.Name, r.Head.Reference, r.Head.Args = name, ast.Ref{ast.NewTerm(name)}, rest
	put := ast.NewGenericTransformer(func(x any) (any, error) {
		switch x := x.(type) {
		case ast.Var:
			if part := parts[x]; part != nil {
				return part, nil
			}
		case ast.Ref:
			if v, ok := x[0].Value.(ast.Var); ok && parts[v] != nil {
				return parts[v].Concat(x[1:]), nil
			}
		}
		return x, nil
	})
	body, err := ast.Transform(put, r.Body)
	if err != nil {
		return false
	}
	r.Body = body.(ast.Body)
	if r.Head.Value != nil {
		value, err := ast.Transform(put, r.Head.Value.Value)
		if err != nil {
			return false
		}
		r.Head.Value = ast.NewTerm(value.(ast.Value)).SetLocation(r.Head.Value.Location)
	}
	return true
}
