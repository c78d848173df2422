// Package approval lets a person decide about what was held. An approval is the held
// decision itself: it has its id and is pending from the moment that the decision is
// committed until it expires.
//
//	pending ─▶ approved ─▶ used
//	   │          ├─────▶ revoked
//	   │          └─────▶ expired   nobody used it in time
//	   ├─────▶ rejected
//	   └─────▶ expired              nobody decided in time
//
// What was decided is an entry of the ledger: see [ledger.Verdict]. Until an approval has
// ended, what the approver must know of the intent is kept beside the history, as
// [storage.Details], written before the decision is committed and erased at the end.
// Details without a decision, which a crash leaves, are swept.
//
// An approval leads to one decision, of the same intent, and allows what was found then
// and nothing else: see [Approval.Redeem].
package approval

import (
	"slices"
	"strings"
	"time"

	"writ/engine"
	"writ/storage"
	"writ/storage/ledger"
)

// Status is the state of an approval. The names are the verdicts' or [Pending].
type Status string

// The states of an approval.
const (
	Pending  Status = "pending"
	Approved Status = ledger.Approved
	Rejected Status = ledger.Rejected
	Expired  Status = ledger.Expired
	Revoked  Status = ledger.Revoked
	Used     Status = ledger.Used
)

// Statuses returns every status.
func Statuses() []Status { return []Status{Pending, Approved, Rejected, Expired, Revoked, Used} }

// Approval is a decision that was held, with what became of it.
type Approval struct {
	Held *storage.Record
	ledger.Verdicts
	// Details are nil once they are erased.
	Details *storage.Details
}

// Status returns the state of a at a time.
func (a *Approval) Status(at time.Time) Status {
	switch {
	case a.End != nil:
		return Status(a.End.Verdict)
	case a.First != nil && a.First.Verdict == ledger.Approved && !at.Before(a.First.ApprovedUntil):
		return Expired
	case a.First != nil:
		return Status(a.First.Verdict)
	case a.Details == nil || !at.Before(a.Details.ExpiresAt):
		return Expired
	}
	return Pending
}

// heldFindings returns the findings of a decision as its details keep them. The code of a finding
// that a core made up is the one that its reason starts with.
func heldFindings(result engine.Result, rules *engine.RuleSet) []storage.HeldFinding {
	held := make([]storage.HeldFinding, len(result.Findings))
	for i, f := range result.Findings {
		held[i] = storage.HeldFinding{Code: string(f.Code), RuleID: f.RuleID, Reason: f.Reason}
		if f.Code == engine.CodeCoreFinding {
			held[i].Code, _, _ = strings.Cut(f.Reason, ":")
		}
		if f.RuleID != "" {
			held[i].RuleRevision = rules.RevisionOf(f.RuleID)
		}
	}
	return held
}

// covers reports whether each finding of a result is one that was approved: the same code,
// rule and revision of the rule.
func (a *Approval) covers(result engine.Result, rules *engine.RuleSet) bool {
	if a.Details == nil {
		return false
	}
	for _, found := range heldFindings(result, rules) {
		if !slices.ContainsFunc(a.Details.Findings, func(f storage.HeldFinding) bool {
			f.Reason = found.Reason
			return f == found
		}) {
			return false
		}
	}
	return true
}

// Redeem returns what an intent is decided to be under an approval with a status, which is
// not [Pending], and the verdict to commit with the decision, nil if there is none. Result
// is what was found now, under rules. At is the time of the decision.
//
// A deny stays one. What is held for what was approved is allowed; what is held for
// anything else stays held, and the approval is used up. Without an approval that holds
// it is a deny.
func (a *Approval) Redeem(
	status Status, at time.Time, result engine.Result, rules *engine.RuleSet,
) (engine.Result, *ledger.Verdict) {
	switch status {
	case Approved:
		return a.redeem(result, rules), a.verdict(ledger.Used, at)
	case Rejected:
		return with(result, engine.CodeApprovalRejected, "the approval was refused"), nil
	case Revoked:
		return with(result, engine.CodeApprovalRevoked, "the approval was revoked"), nil
	case Used: // by a decision that another intent id led to, which there is not
		return with(result, engine.CodeApprovalExpired, "the approval was used before"), nil
	}
	result = with(result, engine.CodeApprovalExpired, "the approval has expired")
	if a.First != nil {
		return result, nil
	}
	return result, a.verdict(ledger.Expired, at)
}

// redeem is Redeem of an approval that holds.
func (a *Approval) redeem(result engine.Result, rules *engine.RuleSet) engine.Result {
	switch {
	case result.Decision != engine.ApprovalRequired:
		return result
	case !a.covers(result, rules):
		return with(result, engine.CodeApprovalOutOfScope, "the approval does not cover all of this: it needs another")
	}
	result.Decision = engine.Allow
	result.Findings = []engine.Finding{finding(engine.CodeApprovalGranted, "what it was held for was approved")}
	return result
}

// with returns result with another finding, whose outcome is its code's and not less than
// result's.
func with(result engine.Result, code engine.Code, text string) engine.Result {
	f := finding(code, text)
	result.Findings = append(slices.DeleteFunc(slices.Clone(result.Findings), func(f engine.Finding) bool {
		return f.Outcome == engine.Allow
	}), f)
	result.Decision = max(result.Decision, f.Outcome)
	return result
}

func finding(code engine.Code, text string) engine.Finding {
	outcome, _ := code.Outcome()
	return engine.Finding{Code: code, Outcome: outcome, Reason: string(code) + ": " + text}
}

func (a *Approval) verdict(verdict string, at time.Time) *ledger.Verdict {
	return &ledger.Verdict{
		OrganizationID: a.Held.OrganizationID, ApprovalID: a.Held.DecisionID, Verdict: verdict,
		IntentDigest: a.Held.IntentDigest, DetailsDigest: a.Held.DetailsDigest, DecidedAt: at,
	}
}
