package engine

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Explanation says why an intent was decided as it was. `writ eval`, `writ test` and the API use
// the same form. It holds the intent's resource, agent, action type and cost. It holds no value of
// the metadata, unless the author of the policy or rule wrote the same text.
type Explanation struct {
	Decision Decision           `json:"decision"`
	Findings []ExplainedFinding `json:"findings"`
	Resource ExplainedResource  `json:"resource"`
	Checks   []ExplainedCheck   `json:"checks"`
	// Unknown names what the explanation lacks, sorted: see [Recorded]. It has only what a check or a
	// rule reads.
	Unknown []string `json:"unknown,omitzero"`
	// Rules are in deciding order. RulesLeftOut is the number of further rules that are not in
	// Rules.
	Rules        []ExplainedRule `json:"rules"`
	RulesLeftOut int             `json:"rules_left_out,omitzero"`
}

// ExplainedFinding is a [Finding]. Decides says that its outcome is the decision: the finding
// alone would have led to the same decision.
type ExplainedFinding struct {
	Code    Code     `json:"code"`
	Outcome Decision `json:"outcome"`
	Reason  string   `json:"reason"`
	RuleID  string   `json:"rule_id,omitzero"`
	Decides bool     `json:"decides"`
}

// ExplainedResource has the readings of the intent's resource. An allowance must cover all
// readings in Allow. A block looks at all readings in Block. Error says why there are no readings.
type ExplainedResource struct {
	Written string             `json:"written"`
	Allow   []ExplainedReading `json:"allow,omitzero"`
	Block   []ExplainedReading `json:"block,omitzero"`
	Error   string             `json:"error,omitzero"`
}

// ExplainedReading is the canonical form of a resource for Readers.
type ExplainedReading struct {
	Text    string   `json:"text"`
	Readers []string `json:"readers"`
}

// ExplainedCheck is a [Checked]. Result is "pass", "fail", "not_asked" or "unknown". Holds is the check in
// CEL.
type ExplainedCheck struct {
	Code   Code   `json:"code"`
	Result string `json:"result"`
	Holds  string `json:"holds"`
	// Field is the path of the policy's member that decided, or of one entry in it, such as
	// "policy.blocked_resource_patterns[2]". Value is the value at that path. Value is empty if
	// Field is a list and no entry matches.
	Field string `json:"field,omitzero"`
	Value string `json:"value,omitzero"`
	// Entries has the indices of all entries that match. The entry that decided is the first.
	Entries []int `json:"entries,omitzero"`
	// Got is the intent's value that the check compares: the agent or its status, the action type,
	// the amount in minor units, or the currency. For a check of the resource it is the reading
	// that failed, and Readers are the readers of that reading.
	Got     string   `json:"got,omitzero"`
	Readers []string `json:"readers,omitzero"`
}

// ExplainedRule is an [Asked] rule. Result is "match", "no_match", "error", "not_asked", or "unknown" if
// the rule reads something in [Explanation].Unknown.
type ExplainedRule struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Priority int64    `json:"priority"`
	Outcome  Decision `json:"outcome"`
	Result   string   `json:"result"`
	// Decides says that this rule decided among the rules.
	Decides bool `json:"decides"`
	// Condition is the condition in Rego if its author wrote Rego, otherwise in CEL. It is empty
	// if the stored condition does not compile.
	Condition string `json:"condition"`
	// Error is the reason why the condition could not be evaluated, and Cause is the kind of the
	// reason.
	Error string `json:"error,omitzero"`
	Cause string `json:"cause,omitzero"`
	// Reading is the reading of the resource for which Leaves were evaluated: see [Asked].
	Reading *ExplainedReading `json:"reading,omitzero"`
	// Leaves has the parts of the condition that are evaluated by themselves: see
	// [condition.Clause] and [ExplainedLeaf]. Because is the index of the first leaf for which the
	// rule does not match or is an error, or of the rule of a module that matches.
	Leaves  []ExplainedLeaf `json:"leaves,omitzero"`
	Because *int            `json:"because,omitzero"`
}

// ExplainedLeaf is a leaf of a condition. Result is "true", "false", "error", "not_asked" or "unknown".
//
// A condition in Rego has a leaf for each rule of its module and for each line of a rule's body. Its
// Result is "true", "false", "undefined", "failed" or "not_reached". Error begins with the place of
// the error.
type ExplainedLeaf struct {
	Text   string `json:"text"`
	Result string `json:"result"`
	Error  string `json:"error,omitzero"`
	Cause  string `json:"cause,omitzero"`
	// Rule says that the leaf is a rule of a module in Rego. The leaves after it are its lines.
	Rule bool `json:"rule,omitzero"`
	// Line and Column are the place in the Rego, from 1.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
}

