package rego

import (
	"fmt"
	"strings"

	gobwas "github.com/gobwas/glob"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
)

// OPA does not ask the budget while it copies or compares one value, or matches one glob or one
// regular expression. A budget cannot interrupt such a step. So a condition that could make a large
// value or a slow pattern is refused when it is compiled.

// checkBounds refuses a compiled module that could take memory or time without bound. It may use the
// libraries l.
func checkBounds(m *ast.Module, l *Libraries) error {
	found := condition.Error{Mistakes: badPatterns(m)}
	g := newGrowth(m, l)
	for _, r := range m.Rules {
		if n := g.rule(r.Head.Ref()[0].Value); n > maxGrowth {
			found.Add(grows(r))
		}
	}
	return found.Err()
}

// grows returns the mistake of a rule whose value can become too large.
func grows(r *ast.Rule) condition.Mistake {
	return mistake(r.Loc(),
		"%v can become thousands of times larger than its input: build fewer values out of other values",
		r.Head.Ref())
}

// growth bounds how many times larger than the input the values of rules can become. A literal or a
// call with n variable parts is at most n times as large as its largest part. If one value is built
// out of another, their factors multiply.
type growth struct {
	module *ast.Module
	known  map[ast.Var]int
	// libraries has the bounds of other modules. imports has what each name can be in the module.
	libraries *Libraries
	imports   map[ast.Var][]ast.Ref
}

func newGrowth(m *ast.Module, l *Libraries) growth {
	g := growth{module: m, known: make(map[ast.Var]int), libraries: l, imports: make(map[ast.Var][]ast.Ref)}
	for _, i := range m.Imports {
		if ref, ok := i.Path.Value.(ast.Ref); ok && ref.HasPrefix(libraries) {
			g.imports[i.Name()] = append(g.imports[i.Name()], ref)
		}
	}
	return g
}

// imported returns a bound for the rules of libraries that ref can refer to.
func (g *growth) imported(ref ast.Ref) int {
	paths := []ast.Ref{ref}
	if v, ok := ref[0].Value.(ast.Var); ok {
		for _, path := range g.imports[v] {
			paths = append(paths, path.Concat(ref[1:]))
		}
	}
	largest := 1
	for _, path := range paths {
		if !path.HasPrefix(libraries) || len(path) == len(libraries) {
			continue
		}
		name, _ := path[len(libraries)].Value.(ast.String)
		lib := g.libraries.library(string(name))
		if lib == nil || lib.module == g.module {
			continue // a library's references to itself are those to its own rules
		}
		if len(path) > len(libraries)+1 {
			if rule, ok := path[len(libraries)+1].Value.(ast.String); ok {
				largest = max(largest, lib.grown[string(rule)])
				continue
			}
		}
		for _, n := range lib.grown {
			largest = max(largest, n)
		}
	}
	return largest
}

// inModule returns the part of ref whose texts can be names of the module's rules: only the first if
// ref is of another library.
func (g *growth) inModule(ref ast.Ref) ast.Ref {
	paths := []ast.Ref{ref}
	if v, ok := ref[0].Value.(ast.Var); ok && len(g.imports[v]) > 0 {
		paths = g.imports[v]
	}
	for _, path := range paths {
		if !path.HasPrefix(libraries) || len(path) == len(libraries) {
			return ref
		}
		name, _ := path[len(libraries)].Value.(ast.String)
		if lib := g.libraries.library(string(name)); lib == nil || lib.module == g.module {
			return ref
		}
	}
	return ref[:1]
}

// rule returns a bound for all rules called name: they add values to one set or object. The rules
// are not recursive: OPA has refused those.
func (g *growth) rule(name ast.Value) int {
	v, ok := name.(ast.Var)
	if !ok {
		return 1
	}
	if n, ok := g.known[v]; ok {
		return n
	}
	// A string in a reference may equal the name of the rule that is being bounded. Such a
	// reference counts as unbounded. Otherwise the recursion would not end.
	g.known[v] = maxGrowth + 1
	total := 0
	for _, r := range g.module.Rules {
		for ; r != nil; r = r.Else {
			if r.Head.Ref()[0].Value.Compare(v) == 0 {
				total = min(total+g.body(r), maxGrowth+1)
			}
		}
	}
	total = max(total, 1)
	g.known[v] = total
	return total
}

