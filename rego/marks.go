package rego

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ/engine"
	"writ/engine/condition"
)

// An explanation asks the compiled condition again, with a tracer. The tracer knows an expression by
// its place in the author's source. So guards, and what OPA makes of a line, count as that line. A
// line inside of a comprehension, an `every` or a `not` is a part of the line around it.

// mark says what an evaluation made of a line or a rule. If there are several evaluations of it, the
// greatest mark counts.
type mark int

const (
	markNotReached mark = iota
	markUndefined
	markFalse
	markTrue
	markFailed
)

func (m mark) String() string {
	return [...]string{"not_reached", "undefined", "false", "true", "failed"}[m]
}

// unit is a line of a rule's body, or the heading of a rule.
type unit struct {
	engine.ExplainedLeaf
	offset int
	mark   mark
	// rule is the rule of a heading. lines are its lines, without those of its else.
	rule  *ast.Rule
	lines []*unit
}

// raise sets the mark of u to m if m is greater.
func (u *unit) raise(m mark) {
	if u != nil {
		u.mark = max(u.mark, m)
	}
}

// marks has the units of a condition, in the order of the source. It implements OPA's QueryTracer.
type marks struct {
	units []*unit
	// frames has the bodies of rules that are being evaluated, by the id of their query. parents has
	// the parent of each query.
	frames  map[uint64]*frame
	parents map[uint64]uint64
	// failed is the unit with the first error, and last the one that was evaluated last.
	failed, last *unit
	// part says that the query is a part of a body, and whole that the part has all of its last line.
	part, whole bool
	// valued is the heading of a rule that has just got a value, if the value was computed.
	valued *unit
}

// frame is the evaluation of one body. open is the expression that is being evaluated, and unit its
// unit.
type frame struct {
	rule *unit
	open *ast.Expr
	unit *unit
	part bool // it is a part of a body: the lines before the last one are not whole
	// compared says that the open expression compared values, or found the value false. called and
	// returned say that it called a rule, and that the rule had a value.
	compared, called, returned bool
}

// Explain implements [engine.RegoCondition].
func (c *sandboxed) Explain(in *engine.RegoInput) (leaves []engine.ExplainedLeaf, because int) {
	work := in.Work
	if work == nil {
		work = new(condition.Work)
	}
	left := inSteps(work)
	left.metadata = in.Intent.Metadata
	demanded := c.meets(in, work)
	m, err := newMarks(c.source)
	if err != nil {
		return nil, -1 // cannot happen: the source has compiled
	}
	input, err := conditionInput(in, c.lists)
	if err != nil {
		return nil, -1
	}
	traced := *c.question
	traced.tracer, traced.functions = m, m.watching(traced.functions)
	value, err := traced.ask(input, left)
	m.settle(err)
	matches, known := matching(value), err == nil
	if err != nil {
		a := apart{p: &traced, input: input, left: left, marks: m}
		matches, known = a.match(c.ref)
		known = known && !left.spent
		m.settle(nil)
	}
	if !demanded {
		matches, known = false, true
	}
	return m.leaves(), m.because(c.entry(), matches, known)
}

// newMarks returns the units of a condition.
func newMarks(source string) (*marks, error) {
	m := &marks{frames: make(map[uint64]*frame), parents: make(map[uint64]uint64)}
	module, err := parseCondition(source)
	if err != nil {
		return nil, err
	}
	for _, r := range module.Rules {
		for ; r != nil; r = r.Else {
			m.add(source, r, packageClause.MatchString(source))
		}
	}
	slices.SortStableFunc(m.units, func(a, b *unit) int { return cmp.Compare(a.offset, b.offset) })
	return m, nil
}

// add adds the units of a rule. A body without a module has no heading.
func (m *marks) add(source string, r *ast.Rule, heading bool) {
	head := &unit{offset: r.Location.Offset, rule: r}
	head.Line, head.Column, head.Rule = r.Location.Row, r.Location.Col, true
	if heading {
		m.units = append(m.units, head)
	}
	first := len(source)
	for _, e := range r.Body {
		at := e.Location
		if heading && isWritten(r, e) || !heading && !isPrint(e) {
			line := &unit{offset: at.Offset}
			line.Text, line.Line, line.Column = oneLine(string(at.Text)), at.Row, at.Col
			if heading && at.Offset == head.offset { // else without braces has the place of its rule
				line.Text = oneLine(e.String())
			}
			head.lines = append(head.lines, line)
			first = min(first, at.Offset)
		}
	}
	m.units = append(m.units, head.lines...)
	head.Text = headingOf(source, r, first)
}

