package api

import (
	"errors"
	"fmt"

	"writ/engine"
)

// errRuleUnchecked aborts the update of a rule that must be checked first.
var errRuleUnchecked = errors.New("the rule is not checked")

// equalExceptTimes reports whether a and b differ in their times at most, which checkRule
// does not look at.
func equalExceptTimes(a, b engine.Rule) bool {
	a.CreatedAt, a.UpdatedAt = b.CreatedAt, b.UpdatedAt
	return a == b
}

// checkRule reports all that is wrong with a rule at once, and returns the names of the lists
// that it looks in.
func (s *Server) checkRule(r *request, rule *engine.Rule) (lists []string, err error) {
	compiled, err := s.compileRule(rule)
	if err != nil {
		return nil, err
	}
	if rule.IsActive && compiled.Size() > smallRule {
		err = s.checkRulesSize(r, compiled)
	}
	return compiled.Lists(), err
}

// compileRule compiles r, or reports all that is wrong with it at once.
func (s *Server) compileRule(r *engine.Rule) (compiled *engine.CompiledRule, err error) {
	var bad fieldErrors
	bad.merge(r.Validate())
	if r.Condition != "" && r.Action != "" {
		compiled, err = engine.CompileRule(*r, s.cfg.Conditions)
		bad.merge(err)
	}
	return compiled, bad.err()
}

// smallRule is the size up to which a rule is accepted without adding up the others,
// which is slow if they are many.
const smallRule = 4 << 10

// checkRulesSize refuses a rule with which the rules of its organization would have no room.
func (s *Server) checkRulesSize(r *request, rule *engine.CompiledRule) error {
	rules, err := s.cfg.Sets.Rules(r.ctx, &r.slot, r.who.org)
	if err != nil {
		return fmt.Errorf("adding up the rules: %w", err)
	}
	size := rule.Size()
	for _, other := range rules.Rules() {
		if other.Rule().ID != rule.Rule().ID {
			size += other.Size()
		}
	}
	if room := s.cfg.Sets.RulesRoom(); size > room {
		return invalid("condition", "takes the active rules of the organization over %v MiB once they are compiled: "+
			"write them shorter, or fewer of them in Rego", float64(room)/(1<<20))
	}
	return nil
}
