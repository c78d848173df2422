package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// A message of a rule must hold no value of the metadata, even if the value passed through other rules or
// functions. It may hold other texts of the intent only as rows keep them: see messages.go. So this
// analysis finds which members of the intent the value of each rule of a compiled module could hold.
//
// It may name a member that a value cannot hold, but must not miss one:
//
//   - If an expression reads a member, each variable of the expression could hold it. A unification, a
//     call or a test could choose the variable's value by the member.
//   - A call of a function reads all members that the function reads.
//   - A reference to a rule holds the members that the rule's head holds. A constant in the head holds
//     none, whatever the body compares. In an expression with a `with`, the reference reads all members
//     that the rule reads, because the `with` could make the rule choose.
//   - A key of the metadata counts as no member, because rows have the keys.

// held is a set of members of the intent.
type held uint8

// The members. heldTexts stands for all other texts of the intent. The cost is not among them, because
// rows keep it unchanged.
const (
	heldMetadata held = 1 << iota
	heldResource
	heldAgent
	heldTexts

	heldAll = heldMetadata | heldResource | heldAgent | heldTexts
)

// membersHeld has the paths of each member in the input.
var membersHeld = func() map[held][]ast.Ref {
	paths := map[held][]ast.Ref{
		heldMetadata: {metadataRef}, heldResource: {resourceRef},
		heldAgent: {ast.MustParseRef("input.agent.id")},
	}
	for _, m := range condition.Members {
		switch m.ID {
		case condition.Resource:
		case condition.AgentID:
			paths[heldAgent] = append(paths[heldAgent], ast.MustParseRef("input.intent."+m.Name))
		default:
			paths[heldTexts] = append(paths[heldTexts], ast.MustParseRef("input.intent."+m.Name))
		}
	}
	return paths
}()

// ofInput returns the members that the value at a reference to the input could hold.
func ofInput(ref ast.Ref) (of held) {
	for member, paths := range membersHeld {
		for _, path := range paths {
			if mayMeet(ref, path) {
				of |= member
			}
		}
	}
	return of
}

// mayMeet reports whether one of two references may begin with the other.
func mayMeet(a, b ast.Ref) bool {
	for i := range min(len(a), len(b)) {
		if ast.IsConstant(a[i].Value) && ast.IsConstant(b[i].Value) && !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// taint says what the rules of compiled modules could hold.
type taint struct {
	compiler *ast.Compiler
	// guards are functions that only charge for values.
	guards func(*ast.Expr) bool
	// values has the members that the value of a rule could hold, and reads the members that the rule
	// could read. A rule has heldAll while it is analysed. OPA refuses recursion, so this is never used.
	values, reads map[*ast.Rule]held
}

func newTaint(c *ast.Compiler, guards func(*ast.Expr) bool) *taint {
	return &taint{compiler: c, guards: guards, values: make(map[*ast.Rule]held), reads: make(map[*ast.Rule]held)}
}

// value returns the members that the value of r or of one of its else rules could hold.
func (t *taint) value(r *ast.Rule) held {
	if of, known := t.values[r]; known {
		return of
	}
	t.values[r] = heldAll
	var of held
	for each := r; each != nil; each = each.Else {
		b := t.body(each)
		for _, term := range each.Head.Reference[1:] {
			of |= b.holds(term, false)
		}
		if each.Head.Key != nil {
			of |= b.holds(each.Head.Key, false)
		}
		if each.Head.Value != nil {
			of |= b.holds(each.Head.Value, false)
		}
	}
	t.values[r] = of
	return of
}

// readBy returns the members that the body and the head of r could read.
func (t *taint) readBy(r *ast.Rule) held {
	if of, known := t.reads[r]; known {
		return of
	}
	t.reads[r] = heldAll
	of := (&tainted{taint: t}).holds(r, true)
	t.reads[r] = of
	return of
}

// tainted is the analysis of one rule.
type tainted struct {
	*taint
	// vars has the members that each variable could hold. aliases has the variables that only name a
	// part of the input.
	vars    map[ast.Var]held
	aliases map[ast.Var]ast.Ref
	// read is called with each variable that is read, unless it is nil.
	read func(ast.Var)
}

// body returns the analysis of r, with the members that its variables could hold.
func (t *taint) body(r *ast.Rule) *tainted {
	b := &tainted{taint: t, vars: make(map[ast.Var]held), aliases: make(map[ast.Var]ast.Ref)}
	for _, e := range r.Body {
		if !e.IsEquality() && !e.IsAssignment() || e.Negated || len(e.With) > 0 {
			continue
		}
		for i, side := range e.Operands()[:2] {
			v, isVar := side.Value.(ast.Var)
			ref, isRef := e.Operand(1 - i).Value.(ast.Ref)
			if isVar && isRef && ref.HasPrefix(ast.InputRootRef) && ref.IsGround() && b.aliases[v] == nil {
				b.aliases[v] = ref
				break
			}
		}
	}
	type line struct {
		of          held
		reads, sets []ast.Var
	}
	var lines []line
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if t.guards(e) {
			return false
		}
		var l line
		b.read = func(v ast.Var) { l.reads = append(l.reads, v) }
		l.of = b.holds(e, len(e.With) > 0)
		b.variables(e, func(v ast.Var) { l.sets = append(l.sets, v) })
		lines = append(lines, l)
		return false
	})
	b.read = nil
	for changed := true; changed; {
		changed = false
		for i := range lines {
			l := &lines[i]
			for _, v := range l.reads {
				l.of |= b.vars[v]
			}
			for _, v := range l.sets {
				changed = changed || b.vars[v]|l.of != b.vars[v]
				b.vars[v] |= l.of
			}
		}
	}
	return b
}