// isWritten reports whether the author of r wrote e as a line. OPA gives a rule without a body the body
// true, at the place of its value, and it removes print.
func isWritten(r *ast.Rule, e *ast.Expr) bool {
	if isTrue(e) {
		v, at := r.Head.Value, e.Location
		return string(at.Text) == "true" && (v == nil || v.Location == nil || v.Location.Offset != at.Offset)
	}
	return !isPrint(e)
}

func isPrint(e *ast.Expr) bool { return e.IsCall() && e.Operator().String() == ast.Print.Name }

// opening matches what follows the heading of a rule on its line.
var opening = regexp.MustCompile(`\s*(\{\s*(#.*)?)?$`)

// headingOf returns the text of a rule up to its first line, which is at first.
func headingOf(source string, r *ast.Rule, first int) string {
	switch {
	case r.Default:
		return oneLine(r.String())
	case first == len(source):
		return oneLine(string(r.Location.Text))
	case first == r.Location.Offset:
		return "else if"
	}
	text, _, _ := strings.Cut(source[r.Location.Offset:first], "\n")
	return opening.ReplaceAllString(text, "")
}

// unitAt returns the unit at a place: the last one that begins there or before.
func (m *marks) unitAt(at *ast.Location) *unit {
	if at == nil || at.File != "" {
		return nil
	}
	begins := func(u *unit, end int) int { return cmp.Compare(u.offset, end) }
	i, _ := slices.BinarySearchFunc(m.units, at.Offset+1, begins)
	if i == 0 {
		return nil
	}
	return m.units[i-1]
}

// headingAt returns the heading of the rule at a place.
func (m *marks) headingAt(at *ast.Location) *unit {
	for _, u := range m.units {
		if u.rule != nil && at != nil && at.File == "" && u.offset == at.Offset {
			return u
		}
	}
	return nil
}

// Enabled implements OPA's QueryTracer.
func (*marks) Enabled() bool { return true }

// Config implements OPA's QueryTracer. It asks for no values of variables.
func (*marks) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements OPA's QueryTracer.
func (m *marks) TraceEvent(e topdown.Event) {
	m.value(&e)
	if e.Op == topdown.EnterOp {
		m.enter(&e)
		return
	}
	f := m.frames[e.QueryID]
	if f == nil {
		return // it is a part of a line
	}
	switch node := e.Node.(type) {
	case *ast.Expr:
		m.expr(f, e.Op, node)
	case *ast.Rule:
		if e.Op == topdown.ExitOp {
			m.exit(f, m.frames[e.ParentID], node)
		}
	case ast.Body:
		if e.Op == topdown.ExitOp && f.part && !m.whole {
			f.open, f.unit = nil, nil
		} else if e.Op == topdown.ExitOp {
			f.succeed()
		}
	}
}

// enter begins the evaluation of a rule's body, or of a query. The query of a condition names the
// rule that decides. Queries of parts of a condition have lines: see apart.go.
func (m *marks) enter(e *topdown.Event) {
	m.parents[e.QueryID] = e.ParentID
	switch node := e.Node.(type) {
	case *ast.Rule:
		f := &frame{rule: m.headingAt(node.Location)}
		f.rule.raise(markUndefined)
		m.frames[e.QueryID] = f
		if caller := m.frames[e.ParentID]; caller != nil {
			caller.called = true
		}
	case ast.Body:
		if e.QueryID == 0 { // it is the query
			m.settle(errApart)
			m.frames[0] = &frame{part: m.part}
		}
	}
}