// body returns a bound for one rule. It multiplies the bounds of the literals, of the calls, and of
// the largest rule that r refers to.
func (g *growth) body(r *ast.Rule) int {
	total, largest := 1, 1
	visit := func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			return x != r // g.rule bounds each else separately
		case *ast.Expr:
			if x.IsCall() {
				total = saturate(total, g.call(x.Operator(), x.Operands()))
			}
		case ast.Call:
			ref, ok := x[0].Value.(ast.Ref)
			if ok {
				total = saturate(total, g.call(ref, x[1:]))
			}
		case *ast.Array, ast.Object, ast.Set, *ast.TemplateString:
			total = saturate(total, variables(x))
		case ast.Ref:
			if _, ok := builtinOf(x.String()); ok {
				return true // regex.match does not refer to a rule called match
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

// refersTo returns the largest bound of the rules, other than r, that ref could refer to.
func (g *growth) refersTo(r *ast.Rule, ref ast.Ref) int {
	if ref.HasPrefix(ast.InputRootRef) {
		return 1
	}
	largest := g.imported(ref)
	own := r.Head.Ref()[0].Value
	for _, t := range g.inModule(ref) {
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

// call returns a bound for a call. A function that returns a boolean does not make its arguments
// larger.
func (g *growth) call(operator ast.Ref, args []*ast.Term) int {
	if b, ok := builtinOf(operator.String()); ok {
		if b.Decl.Result() == nil || types.Compare(b.Decl.Result(), types.B) == 0 {
			return 1
		}
		return saturate(saturate(variables(args), textGrowth(b.Name, args)), repetition(b.Name, args))
	}
	total := saturate(variables(args), g.imported(operator))
	for _, t := range g.inModule(operator) {
		switch v := t.Value.(type) {
		case ast.Var:
			total = saturate(total, g.rule(v))
		case ast.String:
			total = saturate(total, g.rule(ast.Var(v)))
		}
	}
	return total
}

// repetition returns a bound for the values that a call makes out of constants: the numbers of a
// range, which nested loops multiply, and the characters of a text. A call is charged at run time
// for the values that it makes out of the input.
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

// variables counts the parts of x that are not constants. It returns at least 1. A reference to the
// input counts as a constant, because the size of the input is bounded.
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

// badPatterns finds patterns and formats that a condition must not have. A glob that backtracks takes time
// polynomial in the length of the text. A glob with an escape is refused because OPA's index of
// rules misreads it, and then leaves out rules that match. A regular expression must be small.
// Globs and regular expressions must both be constants.
func badPatterns(m *ast.Module) []condition.Mistake {
	var found []condition.Mistake
	var exprs regexps
	calls(m, func(operator *ast.Term, args []*ast.Term) {
		name := operator.Value.String()
		if name == ast.GlobMatch.Name && len(args) >= 2 {
			if problem := globProblem(args[0], args[1]); problem != "" {
				found = append(found, mistake(args[0].Location, "%s: %s", name, problem))
			}
		}
		if name == ast.Sprintf.Name && len(args) > 0 {
			if problem := formatProblem(args[0]); problem != "" {
				found = append(found, mistake(args[0].Location, "%s: %s", name, problem))
			}
		}
		if name == itemsName && len(args) > 0 {
			if _, constant := args[0].Value.(ast.String); constant {
				found = append(found, mistake(args[0].Location,
					"%s reads a metadata value, not a constant: write %[1]s(input.intent.metadata.to)", name))
			}
		}
		if i, ok := patternArgument(name); ok && len(args) > i {
			if problem := exprs.problem(args[i]); problem != "" {
				found = append(found, mistake(args[i].Location, "%s: %s", name, problem))
			}
		}
	})
	// A function that replaces another one by `with` gets arguments that cannot be seen here.
	ast.WalkWiths(m, func(w *ast.With) bool {
		if _, builtin := builtinOf(w.Value.Value.String()); builtin {
			found = append(found, mistake(w.Location, "%v cannot stand in for another function", w.Value))
		}
		return false
	})
	return found
}

// calls calls f with each function call in x, a part of a module.
func calls(x any, f func(operator *ast.Term, args []*ast.Term)) {
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
	}).Walk(x)
}

// isSlash reports whether delimiters are ["/"].
func isSlash(delimiters *ast.Term) bool {
	return delimiters.Value.Compare(ast.NewArray(ast.StringTerm("/"))) == 0
}

// globProblem returns why a glob cannot be used, or "". An asterisk needs no search if it ends the
// pattern. It also needs none before a slash, because an asterisk does not match a slash. OPA's
// matcher takes time exponential in alternatives. So writ's own matches globs whose delimiter is a
// slash, and other globs must have no alternatives.
func globProblem(pattern, delimiters *ast.Term) string {
	s, ok := pattern.Value.(ast.String)
	if !ok {
		return "the pattern must be a constant"
	}
	if strings.Contains(string(s), `\`) {
		return "the pattern has an escape: use regex.match"
	}
	if !delimiters.IsGround() || !ast.IsConstant(delimiters.Value) {
		return "the delimiters must be a constant, such as [\"/\"]"
	}
	slash := isSlash(delimiters)
	if !slash && strings.Contains(string(s), "{") {
		return `a pattern with alternatives needs the delimiters ["/"]: use regex.match`
	}
	if slash {
		if _, err := glob.CompileSet([]string{string(s)}); err != nil {
			return err.Error()
		}
	} else if _, err := gobwas.Compile(string(s)); err != nil {
		return "the pattern is no glob: " + err.Error()
	}
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
