package rego

import (
	"fmt"
	"regexp"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// checks defines the findings of the policy's own checks, and the sentence for each code.
func (l *lowering) checks() ([]string, error) {
	parts := []string{l.membersOfInput(), readingsOfResource(), resourceReadings}
	parts = append(parts, plainReadings()...)
	var sentences strings.Builder
	sentences.WriteString(sentence(engine.CodeCheckError, string(engine.CodeCheckError)+
		": the input is not what writ makes of an intent"))
	sentences.WriteString(sentence(engine.CodeResourceUnreadable,
		string(engine.CodeResourceUnreadable)+": the input does not say how the resource is read"))
	asking := []string{condition.Quote(string(engine.CodeRuleApprovalRequired))}
	for _, c := range engine.Checks(l.policy) {
		rules, err := check(l.policy, c.Code)
		if err != nil {
			return nil, err
		}
		if rules != "" {
			parts = append(parts, rules)
		}
		if c.Outcome == engine.ApprovalRequired {
			asking = append(asking, condition.Quote(string(c.Code)))
		}
		sentences.WriteString(sentence(c.Code, c.Reason))
	}
	sentences.WriteString(sentence(engine.CodePolicyAllowed,
		fmt.Sprintf("%s: version %d of the policy allows it", engine.CodePolicyAllowed, l.policy.Version)))
	return append(parts, "asking := {"+strings.Join(asking, ", ")+"}", "sentences := [\n"+sentences.String()+"]"), nil
}

func sentence(code engine.Code, text string) string {
	return fmt.Sprintf("\t[%s, %s],\n", condition.Quote(string(code)), condition.Quote(text))
}

// membersOfInput defines a check that the input has the members of [Input], with their types.
// Without this check a rule that denies would not match an input that lacks the rule's field, and a
// cost of null would exceed no limit.
func (l *lowering) membersOfInput() string {
	var lines []string
	for _, m := range condition.Members {
		if m.Optional {
			lines = append(lines, fmt.Sprintf(`is_string(object.get(input.intent, %s, ""))`, condition.Quote(m.Name)))
		} else {
			lines = append(lines, "is_string(input.intent."+m.Name+")")
		}
	}
	lines = append(lines, "is_string(input."+decidedAt+")", "metadata_read", "cost_read",
		"not readings_stale", "is_boolean(input.organization.stopped)", "is_boolean(input.usage.exceeded)",
		"is_boolean(input.require_registered_agents)",
		"input.agent.id == input.intent.agent_id", `input.agent.status in {"active", "disabled", "unregistered"}`,
		"is_number(input.policy.version)")
	for _, name := range []string{"policy_id", "organization_id", "agent_id", "status"} {
		lines = append(lines, "is_string(input.policy."+name+")")
	}
	if l.timed {
		lines = append(lines, "decided_at_read", "time.parse_rfc3339_ns(input."+decidedAt+")")
	}
	counted := ""
	if l.timed {
		counted += clockOfInput
	}
	if len(l.counters) > 0 {
		lines = append(lines, "counters_read")
		counted += countersOfInput(l.counters)
	}
	if counted != "" {
		counted += derivedOfInput
	}
	if l.readsValues {
		lines = append(lines, "values_read")
		counted += valuesOfInput
	}
	if l.readsNames {
		lines = append(lines, "names_read")
		counted += namesOfInput
	}
	return finding(engine.CodeCheckError, "not input_read") +
		"\n\n# The input is what writ makes of an intent.\n" + ruleOf("input_read", lines) + `

intent_read if {
	input_read
	resource_read
}

metadata_read if not "metadata" in object.keys(input.intent)

metadata_read if {
	is_object(input.intent.metadata)
	every value in input.intent.metadata { is_string(value) }
}

cost_read if not "cost" in object.keys(input.intent)

cost_read if {
	input.intent.cost.amount_minor >= 0
	is_number(input.intent.cost.amount_minor)
	is_string(input.intent.cost.currency)
}` + counted
}

// countersOfInput defines a check that the input has the value of each counter.
func countersOfInput(counters []*condition.Counter) string {
	keys := make([]string, len(counters))
	for i, c := range counters {
		keys[i] = condition.Quote(c.Key)
	}
	return `

counters_read if {
	object.keys(input.derived_from.counters) == ` + keysOf(countedMembers) + `
	derived_current("counters")
	every key in {` + strings.Join(keys, ", ") + `} { counter_read(input.counters[key]) }
}

counter_read(null)

counter_read(n) if is_number(n)`
}

// check writes the rules of one check, separated by empty lines. If the check fails, they add its
// code to the set findings. They read the input {intent, agent: {status}, organization: {stopped},
// usage: {exceeded}, require_registered_agents} and the readings of [readingsOfResource]. The check
// fails if a member is missing. The result is empty if the check cannot fail.
//
// In Rego a negated comparison with an undefined operand is undefined, not true, unless the
// comparison is `==`. So each other comparison that is negated has a rule of its own.
func check(p *engine.ActionPolicy, code engine.Code) (string, error) {
	switch code {
	case engine.CodeOrganizationStopped:
		return finding(code, "not input.organization.stopped == false"), nil
	case engine.CodePolicyInactive:
		if p.Status == engine.StatusActive {
			return "", nil
		}
		return finding(code), nil
	case engine.CodeAgentDisabled:
		return finding(code, `not input.agent.status == "active"`, `not input.agent.status == "unregistered"`), nil
	case engine.CodeAgentUnregistered:
		return finding(code, `not input.require_registered_agents == false`,
			`not input.agent.status == "active"`, `not input.agent.status == "disabled"`), nil
	case engine.CodeAgentMismatch:
		return agentMismatch(p, code), nil
	case engine.CodeActionDenied:
		return denied(finding(code), p.DeniedActionTypes), nil
	case engine.CodeActionNotAllowed:
		if len(p.AllowedActionTypes) == 0 {
			return finding(code), nil
		}
		return finding(code, "not action_allowed") + "\n\n" +
			actions("action_allowed", "input.intent.action_type", p.AllowedActionTypes), nil
	case engine.CodeResourceBlocked:
		return comments(p.BlockedResourcePatterns...) + finding(code, "resource_blocked") + "\n\n" +
			someReading("resource_blocked", glob.Expressions(p.BlockedResourcePatterns, resource.ForBlock)), nil
	case engine.CodeResourceNotAllowed:
		return finding(code, "not resource_allowed") + "\n\n" + comments(p.AllowedResourcePatterns...) +
			everyReading("resource_allowed", glob.Expressions(p.AllowedResourcePatterns, resource.ForAllow)), nil
	case engine.CodeCostExceeded:
		return finding(code, fmt.Sprintf("input.intent.cost.amount_minor > %d", *p.MaxCostMinor)) + "\n\n" +
			finding(code, "input.intent.cost", "not input.intent.cost.amount_minor"), nil
	case engine.CodeCostCurrency:
		return finding(code, "input.intent.cost", "not input.intent.cost.currency == "+condition.Quote(p.Currency)), nil
	case engine.CodeUsageLimit:
		return finding(code, "not input.usage.exceeded == false"), nil
	}
	return "", fmt.Errorf("the check %s has no rendering in Rego", code)
}

func agentMismatch(p *engine.ActionPolicy, code engine.Code) string {
	if !glob.HasMeta(p.AgentID) {
		return finding(code, "not input.intent.agent_id == "+condition.Quote(p.AgentID))
	}
	return finding(code, "not agent_matches") + "\n\n" + comments(p.AgentID) +
		"agent_matches if regex.match(" + union([]string{p.AgentID}, agentExpressions) + ", input.intent.agent_id)"
}

// finding defines a rule that adds code to the findings if all exprs hold. Without exprs the rule
// always adds it.
func finding(code engine.Code, exprs ...string) string {
	head := "findings contains " + condition.Quote(string(code))
	switch len(exprs) {
	case 0:
		return head
	case 1:
		return head + " if " + exprs[0]
	}
	return head + " if {\n\t" + strings.Join(exprs, "\n\t") + "\n}"
}

// comments returns patterns as comments.
func comments(patterns ...string) string {
	var b strings.Builder
	for _, pattern := range patterns {
		b.WriteString("# " + condition.Quote(pattern) + "\n")
	}
	return b.String()
}

// union returns one regular expression for all patterns. One match of it is several times faster
// than a glob.match for each pattern.
func union(patterns []string, expressions func(string) []string) string {
	var all []string
	for _, pattern := range patterns {
		all = append(all, expressions(pattern)...)
	}
	return anchored(strings.Join(all, "|"))
}

// anchored returns a quoted expression that matches only whole texts.
func anchored(expression string) string { return condition.Quote("^(?:" + expression + ")$") }

// agentExpressions returns expressions for the agents that a pattern allows. One of them matches
// the pattern itself, because an agent's id may equal the pattern.
func agentExpressions(pattern string) []string {
	return append(glob.PlainExpressions(pattern), regexp.QuoteMeta(pattern))
}

// denied defines rules for denied types, like actions. Its rules also match an action type that
// equals a denied type after folding: see [glob.FoldAction].
func denied(head string, types []string) string {
	return deniedAction(head, "input.intent.action_type", types)
}

// deniedAction does the same for another action type.
func deniedAction(head, action string, types []string) string {
	var words, patterns []string
	for _, t := range types {
		folded := string(glob.FoldAction(nil, t, !strings.Contains(t, "*")))
		if strings.Contains(t, "*") {
			patterns = appendDistinct(patterns, folded)
		} else {
			words = appendDistinct(words, folded)
		}
	}
	rules := actions(head, action, types)
	for _, folded := range []struct {
		types []string
		runs  string
	}{{words, `[._-]+`}, {patterns, `[.]+`}} {
		if len(folded.types) > 0 {
			spelt := fmt.Sprintf(`regex.replace(lower(%s), "%s", ".")`, action, folded.runs)
			rules += "\n\n" + actions(head, spelt, folded.types)
		}
	}
	return rules
}

// actions defines rules with the given head. Each holds if action matches one of types.
func actions(head, action string, types []string) string {
	var exact, patterns, rules []string
	for _, t := range types {
		if strings.Contains(t, "*") {
			patterns = append(patterns, t)
		} else {
			exact = append(exact, "\t"+condition.Quote(t)+",\n")
		}
	}
	if len(exact) > 0 {
		rules = append(rules, head+" if "+action+" in {\n"+strings.Join(exact, "")+"}")
	}
	if len(patterns) > 0 {
		rules = append(rules, comments(patterns...)+
			head+" if regex.match("+union(patterns, actionExpression)+", "+action+")")
	}
	return strings.Join(rules, "\n\n")
}

func actionExpression(pattern string) []string {
	return []string{strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(?s:.*)`)}
}