func (m *marks) expr(f *frame, op topdown.Op, e *ast.Expr) {
	u := m.unitAt(e.Location)
	switch {
	case op == topdown.UnifyOp:
		f.unify(e)
	case u == nil:
	case op == topdown.EvalOp:
		if f.unit != u && !f.part {
			f.succeed()
		}
		*f = frame{rule: f.rule, open: e, unit: u, part: f.part}
		m.last = u
	case op == topdown.RedoOp && f.open == e && !f.part: // it had a result
		f.succeed()
	case op == topdown.FailOp && f.open == e:
		f.fail()
	}
}

// succeed records that the open unit has a result.
func (f *frame) succeed() {
	if f.unit != nil && f.unit.rule == nil {
		f.unit.raise(markTrue)
	}
	f.open, f.unit = nil, nil
}

// fail records that the open expression has no result.
func (f *frame) fail() {
	m := markFalse
	switch terms := f.open.Terms.(type) {
	case *ast.Term:
		if !f.compared {
			m = markUndefined
		}
	case []*ast.Term:
		switch {
		case f.open.IsEquality(), f.open.Generated && !isRuleRef(terms[0]):
			if !f.compared {
				m = markUndefined
			}
		case isRuleRef(terms[0]):
			if f.called && !f.returned {
				m = markUndefined
			}
		}
	}
	if f.unit.rule != nil {
		m = markUndefined // the value of a rule
	}
	f.unit.raise(m)
	f.open, f.unit = nil, nil
}

// unify notes that the open expression compares two values, or has the value false.
func (f *frame) unify(e *ast.Expr) {
	if f.open == nil {
		return
	}
	a, b := e.Operand(0), e.Operand(1)
	if _, ok := f.open.Terms.(*ast.Term); ok {
		f.compared = f.compared || isFalse(a) || isFalse(b)
		return
	}
	f.compared = f.compared || isValue(a) && isValue(b)
}

func isFalse(t *ast.Term) bool { return t.Value.Compare(ast.Boolean(false)) == 0 }

func isValue(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.Var, ast.Ref, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return false
	}
	return true
}

// exit records that a rule has a value.
func (m *marks) exit(f, caller *frame, r *ast.Rule) {
	f.succeed()
	if caller != nil {
		caller.returned = true
	}
	switch v := r.Head.Value; {
	case f.rule == nil:
	case v != nil && isFalse(v):
		f.rule.raise(markFalse)
	case v == nil || v.IsGround():
		f.rule.raise(markTrue)
	default:
		m.valued = f.rule
	}
}

// value looks at the event after a rule got a value. OPA either unifies the value with something, or
// leaves a function whose value is false.
func (m *marks) value(e *topdown.Event) {
	u := m.valued
	if u == nil {
		return
	}
	m.valued = nil
	expr, _ := e.Node.(*ast.Expr)
	if expr != nil && (e.Op == topdown.RedoOp || e.Op == topdown.UnifyOp && (isFalse(expr.Operand(0)) ||
		isFalse(expr.Operand(1)))) {
		u.raise(markFalse)
		return
	}
	u.raise(markTrue)
}

// watching returns functions that note their errors. OPA goes on after the error of a function, as if
// its line did not hold, and returns the error at the end.
func (m *marks) watching(functions map[string]*topdown.Builtin) map[string]*topdown.Builtin {
	watched := make(map[string]*topdown.Builtin, len(functions))
	for name, f := range functions {
		one := *f
		one.Func = func(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
			var after error
			err := f.Func(bctx, args, func(t *ast.Term) error {
				after = iter(t)
				return after
			})
			if err != nil && after == nil {
				m.fail(bctx.QueryID, bctx.Location, strings.TrimPrefix(name, meterPrefix), err)
			}
			return err
		}
		watched[name] = &one
	}
	return watched
}

// fail records an error in a query. The line that was being evaluated has failed, and so have the
// lines that called it.
func (m *marks) fail(id uint64, at *ast.Location, function string, err error) {
	for {
		if f := m.frames[id]; f != nil && f.open != nil {
			f.unit.raise(markFailed)
			f.rule.raise(markFailed)
			m.failFirst(f.unit, at, function, err)
		}
		if id == 0 {
			return
		}
		id = m.parents[id]
	}
}

