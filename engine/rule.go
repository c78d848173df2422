package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"writ.example/writ/engine/condition"
)

// The codes of the findings of rules, one for each outcome.
const (
	CodeRuleDeny             Code = "rule.deny"
	CodeRuleApprovalRequired Code = "rule.approval_required"
	CodeRuleAllow            Code = "rule.allow"
)

// Options has the parts of compiling that are outside the engine.
type Options struct {
	// CompileRego compiles the source of a condition in Rego: the body of a rule, or a module with
	// a rule called match. The rule's author sees its errors. If CompileRego is nil, conditions in
	// Rego are refused.
	CompileRego func(source string) (RegoCondition, error)
	// CompileLibraries compiles the libraries of an organization. Its error is a *[condition.Error]
	// whose files are named as [Library.File] names them. If it is nil, there are no libraries.
	CompileLibraries func([]Library) (Libraries, error)
	// Libraries has the libraries that conditions in Rego may import. If it is nil, they may import none.
	Libraries Libraries
	// Lists has the lists that conditions may use.
	Lists condition.Lists
	// KeepDigest keeps the digest of the rules in the set. Set it if an external core is configured.
	KeepDigest bool
	// KeepJSON keeps the rules' JSON in the set. The JSON counts in the set's size. Set it if the
	// external core is sent the rules.
	KeepJSON bool
	// stored is set for rules that were accepted before. New rules that likely do not say what
	// their author meant are refused, but stored ones keep running.
	stored bool
}

// RegoCondition is a compiled condition in Rego. It is safe for concurrent use.
type RegoCondition interface {
	// Match reports whether the condition is true. If it returns an error, the condition has no
	// value, and the stricter outcome applies. Match must not keep in. It may modify only in's
	// Work.
	Match(in *RegoInput) (bool, error)
	// Messages returns why the condition is true of in, which it matches: a few short texts, sorted.
	// They hold no value of the metadata. They hold the other texts of the intent only as kept has
	// them, unless kept is nil. A message that fails is left out. Messages must not keep in. It may
	// modify only in's Work.
	Messages(in *RegoInput, kept *Intent) []string
	// Fits returns an error if a rule with the given outcome cannot have this condition.
	Fits(outcome Decision) error
	// Review lists parts of the source that its author may not have meant.
	Review() condition.Review
	// Lists returns the names of the lists of texts that the condition uses, sorted.
	Lists() []string
	// Documents returns the names of the lists that the condition reads as data.lists, sorted.
	Documents() []string
	// Libraries returns the names of the libraries that the condition imports, directly and through
	// other libraries, sorted.
	Libraries() []string
	// Size returns the approximate size of the condition in memory, in bytes.
	Size() int
	// Reads says what the condition reads.
	Reads() RegoReads
	// Explain evaluates the condition as Match does, and says what each line and each rule of the
	// source made of the input, in their order. because is the index of the leaf that decides, or -1.
	// The leaves hold no value of the input.
	Explain(in *RegoInput) (leaves []ExplainedLeaf, because int)
}

// RegoReads says what a condition in Rego reads.
type RegoReads struct {
	// Resource and Agent say whether the condition may read the resource, or the name of the agent.
	// If it does not, it has the same value for each reading, or for each name.
	Resource, Agent bool
	// Demands are necessary conditions. Match returns false for every input that does not meet them
	// all, even if the condition is an error. They name the agent by [condition.AgentID].
	Demands []condition.Demand
	// Messages says whether the condition can have messages.
	Messages bool
}

// RegoInput is the input document of a condition in Rego.
type RegoInput struct {
	Intent    *Intent
	DecidedAt time.Time // [Input.DecidedAt]
	// AgentID is the name of the agent for which the condition is evaluated. It replaces the one in
	// Intent. Agent is the state of the kill switch for the agent.
	AgentID string
	Agent   AgentStatus
	Policy  *ActionPolicy
	// Resource is the reading of the resource for which the condition is evaluated. It replaces
	// the resource in Intent.
	Resource string
	// Lists has the lists that the condition can use.
	Lists condition.Lists
	// Work counts the steps of all conditions of this evaluation so far. Match adds to it. If
	// there are too many, Match returns an error. If Work is nil, the condition is alone.
	Work *condition.Work
	// Document is where Match keeps the document that it makes of the members above but Lists, so that
	// the next condition with the same input need not make it again. If it is nil, Match keeps none.
	Document *any
}