// Explain returns the trace as an explanation. It renders every check and rule, which takes far
// longer than the evaluation.
func (t *Trace) Explain() *Explanation { return t.ExplainUpTo(math.MaxInt) }

// ExplainUpTo is [Trace.Explain] with a bound of the size. When the conditions of the explained
// rules have limit bytes, it leaves out all further rules except those that decided.
func (t *Trace) ExplainUpTo(limit int) *Explanation {
	x := &Explanation{
		Decision: t.Result.Decision, Findings: []ExplainedFinding{}, Checks: []ExplainedCheck{},
		Rules: []ExplainedRule{},
	}
	for _, f := range t.Result.Findings {
		x.Findings = append(x.Findings,
			ExplainedFinding{f.Code, f.Outcome, f.Reason, f.RuleID, f.Outcome == x.Decision})
	}
	if t.policy == nil {
		return x
	}
	if x.Resource = (ExplainedResource{Written: t.in.Intent.Resource}); !t.lacks("resource") {
		x.Resource = explainResource(t.in.Intent)
	}
	x.Unknown = t.Unknown
	checks := Checks(&t.policy.doc)
	if t.policy.Unreadable() {
		checks = nil
	}
	if s := t.in.Session.CompiledSession; s != nil {
		checks = append(checks, s.doc.checks()...)
	}
	for i, c := range checks {
		x.Checks = append(x.Checks, t.explainCheck(&t.Checks[i], &c))
	}
	for i := range t.Rules {
		a := &t.Rules[i]
		if limit <= 0 && !a.Decides {
			x.RulesLeftOut++
			continue
		}
		limit -= len(a.Rule.rule.Condition)
		if t.in.Turn != nil {
			t.in.Turn.Yield()
		}
		rule := t.explainRule(a)
		if a.Rule.rego != nil {
			limit -= leafBytes * len(rule.Leaves)
		}
		x.Rules = append(x.Rules, rule)
	}
	return x
}

func explainResource(in *Intent) ExplainedResource {
	x := ExplainedResource{Written: in.Resource}
	readings, err := in.Readings()
	if err != nil {
		x.Error = err.Error()
		return x
	}
	x.Allow, x.Block = explainReadings(&readings, resource.ForAllow), explainReadings(&readings, resource.ForBlock)
	return x
}

func explainReadings(r *resource.Readings, side resource.Side) (all []ExplainedReading) {
	for i := range r.Len(side) {
		all = append(all, explainReading(r.At(side, i)))
	}
	return all
}

func explainReading(r resource.Reading) ExplainedReading {
	return ExplainedReading{r.Text, r.Readers.Names()}
}

func (t *Trace) explainCheck(found *Checked, c *Check) ExplainedCheck {
	x := ExplainedCheck{Code: found.Code, Result: "pass", Holds: c.Holds.CEL(), Field: found.Field,
		Entries: found.Entries}
	switch {
	case !found.Asked:
		x.Result = "not_asked"
	case found.lacks && t.overruled:
		x.Result = "unknown"
	case found.Finding != nil:
		x.Result = "fail"
	}
	switch {
	case len(found.Entries) > 0:
		x.Field = fmt.Sprintf("%s[%d]", x.Field, found.Entries[0])
		x.Value = c.row.entries(&t.policy.doc)[found.Entries[0]]
	case c.row.entries == nil && found.session():
		x.Value = t.in.Session.doc.valueOf(found.Field)
	case c.row.entries == nil:
		x.Value = valueOf(&t.policy.doc, found.Field)
	}
	if found.lacks {
		return x
	}
	x.Got = got(&t.in, found.Code)
	if found.session() {
		x.Got = gotInSession(t.in.Intent, found.Field)
	}
	if found.Reading.Readers != 0 {
		x.Got, x.Readers = found.Reading.Text, found.Reading.Readers.Names()
	}
	return x
}

func (c *Checked) session() bool { return strings.HasPrefix(c.Field, "session.") }

// valueOf returns the value of a policy's member. It is empty if the member is a list.
func valueOf(p *ActionPolicy, field string) string {
	switch field {
	case fieldStatus:
		return string(p.Status)
	case fieldAgentID:
		return p.AgentID
	case fieldMaxCost:
		return strconv.FormatInt(*p.MaxCostMinor, 10)
	case fieldCurrency:
		return p.Currency
	}
	return ""
}

