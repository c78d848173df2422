package engine

import (
	"cmp"
	"slices"

	"writ/engine/condition"
)

// RuleSet is an organization's active rules, compiled. It is immutable and safe
// for concurrent use.
type RuleSet struct {
	// rules are in deciding order: the first that matches decides.
	rules []*CompiledRule
	// hasRego is set where a condition is in Rego.
	hasRego bool
	// counters are what the conditions ask of earlier intents, each once.
	counters []*condition.Counter
	index    ruleIndex
	size     int
	lists    condition.Lists
	json     []byte // nil where it is not kept, or there is none
	// revision is of the store that the rules are of.
	revision int64
}

// CompileRules compiles the active ones of rules, in any order. It never fails:
// a stored rule that does not compile is kept with a condition that is always
// an error, so that it tightens, and is reported by [RuleSet.Broken].
func CompileRules(rules []Rule, o Options) *RuleSet {
	var none *RuleSet
	return none.Update(rules, o)
}

// Update returns what [CompileRules] does, and leaves rs as it is. Rules whose
// texts rs has compiled already are taken over, which makes a change of one
// among many cheap. The options have to be those of rs.
func (rs *RuleSet) Update(rules []Rule, o Options) *RuleSet {
	known := rs.byID()
	next := &RuleSet{}
	o.stored = true
	for _, r := range rules {
		if !r.IsActive {
			continue
		}
		compiled := known[r.ID].with(r)
		if compiled == nil {
			var err error
			if compiled, err = CompileRule(r, o); err != nil {
				compiled = brokenRule(r, err)
			}
		}
		next.rules = append(next.rules, compiled)
		next.hasRego = next.hasRego || compiled.rego != nil
	}
	next.finish(o)
	return next
}

// SetOf returns the set of those of rules that are active, in any order. They look in
// lists.
func SetOf(rules []*CompiledRule, lists condition.Lists) *RuleSet {
	rs := &RuleSet{}
	for _, r := range rules {
		if r.rule.IsActive {
			rs.rules = append(rs.rules, r)
			rs.hasRego = rs.hasRego || r.rego != nil
		}
	}
	rs.finish(Options{Lists: lists})
	return rs
}

// finish orders, indexes and measures the rules.
func (rs *RuleSet) finish(o Options) {
	slices.SortFunc(rs.rules, CompareDeciding)
	rs.index = newRuleIndex(rs.rules)
	for _, r := range rs.rules {
		for _, c := range r.cond.Counters {
			if !slices.ContainsFunc(rs.counters, func(d *condition.Counter) bool { return d.Key == c.Key }) {
				rs.counters = append(rs.counters, c)
			}
		}
	}
	if o.KeepJSON {
		rs.json, _ = rs.encode() // its error is JSON's, each time
	}
	rs.size = rs.measure() + len(rs.json)
	rs.look(o.Lists)
}

func (rs *RuleSet) byID() map[string]*CompiledRule {
	if rs == nil {
		return nil
	}
	known := make(map[string]*CompiledRule, len(rs.rules))
	for _, r := range rs.rules {
		known[r.rule.ID] = r
	}
	return known
}

// with returns c as the compiled form of r, or nil where r says something else.
func (c *CompiledRule) with(r Rule) *CompiledRule {
	if c == nil || c.err != nil || c.rule.Condition != r.Condition || c.rule.Action != r.Action || c.rule.Name != r.Name {
		return nil
	}
	next := *c
	next.rule = r
	return &next
}

// CompareDeciding orders rules so that the first that matches decides: the
// highest priority first and, on a tie, the most restrictive.
func CompareDeciding(a, b *CompiledRule) int {
	return cmp.Or(
		cmp.Compare(b.rule.Priority, a.rule.Priority),
		cmp.Compare(b.outcome, a.outcome),
		a.rule.CreatedAt.Compare(b.rule.CreatedAt),
		cmp.Compare(a.rule.ID, b.rule.ID),
	)
}

// Counters returns what the conditions ask of earlier intents, each once. The slice
// must not be modified. A nil set has none.
func (rs *RuleSet) Counters() []*condition.Counter {
	if rs == nil {
		return nil
	}
	return rs.counters
}

// RevisionOf returns the revision of an active rule's document, 0 where there is no such
// rule.
func (rs *RuleSet) RevisionOf(ruleID string) int64 {
	if rs == nil {
		return 0
	}
	for _, r := range rs.rules {
		if r.rule.ID == ruleID {
			return r.rule.Revision
		}
	}
	return 0
}

// Rules returns the rules in deciding order: the first that matches decides.
// The slice must not be modified.
func (rs *RuleSet) Rules() []*CompiledRule { return rs.rules }

// BrokenRule is a stored rule that does not compile.
type BrokenRule struct {
	RuleID string
	Err    error
}

// Broken returns the rules whose condition is always an error, because they do
// not compile.
func (rs *RuleSet) Broken() []BrokenRule {
	var broken []BrokenRule
	for _, r := range rs.rules {
		if r.err != nil {
			broken = append(broken, BrokenRule{RuleID: r.rule.ID, Err: r.err})
		}
	}
	return broken
}

