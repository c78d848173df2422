package suite

import (
	"cmp"
	"fmt"
	"slices"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// coverage records which parts of policies and rules the cases reached. Suites that test the same
// policy or rule share its coverage.
type coverage struct {
	subjects map[*subject]*coveredSubject
	policies map[string]*coveredPolicy
	rules    map[string]*coveredRule
	order    []lister
}

// coveredSubject is a policy with its rules in deciding order.
type coveredSubject struct {
	policy *coveredPolicy
	rules  []*coveredRule
	alone  []*engine.RuleSet // one set for each rule, with only this rule
	inputs []*engine.Input   // the inputs of the cases
}

// coveredPolicy is the coverage of the checks of a policy.
type coveredPolicy struct {
	source source
	checks []coveredCheck
}

type coveredCheck struct {
	code          engine.Code
	field         string
	entries       []string // the entries of the check's list; nil if the check has no list
	failed, holds bool
	matched       []bool // for each entry, whether a case matched it
}

// coveredRule is the coverage of a rule. shadows has the names of the rules that decided although
// this rule matched.
type coveredRule struct {
	source                       source
	active                       bool
	outcome                      engine.Decision
	leaves                       []coveredLeaf
	lines                        map[int]bool // for each line of Rego, whether a case evaluated it
	matched, decided, notMatched bool
	shadows                      []string
}

type coveredLeaf struct {
	text          string
	isTrue, isNot bool
}

func newCoverage(suites []*Suite) *coverage {
	c := &coverage{subjects: map[*subject]*coveredSubject{}, policies: map[string]*coveredPolicy{},
		rules: map[string]*coveredRule{}}
	for _, s := range suites {
		if c.subjects[s.subject] == nil {
			c.subjects[s.subject] = c.subject(s.subject)
		}
	}
	return c
}

func (s *source) key() string { return s.file + "\n" + string(s.wire) }

func (c *coverage) subject(s *subject) *coveredSubject {
	key := s.policySource.key()
	if c.policies[key] == nil {
		c.policies[key] = newCoveredPolicy(s)
		c.order = append(c.order, c.policies[key])
	}
	covered := &coveredSubject{policy: c.policies[key]}
	for i := range s.rules {
		if key := s.ruleSources[i].key(); c.rules[key] == nil {
			c.rules[key] = &coveredRule{source: s.ruleSources[i], active: s.rules[i].IsActive}
			c.order = append(c.order, c.rules[key])
		}
	}
	for _, r := range s.set.Rules() {
		doc := r.Rule()
		i := slices.Index(s.rules, doc)
		rule := c.rules[s.ruleSources[i].key()]
		if rule.outcome = r.Outcome(); rule.leaves == nil {
			for _, text := range r.Leaves() {
				rule.leaves = append(rule.leaves, coveredLeaf{text: text})
			}
		}
		covered.rules = append(covered.rules, rule)
		covered.alone = append(covered.alone, engine.CompileRules([]engine.Rule{doc}, s.conditions))
	}
	return covered
}

// newCoveredPolicy returns the checks of a policy, before any case reached them.
func newCoveredPolicy(s *subject) *coveredPolicy {
	p := &coveredPolicy{source: s.policySource}
	lists := map[string][]string{
		"policy.allowed_action_types": s.doc.AllowedActionTypes, "policy.denied_action_types": s.doc.DeniedActionTypes,
		"policy.allowed_resource_patterns": s.doc.AllowedResourcePatterns,
		"policy.blocked_resource_patterns": s.doc.BlockedResourcePatterns,
	}
	fields := map[engine.Code]string{
		engine.CodeAgentMismatch: "policy.agent_id", engine.CodeActionDenied: "policy.denied_action_types",
		engine.CodeActionNotAllowed:   "policy.allowed_action_types",
		engine.CodeResourceBlocked:    "policy.blocked_resource_patterns",
		engine.CodeResourceNotAllowed: "policy.allowed_resource_patterns",
		engine.CodeCostExceeded:       "policy.max_cost_minor",
		engine.CodeCostCurrency:       "policy.currency",
	}
	for _, check := range engine.Checks(s.doc) {
		field := fields[check.Code]
		p.checks = append(p.checks,
			coveredCheck{code: check.Code, field: field, entries: lists[field],
				matched: make([]bool, len(lists[field]))})
	}
	return p
}

// add records the checks and the rules that a case reaches.
func (c *coverage) add(k *Case) {
	if c == nil {
		return
	}
	s := k.Suite.subject
	in, covered := k.Input, c.subjects[s]
	covered.inputs = append(covered.inputs, &k.Input)
	in.Trace = &engine.Trace{}
	engine.Evaluate(s.policy, s.set, &in)
	for i := range covered.policy.checks { // the session's checks come after the policy's checks
		covered.policy.checks[i].see(&in.Trace.Checks[i])
	}
	decided := ""
	for _, a := range in.Trace.Rules {
		if a.Decides {
			decided = a.Rule.Rule().Name
		}
	}
	for i, a := range in.Trace.Rules {
		if a.Verdict == engine.NotAsked { // another rule has decided
			one := k.Input
			one.Trace = &engine.Trace{}
			engine.Evaluate(s.policy, covered.alone[i], &one)
			a.Verdict, a.Leaves = one.Trace.Rules[0].Verdict, one.Trace.Rules[0].Leaves
		}
		covered.rules[i].see(&a, decided)
	}
}

func (c *coveredCheck) see(found *engine.Checked) {
	if !found.Asked {
		return
	}
	c.failed = c.failed || found.Finding != nil
	c.holds = c.holds || found.Finding == nil
	for _, i := range found.Entries {
		c.matched[i] = true
	}
}

func (r *coveredRule) see(a *engine.Asked, decided string) {
	switch {
	case a.Decides:
		r.decided = true
	case a.Verdict == engine.Matched && !slices.Contains(r.shadows, decided):
		r.shadows = append(r.shadows, decided)
	}
	r.matched = r.matched || a.Verdict == engine.Matched
	r.notMatched = r.notMatched || a.Verdict == engine.NotMatched
	for i, l := range a.Leaves {
		r.leaves[i].isTrue = r.leaves[i].isTrue || l.Verdict == engine.Matched
		r.leaves[i].isNot = r.leaves[i].isNot || l.Verdict == engine.NotMatched
	}
}

// summary returns the totals. It returns nil if c is nil, which means that coverage was not
// requested.
func (c *coverage) summary() (*Coverage, error) {
	if c == nil {
		return nil, nil
	}
	for s, covered := range c.subjects {
		if err := c.seeLines(s, covered); err != nil {
			return nil, err
		}
	}
	sum := new(Coverage)
	for _, l := range c.order {
		l.list(sum)
	}
	var files []string
	for _, l := range sum.Listing {
		if !slices.Contains(files, l.File) {
			files = append(files, l.File)
		}
	}
	slices.SortStableFunc(sum.Listing, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)),
			cmp.Compare(a.Line, b.Line))
	})
	return sum, nil
}

// seeLines records which lines of conditions in Rego the cases evaluate.
func (c *coverage) seeLines(s *subject, covered *coveredSubject) error {
	lines, err := rego.Coverage(s.doc, s.rules, s.conditions.Lists, covered.inputs, s.libraries()...)
	if err != nil {
		return fmt.Errorf("the lines of conditions in Rego: %w", err)
	}
	for _, l := range lines {
		i := slices.IndexFunc(s.rules, func(r engine.Rule) bool { return r.ID == l.RuleID && r.IsActive })
		rule := c.rules[s.ruleSources[i].key()]
		if rule.lines == nil {
			rule.lines = map[int]bool{}
		}
		for _, n := range l.Covered {
			rule.lines[n] = true
		}
		for _, n := range l.NotCovered {
			rule.lines[n] = rule.lines[n] || false
		}
	}
	return nil
}
