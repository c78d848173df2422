package engine

import (
	"errors"
	"maps"
	"slices"

	"writ.example/writ/engine/condition"
)

// Recorded has the facts of a row of the history about a decision whose inputs are only partly known.
type Recorded struct {
	Decision Decision
	// Findings are the findings of the decision.
	Findings []Finding
	// Overruled says that the findings do not tell which checks failed and which rules matched, because
	// an approval or a batch replaced them.
	Overruled bool
	// Unknown names the members of the intent that are not known, as [condition.LeafReads] names them.
	// The intent must have an empty text for each unknown metadata value.
	Unknown []string
	// Lacking names other unknown facts, such as "rules". The explanation names all of them.
	Lacking []string
}

// ErrOtherwise means that the policy and the rules do not lead to the recorded decision.
var ErrOtherwise = errors.New("the policy and the rules do not lead to the recorded decision")

// ExplainRecorded records in in.Trace how p and rs led to an earlier decision, from the known part of its
// intent. The findings of the row tell the results that the known part does not:
//
//   - A check that reads an unknown member has failed if the row has its finding.
//   - A rule that asks or denies did not match if a rule below it decided.
//   - A leaf that reads an unknown member is [Undetermined]. So is a rule whose verdict neither the known
//     part nor the row tells.
//
// The trace names the unknown members and facts in Unknown. The error is [ErrOtherwise] if the known part
// contradicts the row, for example because an external core decided.
func ExplainRecorded(p *Policy, rs *RuleSet, in *Input, rec Recorded) error {
	t := in.Trace
	if result := Evaluate(p, rs, in); result.Err != nil {
		return result.Err
	}
	x := &recorded{Recorded: rec, trace: t, lacking: make(map[string]bool)}
	for key := range in.Intent.Metadata {
		x.kept = append(x.kept, key)
	}
	t.Result = Result{Decision: rec.Decision, Findings: rec.Findings}
	t.overruled = rec.Overruled
	for i := range t.Checks {
		if err := x.check(&t.Checks[i]); err != nil {
			return err
		}
	}
	if err := x.rules(p, rs, in); err != nil {
		return err
	}
	if !rec.Overruled && x.found != len(rec.Findings) {
		return ErrOtherwise
	}
	x.lacks("resource") // the readings of the resource are part of every explanation
	t.Unknown = slices.Concat(rec.Lacking, slices.Collect(maps.Keys(x.lacking)))
	slices.Sort(t.Unknown)
	return nil
}

// recorded explains a recorded decision.
type recorded struct {
	Recorded
	trace   *Trace
	kept    []string        // the metadata keys that are known
	lacking map[string]bool // the unknown members that a check or a rule reads
	found   int             // how many of Findings are accounted for
}

// lacks reports whether one of members is unknown. It adds the unknown ones to x.lacking.
func (x *recorded) lacks(members ...string) (some bool) {
	for _, m := range members {
		if slices.Contains(x.Unknown, m) {
			x.lacking[m], some = true, true
		}
	}
	return some
}

// check compares the result of a check with the row's findings. If the check reads an unknown member, the
// findings set its result.
func (x *recorded) check(c *Checked) error {
	switch c.Field {
	case fieldAgentID, fieldSessionAgent:
		c.lacks = x.lacks("agent_id")
	case fieldDeniedTypes, fieldAllowedTypes, fieldSessionTypes:
		c.lacks = x.lacks("action_type")
	case fieldBlockedPatterns, fieldAllowedPatterns, fieldSessionPatterns:
		c.lacks = x.lacks("resource")
	}
	if x.Overruled {
		return nil
	}
	i := slices.IndexFunc(x.Findings, func(f Finding) bool {
		return (f.Code == c.Code || f.Code == CodeCheckError) && f.Field == c.Field
	})
	switch {
	case !c.lacks && (i < 0) != (c.Finding == nil), !c.lacks && i >= 0 && x.Findings[i].Reason != c.Finding.Reason:
		return ErrOtherwise
	case i >= 0:
		x.found++
	}
	if !c.lacks {
		return nil
	}
	*c = Checked{Code: c.Code, Field: c.Field, lacks: true, Asked: c.Field != fieldBlockedPatterns &&
		c.Field != fieldAllowedPatterns && c.Field != fieldSessionPatterns || !x.has(CodeResourceUnreadable)}
	if i >= 0 {
		c.Finding = &x.Findings[i]
	}
	return nil
}

func (x *recorded) has(code Code) bool {
	return slices.ContainsFunc(x.Findings, func(f Finding) bool { return f.Code == code })
}