// Size returns about how many bytes the set holds on to.
func (rs *RuleSet) Size() int { return rs.size }

// decide returns what the rules find about the intent, nil where none matches,
// and how many conditions were an error. The rules are asked in deciding order
// until one matches; those after it are not, so that their errors do not count.
//
// A rule that asks for approval because its condition is an error is taken both
// ways: the rules below it are asked on, and their deny wins. Otherwise the
// caller could lift that deny by leaving out what the condition asks for. Both
// findings are reported then.
//
// The resource is the raw one before and after. The slice is shared and must not
// be modified. A nil set has no rules.
func (rs *RuleSet) decide(e *evaluation) (_ []Finding, failed condition.CauseCounts) {
	if rs == nil || len(rs.rules) == 0 {
		return nil, failed
	}
	var buffer bitsetBuffer
	candidates := rs.index.candidates(e.Frame, buffer.sized(len(rs.rules)))
	var unsure []Finding // of the first rule to ask for approval by an error
	e.Work = condition.NewWork(e.in.Turn)
	e.lists = rs.lists
	e.SetLists(rs.lists)
	for i := candidates.next(0); i >= 0; i = candidates.next(i + 1) {
		rule := rs.rules[i]
		finding, err := rule.decide(e)
		if err != nil {
			failed[condition.CauseOf(err)]++
		}
		if e.in.Trace != nil {
			e.in.Trace.ruled(i, finding != nil, err)
		}
		switch {
		case finding == nil:
		case unsure == nil && (err == nil || rule.outcome == Deny):
			return finding, failed
		case unsure == nil:
			unsure = finding
		case rule.outcome == Deny:
			return slices.Concat(unsure, finding), failed
		case err == nil:
			return unsure, failed
		}
	}
	if e.in.Trace != nil {
		e.in.Trace.ruledOut(len(rs.rules))
	}
	return unsure, failed
}

// decide returns what the rule finds, or nil where it does not match.
func (c *CompiledRule) decide(e *evaluation) ([]Finding, error) {
	ok, err := c.matches(e)
	switch {
	case err != nil && c.outcome != Allow:
		return c.errored, err
	case err == nil && ok:
		return c.finding, nil
	}
	return nil, err
}

// matches asks the condition. One in CEL or Rego that reads the resource is asked
// as a whole, once for each reading: a rule that allows has to match all that an
// allowance has to cover, any other matches where it does for one that a block
// looks at. It stops at the first reading that settles it or is an error. Match
// objects and trees read each comparison with the resource by itself.
func (c *CompiledRule) matches(e *evaluation) (bool, error) {
	if !c.cond.ReadsResource {
		return c.ask(e)
	}
	defer e.SetReading(e.Reading())
	if c.outcome != Allow {
		return c.matchesAny(e)
	}
	e.SetEvery(true)
	defer e.SetEvery(false)
	for i := range e.Readings().AllowLen() {
		e.SetReading(e.Readings().AllowAt(i))
		if ok, err := c.ask(e); err != nil || !ok {
			if e.in.Trace != nil {
				e.in.Trace.read(e)
			}
			return false, err
		}
	}
	return true, nil
}

func (c *CompiledRule) matchesAny(e *evaluation) (bool, error) {
	var failed error
	for i := range e.Readings().BlockLen() {
		e.SetReading(e.Readings().BlockAt(i))
		switch ok, err := c.ask(e); {
		case err != nil:
			failed = err
			if e.in.Trace != nil {
				e.in.Trace.read(e)
			}
		case ok:
			if e.in.Trace != nil {
				e.in.Trace.read(e)
			}
			return true, nil
		}
	}
	return false, failed
}

// ask asks the condition about the intent and a reading of its resource.
func (c *CompiledRule) ask(e *evaluation) (bool, error) {
	switch {
	case c.cond.Program != nil:
		return c.cond.Program.Eval(e.Frame)
	case c.rego != nil:
		return c.rego.Match(&RegoInput{
			Intent: e.in.Intent, AgentID: e.in.Intent.AgentID, Agent: e.in.Agent, Policy: e.policy, Resource: e.Reading().Text,
			Lists: e.lists,
			Work:  &e.Work, Spent: &e.Spent,
		})
	}
	return false, condition.ErrBroken
}

// ruleBytes is what a compiled rule takes beyond its texts and its condition, measured.
const ruleBytes = 800

func (rs *RuleSet) measure() int {
	size := rs.index.size()
	for _, r := range rs.rules {
		size += r.Size()
	}
	return size
}

// Size returns about how many bytes the rule holds on to.
func (c *CompiledRule) Size() int {
	size := ruleBytes + len(c.rule.Condition) + len(c.rule.Action) + len(c.rule.Name) + len(c.rule.Description) +
		len(c.finding[0].Reason) + len(c.errored[0].Reason) + c.cond.Bytes()
	if c.rego != nil {
		size += c.rego.Size()
	}
	return size
}
