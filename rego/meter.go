package rego

import (
	"maps"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ.example/writ/engine/glob"
)

// A condition is charged in steps: a number for each expression that OPA evaluates, and one for
// each byte of a built-in function's arguments and result. OPA asks the budget whether to go on
// before each expression, but not within a function. So a condition calls its functions through
// meters. A meter charges for the possible size of the result before the function runs, and for the
// result afterwards. Guards charge for work outside of calls: see guard.go.

// meterPrefix begins the name by which modules call a function through its meter.
const meterPrefix = "metered."

// unmetered reports whether a function is a unification, which OPA does itself, or print, which only
// tools call: see print.go. Guards charge for them.
func unmetered(name string) bool {
	return name == ast.Equality.Name || name == ast.Assign.Name || name == ast.InternalPrint.Name
}

// meters has the metered functions of one condition. Their keys are the names that its modules
// call.
type meters struct {
	functions map[string]*topdown.Builtin
	// programs has the number of instructions of each regular expression in the condition.
	programs map[string]int
	// globs has each glob in the condition whose delimiter is a slash.
	globs map[string]*glob.List
	// collections numbers what the condition adds values to: rules, comprehensions and the results
	// of functions.
	collections map[string]int
	// fresh is the last number of a name that guards have made.
	fresh int
	// zones checks the time zones of a call.
	zones func(function string, args []*ast.Term) error
}

// newMeters changes c's modules so that they call their functions through meters, and adds guards.
// sources are the modules as their author wrote them. The functions serve also the libraries l, which
// c's modules call.
func newMeters(c *ast.Compiler, l *Libraries, sources ...*ast.Module) *meters {
	m := &meters{functions: make(map[string]*topdown.Builtin), programs: make(map[string]int),
		globs: make(map[string]*glob.List), collections: make(map[string]int), zones: zonesKnown(sources)}
	m.include(l.meters)
	m.guard(c)
	visit := func(x any) bool {
		e, ok := x.(*ast.Expr)
		if !ok {
			return false
		}
		for _, w := range e.With {
			w.Target = m.meter(w.Target)
		}
		if terms, ok := e.Terms.([]*ast.Term); ok {
			m.note(terms)
			terms[0] = m.meter(terms[0])
		}
		return false
	}
	for _, module := range c.Modules {
		ast.NewGenericVisitor(visit).Walk(module)
	}
	return m
}

// include adds the functions of libraries. A guard's name says all that it does, so a library and its
// callers can share guards. A metered function knows the patterns of its condition, so it is made again
// here.
func (m *meters) include(of *meters) {
	if of == nil {
		return
	}
	maps.Copy(m.functions, of.functions)
	maps.Copy(m.programs, of.programs)
	maps.Copy(m.globs, of.globs)
	maps.Copy(m.collections, of.collections)
	m.fresh = of.fresh
	own := m.zones
	m.zones = func(function string, args []*ast.Term) error {
		err := own(function, args)
		if err != nil {
			err = of.zones(function, args)
		}
		return err
	}
	for called := range of.functions {
		if decl, ok := builtinOf(strings.TrimPrefix(called, meterPrefix)); ok {
			delete(m.functions, called)
			m.meter(ast.NewTerm(ast.Ref{ast.VarTerm(decl.Name)}))
		}
	}
}

// note records the number of instructions if a call has a constant regular expression, and compiles
// its constant glob.
func (m *meters) note(call []*ast.Term) {
	if call[0].Value.String() == ast.GlobMatch.Name && len(call) > 2 && isSlash(call[2]) {
		if s, ok := call[1].Value.(ast.String); ok {
			m.globs[string(s)], _ = glob.CompileSet([]string{string(s)}) // badPatterns has compiled the pattern
		}
	}
	i, ok := patternArgument(call[0].Value.String())
	if !ok || len(call) <= i+1 {
		return
	}
	if s, ok := call[i+1].Value.(ast.String); ok {
		var one regexps
		one.problem(call[i+1]) // badPatterns has accepted the pattern
		m.programs[string(s)] = one.instructions
	}
}

// meter returns the operator that modules call instead of operator.
func (m *meters) meter(operator *ast.Term) *ast.Term {
	name := operator.Value.String()
	decl, builtin := builtinOf(name)
	if !builtin || unmetered(name) {
		return operator
	}
	called := meterPrefix + name
	if m.functions[called] == nil {
		d := *decl
		d.CanSkipBctx = false // the function gets its budget from the context
		m.functions[called] = &topdown.Builtin{Decl: &d, Func: m.charging(decl, m.functionOf(name))}
	}
	return ast.NewTerm(ast.Ref{ast.VarTerm(called)}).SetLocation(operator.Location)
}

// charging returns a function that calls f. It charges for the arguments and the possible result
// before the call, and for the result afterwards.
func (m *meters) charging(decl *ast.Builtin, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	arity := decl.Decl.Arity()
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(*budget)
		if !ok {
			return tooMuch() // cannot happen: prepared.ask sets the budget
		}
		args := operands[:min(arity, len(operands))]
		if !b.charge(m.price(decl.Name, args, b.left())) {
			return tooMuch()
		}
		if err := m.zones(decl.Name, args); err != nil {
			return err
		}
		return f(bctx, operands, func(made *ast.Term) error {
			if !b.charge(size(made.Value, b.left())) {
				return tooMuch()
			}
			return iter(made)
		})
	}
}

// globOf returns the compiled glob of a call of glob.match, or nil if OPA must match it.
func (m *meters) globOf(args []*ast.Term) *glob.List {
	pattern, ok := args[0].Value.(ast.String)
	if !ok || !isSlash(args[1]) {
		return nil
	}
	return m.globs[string(pattern)]
}

// matchGlob is OPA's glob.match. Globs whose delimiter is a slash are matched in linear time.
func (m *meters) matchGlob(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
	text, ok := args[2].Value.(ast.String)
	if set := m.globOf(args); ok && set != nil {
		return iter(ast.InternedTerm(set.Match(string(text)) >= 0))
	}
	return topdown.GetBuiltin(ast.GlobMatch.Name)(bctx, args, iter)
}

// tooMuch returns the error that ends an evaluation.
func tooMuch() error {
	return topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: "the condition makes or reads too much"}}
}