// resolved returns a reference without an alias at its beginning.
func (b *tainted) resolved(ref ast.Ref) ast.Ref {
	if v, ok := ref[0].Value.(ast.Var); ok && b.aliases[v] != nil {
		return b.aliases[v].Concat(ref[1:])
	}
	return ref
}

// byKey reports whether ref reads a value of the metadata and its key is a variable.
func byKey(ref ast.Ref) bool {
	if len(ref) != len(metadataRef)+1 || !ref.HasPrefix(metadataRef) {
		return false
	}
	_, isVar := ref[len(metadataRef)].Value.(ast.Var)
	return isVar
}

// variables calls f with the variables of an expression. It leaves out uses of a variable as a key of the
// metadata.
func (b *tainted) variables(e *ast.Expr, f func(ast.Var)) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			return eachOperand(x, visitor.Walk)
		case ast.Ref:
			return len(e.With) == 0 && byKey(b.resolved(x))
		case ast.Var:
			f(x)
		}
		return false
	})
	visitor.Walk(e)
}

// eachOperand calls f with each operand and each `with` of a call. It reports false if e is no call.
func eachOperand(e *ast.Expr, f func(any)) bool {
	if !e.IsCall() {
		return false
	}
	for _, t := range e.Operands() {
		f(t)
	}
	for _, w := range e.With {
		f(w)
	}
	return true
}

// holds returns the members that the parts of x could hold. with says that a `with` could change the
// documents that the rules in x read.
func (b *tainted) holds(x any, with bool) (of held) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			if b.guards(x) || !with && b.onlyKeys(x) {
				return true
			}
			if len(x.With) > 0 && !with {
				of |= b.holds(x, true)
				return true
			}
			if x.IsCall() {
				of |= b.operator(x.Operator(), with)
			}
			return eachOperand(x, visitor.Walk)
		case ast.Ref:
			of |= b.ref(x, with)
			for _, t := range x[1:] {
				visitor.Walk(t)
			}
			return true
		case ast.Var:
			of |= b.ref(ast.Ref{ast.NewTerm(x)}, with)
		}
		return false
	})
	visitor.Walk(x)
	return of
}

// operator returns the members that the result of a function could hold, not counting its arguments.
func (b *tainted) operator(ref ast.Ref, with bool) held {
	switch {
	case ref.HasPrefix(ast.DefaultRootRef):
		return b.ref(ref, with)
	case strings.TrimPrefix(ref.String(), meterPrefix) == itemsName:
		return heldMetadata
	}
	return 0
}

// onlyKeys reports whether e asks only for the keys of the metadata.
func (b *tainted) onlyKeys(e *ast.Expr) bool {
	if !e.IsCall() || strings.TrimPrefix(e.Operator().String(), meterPrefix) != ast.ObjectKeys.Name || len(e.With) > 0 {
		return false
	}
	switch of := e.Operand(0).Value.(type) {
	case ast.Var:
		return b.aliases[of].Equal(metadataRef)
	case ast.Ref:
		return b.resolved(of).Equal(metadataRef)
	}
	return false
}

// ref returns the members that the value at a reference could hold, not counting its indexes.
func (b *tainted) ref(ref ast.Ref, with bool) (of held) {
	ref = b.resolved(ref)
	v, _ := ref[0].Value.(ast.Var)
	switch {
	case ref.HasPrefix(ast.InputRootRef):
		return ofInput(ref)
	case !ref.HasPrefix(ast.DefaultRootRef):
		if b.read != nil {
			b.read(v)
		}
		return b.vars[v]
	}
	for _, r := range b.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true}) {
		if with || len(r.Head.Args) > 0 {
			of |= b.readBy(r)
		} else {
			of |= b.value(r)
		}
	}
	return of
}
