package rego

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ.example/writ/engine/condition"
)

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
