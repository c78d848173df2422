package rego

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// OPA's type checker knows the members of the input. It does not know them in two places: in a
// function that gets the input as an argument, and in the key of object.get. A misspelt member there
// is undefined, or the default. A [copier] finds such members. It gives the type checker a copy of
// each function, of the module or of a library, with the input in the place of the parameter, and a
// reference in the place of each object.get.

// maxCopies bounds how many copies of functions one condition needs. Further calls are not checked.
const maxCopies = 100

// misread adds a mistake for each member that the input never has and OPA's type checker does not
// see. The mistake of a library's function is at the call in the module.
func (r *reviewer) misread(found *condition.Error) {
	m := r.module.Copy()
	c := copier{module: m, libraries: r.libraries, constants: r.constants()}
	if isLibrary(m) {
		c.libraries = new(Libraries)
	}
	for _, i := range m.Imports {
		if _, other := c.constants[i.Name()]; !other {
			c.constants[i.Name()] = i.Path
		}
	}
	for _, of := range m.Rules {
		c.rules = append(c.rules, copied{Rule: of, constants: c.constants})
	}
	for _, mistake := range c.mistakes(map[string]*ast.Module{entry: m}) {
		if !slices.Contains(found.Mistakes, mistake) {
			found.Add(mistake)
		}
	}
}

// misread returns the same mistakes of the libraries. Each is in the file of a library.
func (l *Libraries) misread() []condition.Mistake {
	c := copier{libraries: l}
	for _, name := range slices.Sorted(maps.Keys(l.rules)) {
		for _, of := range l.rules[name] {
			c.rules = append(c.rules, copied{Rule: of, constants: make(constants).assigned(of)})
		}
	}
	return c.mistakes(make(map[string]*ast.Module))
}

// copier makes copies of the functions that rules call with a part of the input. Only the type checker
// reads them.
type copier struct {
	// module has the rules that may be called without a package, or is nil. It also gets their copies.
	module    *ast.Module
	libraries *Libraries
	constants constants // of the module
	// rules has the rules to follow, and the copies. The copies also call functions.
	rules []copied
	// copies has the copies of libraries' rules.
	copies []*ast.Rule
	ids    map[string]bool // functions with arguments
}

// copied is a rule that calls functions.
type copied struct {
	*ast.Rule
	constants constants
	// file is the file of the library that the rule is a copy of, or "".
	file string
	// from is the call in the module that the copy of a library's rule is made for, or nil.
	from *ast.Location
}

// copyFile is the name of the file of a copy of a library's rule: its number in [copier].rules.
const copyFile = "copy %d"

// mistakes adds copies to modules and returns the mistakes of their types.
func (c *copier) mistakes(modules map[string]*ast.Module) (found []condition.Mistake) {
	c.ids = make(map[string]bool)
	written := len(c.rules)
	for at := 0; at < len(c.rules); at++ {
		c.follow(c.rules[at])
	}
	if len(c.rules) == written {
		return nil
	}
	// The copies of libraries' rules have the full names of rules. In a module of their own no name
	// of the condition's means something else there.
	modules["copies"] = &ast.Module{Package: &ast.Package{Path: ast.MustParseRef("data.writ.copies")}, Rules: c.copies}
	for _, m := range modules {
		for _, of := range m.Rules {
			for ; of != nil; of = of.Else {
				of.Module = m
			}
		}
	}
	compiler := newCompiler(sandbox(), conditionSchema())
	if c.libraries.compiler != nil {
		c.libraries.link(compiler)
	}
	compiler.Compile(modules)
	for _, e := range compiler.Errors {
		switch e.Details.(type) {
		case *ast.RefErrInvalidDetail, *ast.RefErrUnsupportedDetail:
			found = append(found, c.mistake(e))
		}
	}
	return found
}

func (c *copier) mistake(e *ast.Error) condition.Mistake {
	at := 0
	if e.Location == nil {
		return mistake(nil, "%s", message(e))
	}
	if _, err := fmt.Sscanf(e.Location.File, copyFile, &at); err != nil {
		return mistake(e.Location, "%s", message(e))
	}
	of, place := c.rules[at], *e.Location
	if place.File = of.file; of.from == nil {
		return mistake(&place, "%s", message(e))
	}
	return mistake(of.from, "the library reads what the input never has, at %s:%d:%d: %s",
		place.File, place.Row, place.Col, message(e))
}

// follow adds a rule for each call in r that gets a part of the input.
func (c *copier) follow(r copied) {
	calls(r.Rule, func(operator *ast.Term, args []*ast.Term) {
		if operator.Value.String() == ast.ObjectGet.Name && len(args) > 1 {
			c.member(r, args[0], args[1])
			return
		}
		c.call(r, operator, args)
	})
}

// member adds a rule that reads the member that object.get reads in r.
func (c *copier) member(r copied, object, key *ast.Term) {
	ref := c.input(r, object)
	if ref == nil {
		return
	}
	key = named(key, r.constants)
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
	reads := ast.NewTerm(located(ref, key.Location).Concat(path)).SetLocation(key.Location)
	body := ast.NewBody(ast.NewExpr(reads).SetLocation(key.Location))
	head := ast.NewHead(c.name(), nil, ast.BooleanTerm(true))
	r.Rule = &ast.Rule{Head: head, Body: body, Location: key.Location}
	c.add(r)
}