// settle ends a query. If an error ended it, the lines that are open have failed.
func (m *marks) settle(err error) {
	var last uint64
	for id, f := range m.frames {
		if f.open != nil {
			last = max(last, id)
		}
	}
	if err != nil {
		var at *ast.Location
		if e, ok := errors.AsType[*topdown.Error](err); ok {
			at = e.Location
		}
		m.fail(last, at, "", err)
		u := m.unitAt(at)
		if u == nil {
			u = m.last
		}
		if m.failed == nil && u != nil { // it ended between two lines
			u.raise(markFailed)
			m.failFirst(u, at, "", err)
		}
	}
	clear(m.frames)
}

// asks records which query comes next: the part of b for its line i, or a whole body.
func (m *marks) asks(b ast.Body, i int) {
	if m != nil {
		m.part = b != nil
		m.whole = b != nil && (i+1 == len(b) || m.unitAt(b[i].Location) != m.unitAt(b[i+1].Location))
	}
}

// surelyFalse records that a line is surely false because the rule that it calls is.
func (m *marks) surelyFalse(e *ast.Expr) {
	if m == nil {
		return
	}
	if u := m.unitAt(e.Location); u != nil && u.mark == markFailed {
		u.mark = markUndefined
	}
}

// failFirst gives u the error if it is the first one. OPA's own message can hold values, so only the
// name of the function and the place are in it.
func (m *marks) failFirst(u *unit, at *ast.Location, function string, err error) {
	if m.failed != nil {
		return
	}
	m.failed = u
	why := condition.Diagnose(err)
	if topdown.IsCancel(err) {
		why = condition.ErrTooMuchWork
	}
	message := why.Error()
	e, ok := errors.AsType[*topdown.Error](err)
	switch {
	case ok && e.Code == topdown.ConflictErr:
		message = "its rules have different values"
	case function != "" && why.Cause == condition.CauseFunction:
		message = function + " has no result for what it was given"
	}
	place := fmt.Sprintf("%d:%d: ", u.Line, u.Column)
	if at != nil && at.Row > 0 {
		place = fmt.Sprintf("%d:%d: ", at.Row, at.Col)
		if at.File != "" {
			place = at.File + ":" + place
		}
	}
	u.Error, u.Cause = place+message, why.Cause.String()
}

// concludes sets the mark of a rule that decides, after its lines were asked one by one.
func (m *marks) concludes(r *ast.Rule, matches bool) {
	if m == nil {
		return
	}
	for ; r != nil; r = r.Else {
		if u := m.headingAt(r.Location); u != nil && matches {
			u.mark = markTrue
		} else if u != nil {
			u.mark = markUndefined
		}
	}
}

// deciding returns the headings of the rules that decide the condition. They are called entry.
func (m *marks) deciding(entry string) (headings []*unit) {
	for _, u := range m.units {
		if u.rule != nil && u.rule.Head.Ref()[0].Value.Compare(ast.Var(entry)) == 0 {
			headings = append(headings, u)
		}
	}
	return headings
}

// because returns the index of the unit that decides, or -1: the rule that matches, the error, or the
// first line that does not hold.
func (m *marks) because(entry string, matches, known bool) int {
	headings := m.deciding(entry)
	lines := m.units
	if len(headings) > 0 {
		lines = nil
		for _, u := range headings {
			lines = append(lines, u.lines...)
		}
	}
	holds := func(u *unit) bool { return u.mark == markTrue }
	fails := func(u *unit) bool { return u.mark == markFalse || u.mark == markUndefined }
	find := func(units []*unit, f func(*unit) bool) int {
		if i := slices.IndexFunc(units, f); i >= 0 {
			return slices.Index(m.units, units[i])
		}
		return -1
	}
	switch {
	case !known && m.failed != nil:
		return slices.Index(m.units, m.failed)
	case !known:
		return -1
	case matches:
		return find(headings, holds)
	}
	if i := find(lines, fails); i >= 0 {
		return i
	}
	return find(headings, fails)
}

// leaves returns the units as leaves.
func (m *marks) leaves() []engine.ExplainedLeaf {
	leaves := make([]engine.ExplainedLeaf, len(m.units))
	for i, u := range m.units {
		leaves[i] = u.ExplainedLeaf
		leaves[i].Result = u.mark.String()
	}
	return leaves
}