// CompiledRule is a rule that can be evaluated. It is immutable and safe for concurrent use.
type CompiledRule struct {
	rule    Rule
	outcome Decision
	cond    *condition.Condition
	rego    RegoCondition // nil unless the condition is in Rego
	// readsResource and readsAgent say that the whole condition is evaluated for each reading of the
	// resource, or for each name of the agent. demands are the condition's demands.
	readsResource, readsAgent bool
	demands                   []condition.Demand
	// speaks says that the condition can have messages.
	speaks bool
	// finding is reported if the rule decides. It is a slice of one finding, which all results share.
	finding []Finding
	// err is the reason why a stored rule does not compile. It is nil for all other rules.
	err error
}

// ValidateRule reports the mistakes of r's condition and action as an *[InvalidError].
func ValidateRule(r Rule, o Options) error {
	_, err := CompileRule(r, o)
	return err
}

// CompileRule compiles r. Mistakes in its condition and its action are an *[InvalidError] with the
// fields "condition" and "action". The forms of a condition are in package condition. An action is
//
//	{"decision": "allow" | "deny" | "approval_required", "reason": string}
//
// The reason is optional. "effect", "type" and "outcome" are accepted for "decision", "block" is
// accepted for "deny", and "wait" and "require_approval" are accepted for "approval_required".
func CompileRule(r Rule, o Options) (*CompiledRule, error) {
	act, actErr := parseAction(r.Action)
	if actErr != nil {
		act.decision = Deny
	}
	cond, rego, condErr := compileCondition(r.Condition, act.decision, o)
	if err := errors.Join(condErr, actErr); err != nil {
		return nil, joinInvalid(condErr, actErr)
	}
	c := newCompiledRule(r, act, cond)
	if rego != nil {
		c.setRego(rego)
	}
	return c, nil
}

// setRego makes rego the condition. If the condition is asked for each name of the agent, a demand of
// the agent is met by one of the names.
func (c *CompiledRule) setRego(rego RegoCondition) {
	c.rego = rego
	reads := rego.Reads()
	c.speaks = reads.Messages
	c.readsResource = c.readsResource && reads.Resource
	c.readsAgent = c.readsAgent && reads.Agent
	c.demands = reads.Demands
	if !c.readsAgent {
		return
	}
	c.demands = slices.Clone(c.demands)
	for i := range c.demands {
		if c.demands[i].Field == condition.FieldOf(condition.AgentID) {
			c.demands[i].Field = condition.FieldOf(condition.AgentName)
		}
	}
}

func compileCondition(doc string, outcome Decision, o Options) (*condition.Condition, RegoCondition, error) {
	c, err := sharedCondition(doc, condition.Options{Side: outcome.Side(), Stored: o.stored})
	if err == nil && !o.stored {
		if err := refuseUncounted(c); err != nil {
			return nil, nil, err
		}
	}
	if err != nil || c.Rego == "" {
		return c, nil, badCondition(err)
	}
	compileRego := o.CompileRego
	if o.Libraries != nil {
		compileRego = o.Libraries.Compile
	}
	if compileRego == nil {
		return nil, nil, badCondition(regoError(errors.New("conditions in Rego are not supported here")))
	}
	rego, err := compileRego(c.Rego)
	if err == nil && !o.stored {
		if err = rego.Fits(outcome); err == nil {
			err = rego.Review().Refused
		}
	}
	if err != nil {
		return nil, nil, badCondition(regoError(err))
	}
	return c, rego, nil
}

// conditions has the conditions of the stored rules in use.
var conditions shared[condition.Condition]

// sharedCondition returns the compiled condition of doc. Stored rules with equal conditions share one. A condition
// that is not stored yet is compiled, because its author is told of likely mistakes.
func sharedCondition(doc string, o condition.Options) (*condition.Condition, error) {
	compile := func() (*condition.Condition, error) { return condition.Compile(doc, o) }
	if !o.Stored {
		return compile()
	}
	return conditions.get(append([]byte{byte(o.Side)}, doc...), compile)
}

// regoError returns err as mistakes in the member rego of a condition.
func regoError(err error) error {
	var bad *condition.Error
	if !errors.As(err, &bad) {
		bad = &condition.Error{Mistakes: []condition.Mistake{{Message: err.Error()}}}
	}
	return bad.In("/rego")
}

