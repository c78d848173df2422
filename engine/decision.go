package engine

import (
	"fmt"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Decision is the outcome of an evaluation. A greater Decision is more restrictive, so the
// decision of several findings is their maximum. The zero Decision is invalid. Wherever it
// matters, it is treated as a deny.
type Decision uint8

// The three outcomes, from the least to the most restrictive.
const (
	Allow Decision = iota + 1
	ApprovalRequired
	Deny
)

// String returns the outcome's name on the wire.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case ApprovalRequired:
		return "approval_required"
	default:
		return "deny"
	}
}

// Side returns the side for which a rule with this outcome matches the resource.
func (d Decision) Side() resource.Side {
	if d == Allow {
		return resource.ForAllow
	}
	return resource.ForBlock
}

// ParseDecision returns the Decision with the given wire name.
func ParseDecision(s string) (Decision, error) {
	switch s {
	case "allow":
		return Allow, nil
	case "approval_required":
		return ApprovalRequired, nil
	case "deny":
		return Deny, nil
	}
	return 0, fmt.Errorf("unknown decision %q: want allow, deny or approval_required", s)
}

// MarshalText implements [encoding.TextMarshaler].
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Decision) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDecision(string(text))
	return err
}

// Code is the kind of a finding. Codes are stable. They start every reason, label the metrics, and
// are the same in the CEL and the Rego rendering of a check.
type Code string

// Finding is one result of an evaluation. It is a check that failed or the rule that decided. If
// there was no objection, it is the policy that allowed the intent.
type Finding struct {
	Code    Code
	Outcome Decision
	// Reason is one sentence that starts with Code and a colon. Its words come from writ and from
	// the author of the policy or rule. It repeats nothing of the intent, unless it is a message of
	// a rule in Rego: see [RegoCondition].Messages.
	Reason string
	// RuleID is the id of the deciding rule, and RuleRevision is the revision of its document. They
	// are empty if the finding is not a rule's.
	RuleID       string
	RuleRevision int64
	// Cause says why a check, a condition or a stored document could not be evaluated: see
	// [condition.Cause]. It is empty if nothing went wrong.
	Cause string
	// Field is the policy's or the session's member that a check reads, such as
	// "policy.max_cost_minor". If a condition could not be evaluated, Field is the
	// [condition.EvalError]'s. It is never a value.
	Field string
}

// Named returns the code with which the finding's reason starts. If the code is
// [CodeCoreFinding], this is the core's own code. If a secret was removed from that code, Named
// returns CodeCoreFinding.
func (f *Finding) Named() string {
	if f.Code != CodeCoreFinding {
		return string(f.Code)
	}
	code, _, _ := strings.Cut(f.Reason, ":")
	if strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '_'
	}) {
		return string(f.Code)
	}
	return code
}

// Result is the result of [Evaluate]. Findings has at least one finding, in check order. Results
// share findings, so they must not be modified.
type Result struct {
	Decision Decision
	Findings []Finding
	// ConditionErrors counts the rule conditions that could not be evaluated.
	ConditionErrors condition.CauseCounts
	// Err is an [*EndedError], or nil. If it is set, nothing was decided and nothing may be stored.
	// The finding and the decision deny, so that a caller that overlooks Err allows nothing.
	Err error
}

// EndedError says that a request ended before its intent was decided.
type EndedError struct {
	// RuleID is the rule whose condition was running.
	RuleID string
}

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the request ended while the condition of the rule %s was running", e.RuleID)
}

// unfinished returns the result of an evaluation whose request ended while the condition of r was
// running.
func unfinished(r *CompiledRule) Result {
	var errs condition.CauseCounts
	errs[condition.CauseTime] = 1
	return Result{Decision: Deny, ConditionErrors: errs, Err: &EndedError{RuleID: r.rule.ID}, Findings: []Finding{{
		Code: CodeCheckError, Outcome: Deny, RuleID: r.rule.ID,
		Reason: string(CodeCheckError) + ": the request ended before the intent was decided",
	}}}
}

// Reasons returns the findings' reasons in order.
func (r Result) Reasons() []string {
	reasons := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		reasons[i] = f.Reason
	}
	return reasons
}
