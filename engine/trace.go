package engine

import "writ/engine/condition"

// Verdict is what a rule said of an intent.
type Verdict uint8

// The verdicts. Rules below the one that decided are not asked.
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

// Asked is a rule and what it said of an intent. Err is set where the verdict is
// Failed: that counts as a match unless the rule allows.
type Asked struct {
	Rule    *CompiledRule
	Verdict Verdict
	Err     *condition.ConditionError
}

// Checked is a check of a policy and what it found.
type Checked struct {
	Code Code
	// Finding is what the check found; nil where it holds or was not asked.
	Finding *Finding
	// Asked is not set where the check is about a resource that cannot be read.
	Asked bool
}

// Trace is what an evaluation came past: every check of the policy, in order, and
// every rule of the set, in deciding order.
type Trace struct {
	Checks []Checked
	Rules  []Asked
}

// begin makes room for what p and rs are going to say.
func (t *Trace) begin(p *Policy, rs *RuleSet) {
	if t == nil {
		return
	}
	*t = Trace{Checks: make([]Checked, len(p.checks))}
	for i := range p.checks {
		t.Checks[i].Code = p.checks[i].finding.Code
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
func (t *Trace) checked(i int, found *Finding) {
	if t != nil {
		t.Checks[i].Asked, t.Checks[i].Finding = true, found
	}
}

// ruled records what the rule at i said.
func (t *Trace) ruled(i int, matched bool, err error) {
	t.ruledOut(i)
	switch {
	case t == nil:
	case err != nil:
		t.Rules[i].Verdict, t.Rules[i].Err = Failed, condition.Diagnose(err)
	case matched:
		t.Rules[i].Verdict = Matched
	default:
		t.Rules[i].Verdict = NotMatched
	}
}

// ruledOut records that those of the rules before i of which nothing is recorded
// do not match: the index has ruled them out.
func (t *Trace) ruledOut(i int) {
	if t == nil {
		return
	}
	for ; i > 0 && t.Rules[i-1].Verdict == NotAsked; i-- {
		t.Rules[i-1].Verdict = NotMatched
	}
}