// got returns the intent's value that a check compares. It is empty if the check compares the
// resource.
func got(in *Input, check Code) string {
	switch check {
	case CodeAgentDisabled, CodeAgentUnregistered:
		return in.Agent.String()
	case CodeAgentMismatch:
		return in.Intent.AgentID
	case CodeActionDenied, CodeActionNotAllowed:
		return in.Intent.ActionType
	case CodeCostExceeded:
		if in.Intent.Cost != nil {
			return strconv.FormatInt(in.Intent.Cost.AmountMinor, 10)
		}
	case CodeCostCurrency:
		if in.Intent.Cost != nil {
			return in.Intent.Cost.Currency
		}
	}
	return ""
}

// leafBytes is the size of a leaf without its text.
const leafBytes = 64

func (t *Trace) explainRule(a *Asked) ExplainedRule {
	doc := &a.Rule.rule
	x := ExplainedRule{
		ID: doc.ID, Name: doc.Name, Priority: doc.Priority, Outcome: a.Rule.outcome, Decides: a.Decides,
		Result:    [...]string{"not_asked", "no_match", "match", "error", "unknown"}[a.Verdict],
		Condition: a.Rule.condition(),
	}
	x.Error, x.Cause = explainError(a.Err)
	if a.Rule.rego != nil && a.Verdict != NotAsked && !a.lacks {
		t.explainRego(a, &x)
	}
	if a.Reading.Readers != 0 {
		reading := explainReading(a.Reading)
		x.Reading = &reading
	}
	if len(a.Leaves) == 0 || x.Leaves != nil {
		return x
	}
	clause := a.Rule.cond.Clause()
	texts := clause.Leaves()
	for i, l := range a.Leaves {
		leaf := ExplainedLeaf{Text: texts[i], Result: leafResults[l.Verdict]}
		leaf.Error, leaf.Cause = explainError(l.Err)
		x.Leaves = append(x.Leaves, leaf)
	}
	x.Because = a.because(clause)
	return x
}

// explainRego evaluates a condition in Rego once more, for the reading and the name that decided its
// verdict, and adds what its lines made of them. A line that could not be evaluated because the lines
// of all rules do too much together is "not_reached", unless the condition itself did too much.
func (t *Trace) explainRego(a *Asked, x *ExplainedRule) {
	in := &RegoInput{
		Intent: t.in.Intent, DecidedAt: t.in.DecidedAt, AgentID: cmp.Or(a.Name, t.in.Intent.AgentID),
		Agent: t.in.Agent, Policy: &t.policy.doc, Resource: t.in.Intent.Resource, Lists: t.lists, Work: &t.work,
	}
	if a.Rule.readsResource {
		side := a.Rule.outcome.Side()
		readings, err := t.in.Intent.Readings()
		if a.Reading.Readers == 0 && err == nil && readings.Len(side) > 0 {
			a.Reading = readings.At(side, 0)
		}
		if in.Resource = a.Reading.Text; a.Reading.Readers == 0 {
			return
		}
	}
	leaves, because := a.Rule.rego.Explain(in)
	x.Leaves = leaves
	if because < 0 {
		return
	}
	switch failed := leaves[because].Result == leafFailed; {
	case failed == (a.Verdict == Failed):
		x.Because = &because
	case failed:
		for i := range leaves {
			if l := &leaves[i]; l.Result == leafFailed {
				l.Result, l.Error, l.Cause = leafNotReached, "", ""
			}
		}
	}
}

// leafResults are the results of leaves that are not in Rego.
var leafResults = [...]string{"not_asked", "false", "true", "error", "unknown"}

// Results of leaves of a condition in Rego.
const (
	leafFailed     = "failed"
	leafNotReached = "not_reached"
)

// because returns the index of the leaf for which the rule does not match or is an error. It is
// nil if the rule matches or if no leaf is the reason.
func (a *Asked) because(clause *condition.Clause) *int {
	said := func(i int) condition.Truth { return a.Leaves[i].Verdict.truth() }
	value := clause.Value(said)
	if a.Verdict == Matched || value == condition.True || (value == condition.Unknown) != (a.Verdict == Failed) {
		return nil
	}
	if i := clause.Because(said); i >= 0 && a.Leaves[i].Verdict != NotAsked {
		return &i
	}
	return nil
}

// condition returns the condition in Rego if its author wrote Rego, otherwise in CEL.
func (c *CompiledRule) condition() string {
	if cel, ok := c.CEL(); ok {
		return cel
	}
	return c.cond.Rego
}

func explainError(err *condition.EvalError) (message, cause string) {
	if err == nil {
		return "", ""
	}
	return err.Error(), err.Cause.String()
}