// badCondition returns the mistakes in err, which package condition found, as mistakes in the
// field "condition".
func badCondition(err error) error {
	var bad *condition.Error
	if !errors.As(err, &bad) {
		return err
	}
	var p problems
	for _, m := range bad.Mistakes {
		p.addIn("condition", m)
	}
	return p.err()
}

// joinInvalid joins errs into one *InvalidError. If an error has another type, the author did not
// cause it, and joinInvalid returns only that error.
func joinInvalid(errs ...error) error {
	var joined InvalidError
	for _, err := range errs {
		var invalid *InvalidError
		switch {
		case err == nil:
		case errors.As(err, &invalid):
			joined.Fields = append(joined.Fields, invalid.Fields...)
		default:
			return err
		}
	}
	return &joined
}

func newCompiledRule(r Rule, act action, cond *condition.Condition) *CompiledRule {
	code, reason := CodeRuleDeny, "a rule of the organization denies this"
	switch act.decision {
	case Allow:
		code, reason = CodeRuleAllow, "a rule of the organization allows this"
	case ApprovalRequired:
		code, reason = CodeRuleApprovalRequired, "a rule of the organization asks for approval"
	}
	if act.reason != "" {
		reason = act.reason
	}
	return &CompiledRule{
		rule: r, outcome: act.decision, cond: cond,
		readsResource: cond.ReadsResource, readsAgent: cond.ReadsAgent, demands: cond.Demands,
		finding: []Finding{{Code: code, Outcome: act.decision, Reason: ruleReason(code, reason, r.Name), RuleID: r.ID,
			RuleRevision: r.Revision}},
	}
}

// errored returns the finding that is reported, with its cause, if the rule decides because its condition could not be
// evaluated.
func (c *CompiledRule) errored() Finding {
	f := c.finding[0]
	f.Reason = c.Reason("the condition could not be evaluated, which counts as a match")
	return f
}

func ruleReason(code Code, text, rule string) string {
	return fmt.Sprintf("%s: %s (rule %s)", code, text, condition.Quote(rule))
}

// brokenRule returns a stored rule that does not compile. Its condition is always an error. If its
// action does not compile either, the rule denies.
func brokenRule(r Rule, err error) *CompiledRule {
	act, actErr := parseAction(r.Action)
	if actErr != nil {
		act = action{decision: Deny}
	}
	broken := newCompiledRule(r, act, condition.Never())
	broken.err = err
	return broken
}

// Rule returns the stored rule.
func (c *CompiledRule) Rule() Rule { return c.rule }

// Reason returns the reason of the rule's finding, with message in the place of the action's reason.
func (c *CompiledRule) Reason(message string) string {
	return ruleReason(c.finding[0].Code, message, c.rule.Name)
}

// Outcome returns the decision of the rule's action.
func (c *CompiledRule) Outcome() Decision { return c.outcome }

// Finding returns the finding that is reported if the rule decides.
func (c *CompiledRule) Finding() Finding { return c.finding[0] }

// CEL returns the condition in CEL. It returns false if the condition is in Rego or does not
// compile.
func (c *CompiledRule) CEL() (string, bool) { return c.cond.CEL() }

// RegoSource returns the source of a condition in Rego. It returns false if the condition is in
// another form.
func (c *CompiledRule) RegoSource() (string, bool) { return c.cond.Rego, c.cond.Rego != "" }

// Leaves returns the texts of the condition's leaves, in the order of a [Trace]: see
// [condition.Clause]. It is nil if the condition does not compile. A condition in Rego has one
// leaf, which is its source. Leaves parses a condition in CEL each time.
func (c *CompiledRule) Leaves() []string { return c.cond.Clause().Leaves() }

// Matches returns a tree that is true for the intents that the rule matches. The rule matches if
// its condition is true. Unless the rule allows, it also matches if the condition is an error.
func (c *CompiledRule) Matches() *condition.Node {
	if c.outcome == Allow {
		return c.cond.Holds
	}
	return condition.Negate(c.cond.Fails)
}

// Certain returns a tree that is true for the intents for which the condition is true.
func (c *CompiledRule) Certain() *condition.Node { return c.cond.Holds }