// rules sets the verdicts of the rules in the order of [RuleSet.decide].
func (x *recorded) rules(p *Policy, rs *RuleSet, in *Input) error {
	for i := range x.Findings {
		switch f := &x.Findings[i]; f.Code {
		case CodePolicyAllowed:
			if f.Reason == p.allowed[0].Reason {
				x.found++
			}
		case CodePolicyUnreadable, CodeResourceUnreadable:
			x.found++
		}
	}
	if rs == nil {
		for i := range x.Findings {
			if x.Findings[i].RuleID != "" {
				x.found++
			}
		}
		return nil
	}
	e := newEvaluation(&p.doc, in)
	defer e.Free()
	if readings, err := in.Intent.Readings(); err == nil {
		e.SetReadings(readings)
	}
	e.lists = rs.lists
	e.SetLists(rs.lists)
	e.Work = condition.NewWork(in.Turn, in.Ended)
	// open says that the search for a match goes on. unsure says that a rule above asks for approval because
	// of an error. doubt says that a rule above may have ended the search.
	open, unsure, doubt := true, false, false
	last := -1 // the last rule with a finding
	for i := range x.trace.Rules {
		if x.findingOf(x.trace.Rules[i].Rule) != nil {
			last = i
		}
	}
	for i := range x.trace.Rules {
		a := &x.trace.Rules[i]
		*a = Asked{Rule: a.Rule}
		if !open {
			continue
		}
		x.ask(&e, i)
		if e.Work.Ended() {
			return unfinished(a.Rule).Err
		}
		if doubt {
			a.Verdict, a.Err, a.Leaves = Undetermined, nil, nil
			continue
		}
		finding := x.findingOf(a.Rule)
		if err := a.settle(finding, !x.Overruled && (i < last || last < 0), unsure); err != nil {
			return err
		}
		failed := a.Verdict == Failed
		doubt = a.Verdict == Undetermined && i > last && (unsure || x.Overruled)
		switch {
		case finding != nil:
			x.found += 1 + x.messages(a.Rule)
			a.Decides = true
			unsure = unsure || failed && a.Rule.outcome == ApprovalRequired
			open = unsure && i < last || i == last && failed && a.Rule.outcome == ApprovalRequired
		case a.Verdict == Matched, failed && a.Rule.outcome == Deny:
			open = false
		case x.Overruled && failed && a.Rule.outcome == ApprovalRequired:
			unsure = true
		}
	}
	x.trace.lists, x.trace.work = rs.lists, e.Work
	return nil
}

// messages returns the number of findings that are messages of a rule: see [CompiledRule.spoken].
func (x *recorded) messages(c *CompiledRule) (n int) {
	for i := range x.Findings {
		f := &x.Findings[i]
		if c.speaks && f.RuleID == c.rule.ID && f.RuleRevision == c.rule.Revision && f.Cause == "" &&
			f.Reason != c.finding[0].Reason {
			n++
		}
	}
	return n
}

// findingOf returns the finding of a rule, or nil. It ignores the findings of messages.
func (x *recorded) findingOf(c *CompiledRule) *Finding {
	for i := range x.Findings {
		f := &x.Findings[i]
		says := f.Reason == c.finding[0].Reason || f.Reason == c.errored().Reason
		if !x.Overruled && says && f.RuleID == c.rule.ID && f.RuleRevision == c.rule.Revision {
			return f
		}
	}
	return nil
}

// settle sets the verdict of a rule by the row, if the evaluation could not. finding is the rule's finding,
// or nil. above says that it is above the last rule with a finding, or that no rule has one. unsure says
// that a rule above it asks for approval because of an error. The error is [ErrOtherwise] if the evaluation
// contradicts the row.
func (a *Asked) settle(finding *Finding, above, unsure bool) error {
	objects := a.Rule.outcome != Allow
	switch {
	case finding != nil && finding.Cause != "":
		if a.Verdict == NotMatched || a.Verdict == Matched {
			return ErrOtherwise
		}
		if a.Verdict != Failed {
			a.Verdict, a.Err = Failed, condition.Recorded(finding.Cause, finding.Field)
		}
	case finding != nil:
		if a.Verdict == NotMatched || a.Verdict == Failed {
			return ErrOtherwise
		}
		a.Verdict = Matched
	case above && a.Verdict == Matched, above && a.Verdict == Failed && objects && !unsure:
		return ErrOtherwise
	case above && a.Verdict == Undetermined && (a.Rule.outcome == Deny || objects && !unsure):
		a.Verdict = NotMatched // otherwise the row would have its finding
	}
	return nil
}

// ask evaluates a rule and its leaves as far as the intent is known.
func (x *recorded) ask(e *evaluation, i int) {
	a := &x.trace.Rules[i]
	if a.Rule.rego != nil {
		reads := a.Rule.rego.Reads()
		for _, m := range x.Unknown {
			if m == "resource" && !reads.Resource || m == "agent_id" && !reads.Agent || m == condition.CountsMember {
				continue
			}
			a.lacks = x.lacks(m) || a.lacks
		}
	}
	leaves := a.Rule.cond.Reads()
	unknown := make([]bool, len(leaves))
	for n := range leaves {
		lacking := leaves[n].Lacks(x.Unknown, x.kept)
		unknown[n] = x.lacks(lacking...)
		a.lacks = a.lacks || unknown[n]
	}
	if !a.lacks {
		ok, err := a.Rule.matches(e)
		x.trace.ruled(i, ok, err)
		a.askLeaves(e)
		if err != nil && condition.CauseOf(err) == condition.CauseWork {
			a.Verdict, a.Err = Undetermined, nil // other conditions shared the budget when it was decided
		}
		return
	}
	a.Verdict = Undetermined
	if a.Rule.rego != nil {
		return
	}
	a.askLeaves(e)
	for n := range a.Leaves {
		if unknown[n] {
			a.Leaves[n] = Leaf{Verdict: Undetermined}
		}
	}
	// The leaves were evaluated for one reading of the resource and one name of the agent. For others they
	// may have other values.
	one := !a.Rule.readsAgent || len(e.Names().Called()) == 1
	if a.Rule.readsResource {
		one = one && e.Readings().Len(a.Rule.outcome.Side()) == 1
	}
	if len(a.Leaves) == 0 || !one {
		return
	}
	switch a.Rule.cond.Clause().Value(func(n int) condition.Truth { return a.Leaves[n].Verdict.truth() }) {
	case condition.True:
		a.Verdict = Matched
	case condition.False:
		a.Verdict = NotMatched
	case condition.Unknown:
	}
}
