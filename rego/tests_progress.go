package rego

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// progress records which expressions of tests were evaluated. It implements OPA's QueryTracer.
type progress struct {
	// tests has the rules of the tests as they were parsed, because compiling rewrites rules.
	tests map[place]*ast.Rule

	mu        sync.Mutex
	evaluated map[place]bool
	latest    place // the expression that was evaluated last
}

// place is a place in a test file. row and col count from 1.
type place struct {
	file     string
	row, col int
}

func placeOf(l *ast.Location) place { return place{l.File, l.Row, l.Col} }

func newProgress(modules map[string]*ast.Module) *progress {
	p := &progress{tests: make(map[place]*ast.Rule), evaluated: make(map[place]bool)}
	for _, m := range modules {
		for _, r := range m.Rules {
			p.tests[placeOf(r.Loc())] = r.Copy()
		}
	}
	return p
}

// Enabled implements OPA's QueryTracer.
func (*progress) Enabled() bool { return true }

// Config implements OPA's QueryTracer.
func (*progress) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements OPA's QueryTracer.
func (p *progress) TraceEvent(e topdown.Event) {
	if e.Op != topdown.EvalOp || e.Location == nil || e.Location.File == "" ||
		strings.HasPrefix(e.Location.File, loweredPrefix) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = placeOf(e.Location)
	p.evaluated[p.latest] = true
}

// last returns the last evaluated expression of a test, or nil.
func (p *progress) last(test *ast.Rule) *ast.Expr {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Backward(test.Body) {
		for at := range p.evaluated { // the compiler may split one expression into several
			l := e.Location
			if at.file == l.File &&
				(at.row == l.Row && at.col >= l.Col || at.row > l.Row &&
					at.row <= l.Row+strings.Count(string(l.Text), "\n")) {
				return e
			}
		}
	}
	return nil
}

// result returns the result of a test.
func (p *progress) result(r *tester.Result) TestResult {
	out := TestResult{
		Name: r.Name, Outcome: TestPassed, Output: string(r.Output),
		File: r.Location.File, Line: r.Location.Row, Column: r.Location.Col,
	}
	switch {
	case isUnknown(r.Error):
		out.Outcome, out.Message = TestErrored, errUnknown
	case r.Error != nil:
		out.Outcome, out.Message = TestErrored, oneLine(explain(r.Error).Error())
	case r.Skip:
		out.Outcome = TestSkipped
	case r.Fail:
		out.Outcome, out.Message = TestFailed, p.message(r)
	}
	return out
}

// errUnknown is the message of a test that asks whether a rule matches: see [ruleAlias].
const errUnknown = "the input is not what writ makes of its intent, so nobody knows whether the rule matches: " +
	"take data.writ.input.of(intent)"

func isUnknown(err error) bool {
	var e *topdown.Error
	return errors.As(err, &e) && e.Code == topdown.ConflictErr && e.Location != nil &&
		strings.HasPrefix(e.Location.File, loweredPrefix+aliasPrefix)
}

// message names the expression of a failed test that was not true. If the test has cases, it also
// names the cases that failed.
func (p *progress) message(r *tester.Result) string {
	message := "it is not true"
	if test := p.tests[placeOf(r.Location)]; test != nil {
		e := p.last(test)
		if e == nil && len(test.Body) == 1 {
			e = test.Body[0] // OPA's index of rules skipped the expression
		}
		if e != nil {
			message = fmt.Sprintf("%d:%d: not true: %s", e.Location.Row, e.Location.Col,
				oneLine(string(e.Location.Text)))
		}
	}
	var cases []string
	for path, sub := range r.SubResults.Iter {
		if sub.Fail && len(sub.SubResults) == 0 {
			cases = append(cases, strings.Join(path, "/"))
		}
	}
	if len(cases) > 0 {
		message = "of its cases, " + strings.Join(cases, ", ") + ": " + message
	}
	return message
}
