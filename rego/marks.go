package rego

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
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
	// rule is the rule of a heading. lines are the lines of its own body, not of its else.
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
	// failed is the unit with the first error. last is the last unit that was evaluated.
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
	left := c.budget(in, work)
	demanded := c.meets(in, work)
	m, err := newMarks(c.source)
	if err != nil {
		return nil, -1 // cannot happen: the source has compiled
	}
	input, err := c.input(in)
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
	because = m.because(c.entry(), matches, known)
	if matches && known && c.reads.Messages {
		c.markMessages(m, input, left)
	}
	return m.leaves(), because
}

// markMessages marks the rules of the messages of a condition that matches, except those that are left
// out. If a message fails, it marks none.
func (c *sandboxed) markMessages(m *marks, input ast.Value, left *budget) {
	own, err := newMarks(c.source)
	if err != nil {
		return // cannot happen: the source has compiled
	}
	traced := *c.question
	traced.tracer, traced.functions = own, own.watching(traced.functions)
	set := ast.NewTerm(append(c.ref[:len(c.ref)-1:len(c.ref)-1], ast.StringTerm(reasonEntry)))
	body, err := traced.query.Compile(ast.NewBody(ast.Equality.Expr(set, ast.NewTerm(traced.answer))))
	if err == nil {
		err = traced.iterate(body, input, left, func(topdown.QueryResult) error { return nil })
	}
	if err != nil {
		return
	}
	own.settle(nil)
	for i, u := range m.units {
		if !c.leavesOut(u) {
			u.raise(own.units[i].mark)
		}
	}
}

// leavesOut reports whether a unit is a rule of a message that is left out, or a line of one.
func (c *sandboxed) leavesOut(u *unit) bool {
	return slices.ContainsFunc(c.messages, func(m messageRule) bool {
		at := m.rule.Location
		return !m.kept() && u.offset >= at.Offset && u.offset < at.Offset+len(at.Text)
	})
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
