package engine

import (
	"slices"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Trace records an evaluation. It has every check of the policy and of the session, in order, and
// every rule of the set, in deciding order. [Trace.Explain] makes it readable. A Trace can be used
// for several evaluations, one after another. It holds no value of the intent's metadata.
type Trace struct {
	Checks []Checked
	Rules  []Asked
	Result Result
	// Unknown names what the trace lacks: see [ExplainRecorded].
	Unknown []string

	in      Input
	policy  *Policy
	lists   condition.Lists
	work    condition.Work   // what the leaves may still do
	reading resource.Reading // the reading that decided the rule that is being evaluated
	name    string           // the agent's name that decided it
	// overruled is [Recorded].Overruled.
	overruled bool
}

// Checked is a check of a policy with its result.
type Checked struct {
	Code Code
	// Asked is false if the check needs the resource and the resource cannot be read.
	Asked bool
	// Finding is the check's finding. It is nil if the check holds or was not asked.
	Finding *Finding
	// Field is the policy's member that the check reads, by its name in [FieldError]. It is empty
	// if the check reads the agent or the meter.
	Field string
	// Entries has the indices of the entries that match, if Field is a list. The entry that
	// decided is the first, the others follow in ascending order. An entry for resources matches
	// at least one reading. In a list that blocks, a matching entry makes the check fail. In a
	// list that allows, it makes the check hold.
	Entries []int
	// Reading is the reading of the resource that made the check fail: an entry blocks it, or no
	// entry allows it. If there is no such reading, it has no Readers.
	Reading resource.Reading

	// lacks says that the check reads what is not known of the intent.
	lacks bool
}

// Verdict is the result of a rule, or of a leaf of its condition, for an intent.
type Verdict uint8

// The verdicts. Rules below the rule that decided are not asked. A leaf is not asked if the
// conditions do too much work together. It is not asked either if its rule is evaluated for each
// reading of a resource that has no readings.
const (
	NotAsked Verdict = iota
	NotMatched
	Matched
	Failed
	// Undetermined is the verdict of a rule or a leaf that reads what is not known of the intent: see
	// [ExplainRecorded]. An evaluation never has it.
	Undetermined
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"not asked", "no match", "matches", "error", "unknown"}[v]
}

func (v Verdict) truth() condition.Truth {
	switch v {
	case Matched:
		return condition.True
	case Failed, Undetermined:
		return condition.Unknown
	}
	return condition.False
}

// Leaf is the result of a leaf of a condition. Matched means true, NotMatched means false. Err is
// set if the verdict is Failed.
type Leaf struct {
	Verdict Verdict
	Err     *condition.EvalError
}

// Asked is a rule with its verdict for an intent. Err is set if the verdict is Failed. Failed
// counts as a match unless the rule allows.
type Asked struct {
	Rule    *CompiledRule
	Verdict Verdict
	Err     *condition.EvalError
	// Decides says that the rule's finding is in the result.
	Decides bool
	// Leaves has the results of the leaves of the condition, in the order of
	// [CompiledRule.Leaves]. It includes leaves that the evaluation did not need, and leaves of
	// rules that the index ruled out. It is nil if the rule was not asked or does not compile.
	Leaves []Leaf
	// Reading is the reading of the resource that decided the rule's verdict, if the whole
	// condition is evaluated for each reading. Leaves were evaluated for it. Otherwise it has no
	// Readers.
	Reading resource.Reading
	// Name is the agent's name that decided the rule's verdict, if the whole condition is evaluated
	// for each name of an agent that has several. Leaves were evaluated for it.
	Name string

	// lacks says that the condition reads what is not known of the intent.
	lacks bool
}

// traced sets the trace of in, if there is one, to a trace of r without steps. It returns r.
func (in *Input) traced(r Result) Result {
	if in != nil && in.Trace != nil {
		*in.Trace = Trace{Result: r}
	}
	return r
}

// lacks reports whether t lacks a member of the intent.
func (t *Trace) lacks(member string) bool { return slices.Contains(t.Unknown, member) }

// begin resets t and adds the checks of p and of the session, and the rules of rs, without
// results.
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
	t.lists = rs.lists
	t.Rules = make([]Asked, len(rs.rules))
	for i, r := range rs.rules {
		t.Rules[i].Rule = r
	}
}

// checked records the result of the check at i. found is nil if the check holds.
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
	if first, _ := r.objected(s, e); first >= 0 { // the entry that the reason names
		c.Entries = slices.DeleteFunc(c.Entries, func(i int) bool { return i == first })
		c.Entries = slices.Insert(c.Entries, 0, first)
	}
}

// read records that the current reading decides the rule.
func (t *Trace) read(e *evaluation) {
	t.reading = e.Reading()
}

// called records the name of the agent that decides the verdict of the rule that is being asked.
func (t *Trace) called(name string) { t.name = name }

// ruled records the verdict of the rule at i.
func (t *Trace) ruled(i int, matched bool, err error) {
	t.ruledOut(i)
	a := &t.Rules[i]
	a.Reading, t.reading = t.reading, resource.Reading{}
	a.Name, t.name = t.name, ""
	switch {
	case err != nil:
		a.Verdict, a.Err = Failed, condition.Diagnose(err)
	case matched:
		a.Verdict = Matched
	default:
		a.Verdict = NotMatched
	}
}

// ruledOut records that rules before i which have no verdict yet do not match, because the index
// has ruled them out.
func (t *Trace) ruledOut(i int) {
	for ; i > 0 && t.Rules[i-1].Verdict == NotAsked; i-- {
		t.Rules[i-1].Verdict = NotMatched
	}
}

// end records the result, and evaluates the leaves of every rule that was asked. Leaves have their
// own budget, so that a trace does not change the budget of the evaluation.
func (t *Trace) end(e *evaluation, r Result) {
	t.Result = r
	e.Work = condition.NewWork(e.in.Turn, nil) // an explanation does not depend on time
	for i := range t.Rules {
		a := &t.Rules[i]
		if a.Verdict == NotAsked {
			continue
		}
		a.Decides = slices.ContainsFunc(r.Findings, func(f Finding) bool {
			if a.Verdict == Failed {
				f.Cause, f.Field = "", ""
				return f == a.Rule.errored()
			}
			return a.Verdict == Matched && f == a.Rule.finding[0]
		})
		a.askLeaves(e)
	}
	t.work = e.Work
}

func (a *Asked) askLeaves(e *evaluation) {
	if a.Name != "" {
		defer e.SetAgent(e.in.Intent.AgentID)
		e.SetAgent(a.Name)
	}
	switch c := a.Rule.cond; {
	case a.Rule.rego != nil:
		a.Leaves = []Leaf{{a.Verdict, a.Err}}
	case c.Program == nil: // it does not compile
	case !c.ReadsResource:
		c.Program.AskLeaves(e.Frame, a.recordLeaf)
	default:
		a.askLeavesOf(e)
	}
}

// askLeavesOf evaluates the leaves for the reading that decided the rule's verdict.
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
	a.Rule.cond.Program.AskLeaves(e.Frame, a.recordLeaf)
}

// recordLeaf records the result of the next leaf.
func (a *Asked) recordLeaf(ok bool, err error) {
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
