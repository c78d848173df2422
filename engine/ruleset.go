package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine/condition"
)

// RuleSet has the compiled active rules of an organization. It is immutable and safe for
// concurrent use.
type RuleSet struct {
	// rules are in deciding order: the first rule that matches decides.
	rules []*CompiledRule
	// hasRego says that the condition of at least one rule is in Rego.
	hasRego bool
	// counters has the distinct counters of the conditions.
	counters []*condition.Counter
	index    ruleIndex
	size     int
	lists    condition.Lists
	// libraries are the libraries with which the rules were compiled, or nil.
	libraries Libraries
	json      []byte // nil unless Options.KeepJSON was set
	// digest is empty unless Options.KeepDigest was set, which is in keepsDigest.
	digest      string
	keepsDigest bool
}

// CompileRules compiles the active rules of rules, which may be in any order. It never fails. If a
// stored rule does not compile, its condition is always an error, which leads to the stricter
// outcome. [RuleSet.Broken] returns such rules.
func CompileRules(rules []Rule, o Options) *RuleSet {
	var none *RuleSet
	return none.Update(rules, o)
}

// Update does the same as [CompileRules], but reuses the rules of rs whose texts have not changed.
// So it is fast if one rule among many has changed. It compiles the rules again that import
// libraries, if the libraries have changed. rs must have been compiled with the same options
// otherwise. Update does not modify rs.
func (rs *RuleSet) Update(rules []Rule, o Options) *RuleSet {
	known := rs.byID()
	next := &RuleSet{}
	o.stored = true
	for _, r := range rules {
		if !r.IsActive {
			continue
		}
		compiled := known[r.ID].reuse(r)
		if compiled != nil && len(compiled.Libraries()) > 0 && rs.libraries != o.Libraries {
			compiled = nil
		}
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

// SetOf returns the set of the active rules of rules, with the lists that they use. rules may be
// in any order, and were compiled with the same libraries.
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

// finish orders the rules, builds the index and measures the size.
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
		rs.json, _ = rs.encode() // if it fails, JSON returns the error each time
	}
	rs.keepsDigest = o.KeepDigest
	rs.size = rs.measure() + len(rs.json)
	if rs.libraries = o.Libraries; rs.libraries != nil {
		rs.size += rs.libraries.Size()
	}
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

// reuse returns c as the compiled form of r. It returns nil if the texts of c and r differ.
func (c *CompiledRule) reuse(r Rule) *CompiledRule {
	if c == nil || c.err != nil || c.rule.Condition != r.Condition || c.rule.Action != r.Action ||
		c.rule.Name != r.Name {
		return nil
	}
	next := *c
	next.rule = r
	if r.Revision != c.rule.Revision {
		next.finding = slices.Clone(c.finding)
		next.finding[0].RuleRevision = r.Revision
	}
	return &next
}

// CompareDeciding orders rules so that the first rule that matches decides. Rules with a higher
// priority come first. Among rules with the same priority the most restrictive comes first.
func CompareDeciding(a, b *CompiledRule) int {
	return cmp.Or(
		cmp.Compare(b.rule.Priority, a.rule.Priority),
		cmp.Compare(b.outcome, a.outcome),
		a.rule.CreatedAt.Compare(b.rule.CreatedAt),
		cmp.Compare(a.rule.ID, b.rule.ID),
	)
}

// Counters returns the distinct counters of the conditions. The slice must not be modified. A nil
// set has no counters.
func (rs *RuleSet) Counters() []*condition.Counter {
	if rs == nil {
		return nil
	}
	return rs.counters
}

// HasRego reports whether the condition of at least one rule is in Rego.
func (rs *RuleSet) HasRego() bool { return rs.hasRego }

// Rules returns the rules in deciding order: the first rule that matches decides. The slice must
// not be modified.
func (rs *RuleSet) Rules() []*CompiledRule { return rs.rules }

// BrokenRule is a stored rule that does not compile.
type BrokenRule struct {
	RuleID string
	Err    error
}

// Broken returns the rules that do not compile. Their conditions are always an error.
func (rs *RuleSet) Broken() []BrokenRule {
	var broken []BrokenRule
	for _, r := range rs.rules {
		if r.err != nil {
			broken = append(broken, BrokenRule{RuleID: r.rule.ID, Err: r.err})
		}
	}
	return broken
}

// Size returns the approximate size of the set in memory, in bytes.
func (rs *RuleSet) Size() int { return rs.size }

// ruleBytes is the measured size of a compiled rule in memory, without its texts and its
// condition.
const ruleBytes = 680

func (rs *RuleSet) measure() int {
	size := rs.index.size()
	for _, r := range rs.rules {
		size += r.Size()
	}
	return size
}

// Size returns the approximate size of the rule in memory, in bytes.
func (c *CompiledRule) Size() int {
	size := ruleBytes + len(c.rule.Condition) + len(c.rule.Action) + len(c.rule.Name) + len(c.rule.Description) +
		len(c.finding[0].Reason) + c.cond.Bytes()
	if c.rego != nil {
		size += c.rego.Size()
	}
	return size
}

// JSON returns the rules as a JSON array of [Rule] in deciding order. If [Options.KeepJSON] was
// set, it returns the array that the set keeps. The result must not be modified. A nil set has no
// rules.
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