// call adds copies of the rules of a function that r calls. The parameters that get a part of the
// input are replaced by that part.
func (c *copier) call(r copied, operator *ast.Term, args []*ast.Term) {
	function := c.resolve(r, operator)
	given := make([]ast.Ref, len(args))
	for i, arg := range args {
		given[i] = c.input(r, arg)
	}
	if !slices.ContainsFunc(given, func(ref ast.Ref) bool { return ref != nil }) {
		return
	}
	id := fmt.Sprint(function, given)
	if c.ids[id] || len(c.ids) == maxCopies {
		return
	}
	c.ids[id] = true
	name := c.name()
	for _, of := range c.named(function) {
		if of.Default || len(of.Head.Args) != len(args) {
			continue
		}
		to := copied{Rule: of.Copy(), from: r.from}
		if function.HasPrefix(libraries) {
			to.file = of.Location.File
			if r.file == "" && c.module != nil {
				to.from = operator.Location
			}
			relocate(to.Rule, fmt.Sprintf(copyFile, len(c.rules)))
		}
		if !replaced(to.Rule, name, given) {
			continue
		}
		to.constants = make(constants)
		if to.file == "" {
			maps.Copy(to.constants, c.constants)
		}
		maps.Copy(to.constants, make(constants).assigned(to.Rule))
		c.add(to)
	}
}

// named returns the rules with a full name, or with a name in the module.
func (c *copier) named(name ast.Ref) (rules []*ast.Rule) {
	if name.HasPrefix(libraries) {
		return c.libraries.rules[name.String()]
	}
	for i := range c.rules {
		if of := c.rules[i]; of.file == "" && c.module != nil && of.Head.Ref().Equal(name) {
			rules = append(rules, of.Rule)
		}
	}
	return rules
}

// add adds a rule to the module of the rule that it is for.
func (c *copier) add(r copied) {
	c.rules = append(c.rules, r)
	if r.file == "" && c.module != nil {
		c.module.Rules = append(c.module.Rules, r.Rule)
	} else {
		c.copies = append(c.copies, r.Rule)
	}
}

// name returns a name that no rule has.
func (c *copier) name() ast.Var { return ast.Var(fmt.Sprintf("copy of rule %d", len(c.rules))) }

// input returns the part of the input that a term of r is, or nil.
func (c *copier) input(r copied, t *ast.Term) ast.Ref {
	ref := c.resolve(r, t)
	if !ref.HasPrefix(ast.InputRootRef) || !ref.IsGround() {
		return nil
	}
	return ref
}

// resolve follows a term of r to a part of the input, a rule of a library, or a name in the module. It
// returns nil if t is no reference.
func (c *copier) resolve(r copied, t *ast.Term) ast.Ref {
	ref, _ := named(t, r.constants).Value.(ast.Ref)
	for range maxNames {
		const whole = 4 // data.lib.<name>.<rule>
		var head ast.Ref
		rest := 1
		switch {
		case len(ref) == 0 || ref.HasPrefix(ast.InputRootRef):
			return ref
		case c.module != nil && ref.HasPrefix(c.module.Package.Path) && len(ref) > len(c.module.Package.Path):
			rest = len(c.module.Package.Path)
			name, _ := ref[rest].Value.(ast.String)
			head = ast.Ref{ast.VarTerm(string(name))}
			rest++
		case ref.HasPrefix(libraries) && len(ref) >= whole:
			head, rest = c.libraries.constant(ref[:whole]), whole
		default:
			head, _ = named(ref[0], r.constants).Value.(ast.Ref)
		}
		if head == nil {
			return ref
		}
		ref = head.Concat(ref[rest:])
	}
	return nil
}

// constant returns the reference that a rule of a library stands for, or nil.
func (l *Libraries) constant(name ast.Ref) ast.Ref {
	rules := l.rules[name.String()]
	if len(rules) != 1 || len(rules[0].Head.Args) > 0 || rules[0].Head.Key != nil || rules[0].Head.Value == nil {
		return nil
	}
	ref, _ := rules[0].Head.Value.Value.(ast.Ref)
	return ref
}

// relocate puts the terms of r in another file.
func relocate(r *ast.Rule, file string) {
	ast.WalkTerms(r, func(t *ast.Term) bool {
		if t.Location != nil {
			at := *t.Location
			at.File = file
			t.Location = &at
		}
		return false
	})
}

// located returns ref at another place.
func located(ref ast.Ref, at *ast.Location) ast.Ref {
	ref = slices.Clone(ref)
	ref[0] = ast.NewTerm(ref[0].Value).SetLocation(at)
	return ref
}

// replaced gives r another name, and given[i] in the place of its parameter i. It returns false if
// a parameter has no name, or if an every in r declares the parameter again. OPA refuses any other
// rule that declares a parameter again.
func replaced(r *ast.Rule, name ast.Var, given []ast.Ref) bool {
	if r.Else != nil && !replaced(r.Else, name, given) {
		return false
	}
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
				return located(parts[v], x[0].Location).Concat(x[1:]), nil
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
