package rego

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// UnrenderedError is the error for rules whose conditions in CEL have no rendering in Rego.
type UnrenderedError struct {
	// Rules has the rules without a rendering, in the order given to [Lower].
	Rules []UnrenderedRule
}

// UnrenderedRule is a rule without a rendering in Rego.
type UnrenderedRule struct {
	// Index is the index of the rule among the given rules.
	Index int
	Rule  engine.Rule
	// Err is the error of [engine.CompiledRule.Unrendered].
	Err error
}

// Error implements error, with a line for each rule.
func (e *UnrenderedError) Error() string {
	lines := make([]string, len(e.Rules))
	for i, r := range e.Rules {
		lines[i] = fmt.Sprintf("rule %s (%s): %v", r.Rule.ID, condition.Quote(r.Rule.Name), r.Err)
	}
	return strings.Join(lines, "\n")
}

// unrendered returns an *[UnrenderedError] if a rule of set has no rendering. set was compiled from
// rules.
func unrendered(rules []engine.Rule, set *engine.RuleSet) error {
	e := new(UnrenderedError)
	for _, r := range set.Rules() {
		if err := r.Unrendered(); err != nil {
			i := slices.IndexFunc(rules, func(given engine.Rule) bool { return given == r.Rule() })
			e.Rules = append(e.Rules, UnrenderedRule{Index: i, Rule: r.Rule(), Err: err})
		}
	}
	if len(e.Rules) == 0 {
		return nil
	}
	slices.SortFunc(e.Rules, func(a, b UnrenderedRule) int { return a.Index - b.Index })
	return e
}
