package engine

import (
	"slices"

	"writ/engine/condition"
	"writ/engine/resource"
)

// Trace is what an evaluation came past: every check of the policy and of the session, in order, and every
// rule of the set, in deciding order. [Trace.Explain] makes it readable. It can be used
// for one evaluation after another.
//
// It holds what is of the intent, yet no value of its metadata.
type Trace struct {
	Checks []Checked
	Rules  []Asked
	// Result is what was found.
	Result Result

	in      Input
	policy  *Policy
	reading resource.Reading // that the rule which is asked was last asked for
}

// Checked is a check of a policy and what it found.
type Checked struct {
	Code Code
	// Asked is not set where the check is about a resource that cannot be read.
	Asked bool
	// Finding is what the check found; nil where it holds or was not asked.
	Finding *Finding
	// Field is the policy's member that the check is of, as [FieldError] names it; empty
	// where it is of the agent or of the meter.
	Field string
	// Entries are, where that is a list, the indices of its entries that match: the one
	// that decided, then the others, ascending. Of a resource they match one reading at
	// least. A list that blocks fails by an entry, one that allows holds by them.
	Entries []int
	// Reading is the reading of the resource that the check failed by: one that an entry
	// blocks, or that none allows. It has no Readers where there is none.
	Reading resource.Reading
}

// Verdict is what a rule, or a leaf of its condition, said of an intent.
type Verdict uint8

// The verdicts. Rules below the one that decided are not asked. A leaf is not asked
// where the conditions do too much together, or where its rule is asked for each
// reading of a resource that has none.
const (
	NotAsked Verdict = iota
	NotMatched
	Matched
	Failed
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"not asked", "no match", "matches", "error"}[v]
}

func (v Verdict) truth() condition.Truth {
	switch v {
	case Matched:
		return condition.True
	case Failed:
		return condition.Unknown
	}
	return condition.False
}

// Leaf is what a leaf of a condition was: Matched is true, NotMatched false. Err is set
// where the verdict is Failed.
type Leaf struct {
	Verdict Verdict
	Err     *condition.EvalError
}

// Asked is a rule and what it said of an intent. Err is set where the verdict is
// Failed: that counts as a match unless the rule allows.
type Asked struct {
	Rule    *CompiledRule
	Verdict Verdict
	Err     *condition.EvalError
	// Decides says that the rule's finding is one of the result: of the rules, it decided.
	Decides bool
	// Leaves are what the leaves of the condition were, in the order of
	// [CompiledRule.Leaves]: those too that the rule itself need not ask, and those of
	// rules that the index ruled out. It is nil where the rule was not asked or does not
	// compile.
	Leaves []Leaf
	// Reading is the reading of the resource that Leaves are of, where the condition is
	// asked as a whole for each: the one that settled what the rule said. It has no
	// Readers elsewhere.
	Reading resource.Reading
}

// traced has the trace of in, if there is one, hold the result of nothing.
func (in *Input) traced(r Result) Result {
	if in != nil && in.Trace != nil {
		*in.Trace = Trace{Result: r}
	}
	return r
}

// begin makes room for what p and rs are going to say.
func (t *Trace) begin(p *Policy, rs *RuleSet, in *Input) {
	*t = Trace{policy: p, in: *in}
	for r := range p.rows {
		t.Checks = append(t.Checks, Checked{Code: r.code, Field: r.field})
	}
	if s := in.Session.CompiledSession; s != nil {
		for _, r := range s.rows {
			t.Checks = append(t.Checks, Checked{Code: r.code, Field: r.field})
		}
	}
	if rs == nil {
		return
	}
	t.Rules = make([]Asked, len(rs.rules))
	for i, r := range rs.rules {
		t.Rules[i].Rule = r
	}
}

// checked records what the check at i found, which is nothing where it holds.
func (t *Trace) checked(i int, r *checkRow, s *scope, e *evaluation, found *Finding) {
	c := &t.Checks[i]
	c.Asked, c.Finding = true, found
	if r.entries == nil {
		return
	}
	add := func(index int) { c.Entries = append(c.Entries, index) }
	if r.patterns != nil {
		c.Reading = r.patterns(s).Settled(e.Readings(), add)
	} else {
		r.actions(s).Each(e.in.Intent.ActionType, add)
	}
	slices.Sort(c.Entries)
	c.Entries = slices.Compact(c.Entries)
	if r.named == "" {
		return
	}
	if first, _ := r.objected(s, e); first >= 0 { // the one that the reason names
		c.Entries = slices.DeleteFunc(c.Entries, func(i int) bool { return i == first })
		c.Entries = slices.Insert(c.Entries, 0, first)
	}
}

// read records that a rule is settled by the reading that it was asked for.
func (t *Trace) read(e *evaluation) {
	t.reading = e.Reading()
}

// ruled records what the rule at i said.
func (t *Trace) ruled(i int, matched bool, err error) {
	t.ruledOut(i)
	a := &t.Rules[i]
	a.Reading, t.reading = t.reading, resource.Reading{}
	switch {
	case err != nil:
		a.Verdict, a.Err = Failed, condition.Diagnose(err)
	case matched:
		a.Verdict = Matched
	default:
		a.Verdict = NotMatched
	}
}

// ruledOut records that those of the rules before i of which nothing is recorded
// do not match: the index has ruled them out.
func (t *Trace) ruledOut(i int) {
	for ; i > 0 && t.Rules[i-1].Verdict == NotAsked; i-- {
		t.Rules[i-1].Verdict = NotMatched
	}
}

// end records the result, and asks the leaves of every rule that was asked. They have a
// budget of their own: that of the evaluation is used up as without a trace.
func (t *Trace) end(e *evaluation, r Result) {
	t.Result = r
	e.Work = condition.NewWork(e.in.Turn)
	for i := range t.Rules {
		a := &t.Rules[i]
		if a.Verdict == NotAsked {
			continue
		}
		a.Decides = a.Verdict == Matched && slices.Contains(r.Findings, a.Rule.finding[0]) ||
			a.Verdict == Failed && slices.Contains(r.Findings, a.Rule.errored[0])
		a.askLeaves(e)
	}
}

func (a *Asked) askLeaves(e *evaluation) {
	switch c := a.Rule.cond; {
	case a.Rule.rego != nil:
		a.Leaves = []Leaf{{a.Verdict, a.Err}}
	case c.Program == nil: // it does not compile
	case !c.ReadsResource:
		c.Program.AskLeaves(e.Frame, a.said)
	default:
		a.askLeavesOf(e)
	}
}

// askLeavesOf asks the leaves for the reading that settled what the rule said.
func (a *Asked) askLeavesOf(e *evaluation) {
	side := a.Rule.outcome.Side()
	if a.Reading.Readers == 0 && e.Readings().Len(side) > 0 {
		a.Reading = e.Readings().At(side, 0)
	}
	if a.Reading.Readers == 0 {
		a.Leaves = make([]Leaf, len(a.Rule.Leaves()))
		return
	}
	defer e.SetReading(e.Reading())
	e.SetReading(a.Reading)
	a.Rule.cond.Program.AskLeaves(e.Frame, a.said)
}

// said records what the next leaf was.
func (a *Asked) said(ok bool, err error) {
	leaf := Leaf{Verdict: NotMatched}
	switch {
	case err != nil && condition.CauseOf(err) == condition.CauseWork:
		leaf.Verdict = NotAsked
	case err != nil:
		leaf = Leaf{Failed, condition.Diagnose(err)}
	case ok:
		leaf.Verdict = Matched
	}
	a.Leaves = append(a.Leaves, leaf)
}