// Unrendered returns the reasons why a condition in CEL has no rendering in Rego, or nil. It is an
// *[InvalidError] with a field "condition" for each part without a rendering.
// [CompiledRule.Matches] is rendered and, if the rule asks for approval, also
// [CompiledRule.Certain].
func (c *CompiledRule) Unrendered() error {
	if c.Matches().IsRendered() && (c.outcome != ApprovalRequired || c.Certain().IsRendered()) {
		return nil
	}
	found := c.cond.Unrendered()
	if len(found) == 0 {
		return nil // it is in Rego
	}
	return badCondition(&condition.Error{Mistakes: found})
}

// AsksEachReading reports whether the whole condition is evaluated once for each reading of the
// resource. A rule that allows must match every reading of an allowance. For any other rule one
// matching reading of a block is enough.
func (c *CompiledRule) AsksEachReading() bool { return c.readsResource }

// AsksEachName reports whether the whole condition is evaluated once for each name of the agent. One
// matching name is enough. A rule that allows is never such a rule.
func (c *CompiledRule) AsksEachName() bool { return c.readsAgent }

// Review lists parts of the condition that its author may not have meant.
func (c *CompiledRule) Review() condition.Review {
	switch {
	case c.err != nil:
		return condition.Review{}
	case c.rego != nil:
		return c.rego.Review()
	}
	return condition.ReviewOf(c.rule.Condition)
}

// action is a rule's action.
type action struct {
	decision Decision
	reason   string
}

// actionDocument is an action as authors write it.
type actionDocument struct {
	Decision *string `json:"decision"`
	Effect   *string `json:"effect"`
	Type     *string `json:"type"`
	Outcome  *string `json:"outcome"`
	Reason   string  `json:"reason"`
}

const actionForm = `want {"decision":"allow|deny|approval_required","reason":"..."}`

func parseAction(doc string) (action, error) {
	if !strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") {
		return action{}, inAction("", "is not a JSON object: %s", actionForm)
	}
	var d actionDocument
	if err := Decode([]byte(doc), "", &d); err != nil {
		return action{}, badAction(err)
	}
	member, name, err := d.member()
	if err != nil {
		return action{}, err
	}
	decision, ok := actionDecisions[name]
	switch {
	case !ok && didYouMean(name, decisionNames...) != "":
		return action{},
			inAction("/"+member, "unknown decision %q%s; %s", name, didYouMean(name, decisionNames...), actionForm)
	case !ok:
		return action{}, inAction("/"+member, "unknown decision %q; %s", name, actionForm)
	case utf8.RuneCountInString(d.Reason) > MaxReason:
		return action{}, inAction("/reason", "the reason is longer than %d characters", MaxReason)
	case strings.ContainsFunc(d.Reason, unicode.IsControl):
		return action{}, inAction("/reason", "the reason holds a control character")
	}
	return action{decision: decision, reason: strings.TrimSpace(d.Reason)}, nil
}

// decisionNames has the decisions of actions. Each comes with its other names.
var decisionNames = []string{"deny block", "approval_required wait require_approval", "allow"}

var actionDecisions = map[string]Decision{
	"allow": Allow, "deny": Deny, "block": Deny,
	"approval_required": ApprovalRequired, "wait": ApprovalRequired, "require_approval": ApprovalRequired,
}

// member returns the name and the value of the member that holds the decision.
func (d *actionDocument) member() (member, name string, err error) {
	keys := map[string]*string{"decision": d.Decision, "effect": d.Effect, "type": d.Type, "outcome": d.Outcome}
	for key, value := range keys {
		switch {
		case value == nil:
		case member != "":
			return "", "", inAction("", "says twice what to do; %s", actionForm)
		default:
			member, name = key, *value
		}
	}
	if member == "" {
		return "", "", inAction("", "does not say what to do; %s", actionForm)
	}
	return member, name, nil
}

// inAction returns a mistake about a value in an action. The message does not name the place,
// because actions are short.
func inAction(at, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &InvalidError{Fields: []FieldError{{Field: "action", Message: message,
		In: condition.Mistake{At: at, Message: message}}}}
}

// badAction returns the mistakes in err, which [Decode] found, as mistakes in the field "action".
func badAction(err error) error {
	var inv *InvalidError
	if !errors.As(err, &inv) {
		return err
	}
	var out InvalidError
	for _, f := range inv.Fields {
		in := condition.Mistake{Key: f.In.Key, Message: f.Message}
		message := f.Message
		if f.Field != "body" {
			in.At = "/" + f.Field
			message = f.Field + ": " + message
		}
		out.Fields = append(out.Fields, FieldError{Field: "action", Message: message + "; " + actionForm, In: in})
	}
	return &out
}
