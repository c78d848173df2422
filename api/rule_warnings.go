package api

import (
	"fmt"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
)

// warnedRule is a stored rule with the warnings of `writ check` that hold whatever other rules there are.
// Comparing all rules would take long for an answer.
type warnedRule struct {
	*engine.Rule
	Warnings []lint.Warning `json:"warnings,omitzero"`
}

// warned returns a rule with its warnings. A rule that an upgrade no longer compiles has none.
func (s *Server) warned(r *request, rule *engine.Rule) warnedRule {
	o, err := s.conditions(r, rule)
	if err != nil {
		return warnedRule{rule, nil} // the rule is stored, and is the answer
	}
	compiled, err := engine.CompileRule(*rule, o)
	if err != nil {
		return warnedRule{rule, nil}
	}
	return warnedRule{rule, lint.Rule(compiled)}
}

// readRule answers with a rule and its warnings, or with a revision of the rule.
func (s *Server) readRule(r *request) error {
	if n := r.query.revision(); n > 0 {
		return documentOf("rule", revisionOf(n, s.docs.RuleAt), changedRule)(r)
	}
	return getOf("rule", s.docs.Rule, func(r *request, rule *engine.Rule) warnedRule {
		r.res.etag = entityTag(rule.UpdatedAt)
		return s.warned(r, rule)
	})(r)
}

// listWarned answers with a page of rules and their warnings. A rule that is not active, or does not
// compile, has none.
func (s *Server) listWarned(r *request, rules []engine.Rule, next string) error {
	set, err := s.decisions.Sets.Rules(r.ctx, &r.slot, r.who.org)
	if err != nil {
		return fmt.Errorf("loading the rules: %w", err)
	}
	compiled := make(map[string]*engine.CompiledRule)
	for _, c := range set.Rules() {
		compiled[c.Rule().ID] = c
	}
	for _, broken := range set.Broken() {
		delete(compiled, broken.RuleID)
	}
	all := make([]warnedRule, len(rules))
	for i := range rules {
		all[i].Rule = &rules[i]
		if c := compiled[rules[i].ID]; c != nil && c.Rule().Revision == rules[i].Revision {
			all[i].Warnings = lint.Rule(c)
			r.slot.Yield()
		}
	}
	return r.part(all, next)
}

// warnings takes the parameter that asks for warnings.
func (q *query) warnings() bool {
	text, given := q.take("warnings")
	if given && text != "true" && text != "false" {
		q.refuse(invalid("warnings", "must be true or false"))
	}
	return text == "true"
}
