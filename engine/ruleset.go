package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"writ/engine/condition"
)

// RuleSet is an organization's active rules, compiled. It is immutable and safe
// for concurrent use.
type RuleSet struct {
	// rules are in deciding order: the first that matches decides.
	rules []*CompiledRule
	// hasRego is set if a condition is in Rego.
	hasRego bool
	// counters are the distinct counters of the conditions.
	counters []*condition.Counter
	index    ruleIndex
	size     int
	lists    condition.Lists
	json     []byte // nil if it is not kept
}

// CompileRules compiles the active rules, in any order. It never fails: a stored rule that
// does not compile gets a condition that is always an error, so that it tightens, and is
// reported by [RuleSet.Broken].
func CompileRules(rules []Rule, o Options) *RuleSet {
	var none *RuleSet
	return none.Update(rules, o)
}

// Update is [CompileRules] that reuses the rules of rs whose texts have not changed, so that
// a change of one rule among many is cheap. rs, which was compiled with the same options, is
// left as it is.
func (rs *RuleSet) Update(rules []Rule, o Options) *RuleSet {
	known := rs.byID()
	next := &RuleSet{}
	o.stored = true
	for _, r := range rules {
		if !r.IsActive {
			continue
		}
		compiled := known[r.ID].reuse(r)
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

// SetOf returns the set of the active rules, in any order, with the lists that they look in.
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
			asked := *c
			asked.Revision = r.rule.Revision
			rs.counters = condition.JoinCounter(rs.counters, &asked)
		}
	}
	if o.KeepJSON {
		rs.json, _ = rs.encode() // its error is JSON's, each time
	}
	rs.size = rs.measure() + len(rs.json)
	rs.addLists(o.Lists)
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

// reuse returns c as the compiled form of r, nil if their texts differ.
func (c *CompiledRule) reuse(r Rule) *CompiledRule {
	if c == nil || c.err != nil || c.rule.Condition != r.Condition || c.rule.Action != r.Action ||
		c.rule.Name != r.Name {
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

// Counters returns the distinct counters of the conditions. The slice must not be modified.
// A nil set has none.
func (rs *RuleSet) Counters() []*condition.Counter {
	if rs == nil {
		return nil
	}
	return rs.counters
}

// RevisionOf returns the revision of an active rule's document, 0 if there is no such rule.
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

// HasRego reports whether the condition of a rule is in Rego.
func (rs *RuleSet) HasRego() bool { return rs.hasRego }

// Rules returns the rules in deciding order: the first that matches decides.
// The slice must not be modified.
func (rs *RuleSet) Rules() []*CompiledRule { return rs.rules }

// BrokenRule is a stored rule that does not compile.
type BrokenRule struct {
	RuleID string
	Err    error
}

// Broken returns the rules that do not compile: their condition is always an error.
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

// JSON returns the rules as a JSON array of [Rule] in deciding order, from a cache if
// [Options.KeepJSON] was set. It must not be modified. A nil set has no rules.
func (rs *RuleSet) JSON() ([]byte, error) {
	if rs != nil && rs.json != nil {
		return rs.json, nil
	}
	return rs.encode()
}

func (rs *RuleSet) encode() ([]byte, error) {
	var rules []Rule
	if rs != nil {
		rules = make([]Rule, len(rs.rules))
		for i, r := range rs.rules {
			rules[i] = r.rule
		}
	}
	text, err := json.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("encoding the rules: %w", err)
	}
	return text, nil
}
