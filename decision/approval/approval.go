// Package approval lets a person decide about held decisions. An approval is the held decision
// itself and has the same id. It is pending from the moment that the decision is committed
// until somebody decides or it expires.
//
//	pending ─▶ approved ─▶ used
//	   │          ├─────▶ revoked
//	   │          └─────▶ expired   nobody used it in time
//	   ├─────▶ rejected
//	   └─────▶ expired              nobody decided in time
//
// A verdict is an entry of the ledger: see [ledger.Verdict]. The approver also needs the
// details of the intent. They are kept beside the history until the approval has ended.
// [storage.Details] is written before the decision is committed and erased when the approval
// ends. A crash may leave details without a decision. A sweep erases them.
//
// An approval leads to one decision, of the same intent. It allows only the findings for which
// the intent was held: see [Approval.Redeem].
package approval

import (
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// Status is the state of an approval. It is [Pending] or the name of a verdict.
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

// Approval is a held decision with its verdicts.
type Approval struct {
	Held *storage.Record
	ledger.Verdicts
	// Details is nil once the details are erased.
	Details *storage.Details
}

// Status returns the state of a at the given time.
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

// heldFindings returns the findings of a decision in the form in which its details keep them.
func heldFindings(result engine.Result) []storage.HeldFinding {
	held := make([]storage.HeldFinding, len(result.Findings))
	for i := range result.Findings {
		f := &result.Findings[i]
		held[i] = storage.HeldFinding{Code: f.Named(), RuleID: f.RuleID, RuleRevision: f.RuleRevision, Reason: f.Reason}
	}
	return held
}

// covers reports whether each finding of a result was approved with the same code, the same
// rule and the same revision of the rule.
func (a *Approval) covers(result engine.Result) bool {
	if a.Details == nil {
		return false
	}
	for _, found := range heldFindings(result) {
		if !slices.ContainsFunc(a.Details.Findings, func(f storage.HeldFinding) bool {
			f.Reason = found.Reason
			return f == found
		}) {
			return false
		}
	}
	return true
}

// Redeem applies the approval to a result. It returns the result to commit and the verdict to
// commit with it. The verdict is nil if there is no verdict to commit. status is the status of
// the approval at the time of the decision, and it is not [Pending]. result is the evaluation
// at that time.
//
// If status is approved and the result is held only for findings that were approved, Redeem
// allows it. If the result is held for other findings, it stays held, and the approval is used
// up. A deny stays a deny. While the organization is stopped, the approval is not used. Under any
// other status Redeem returns a deny.
func (a *Approval) Redeem(
	status Status, at time.Time, result engine.Result,
) (engine.Result, *ledger.Verdict) {
	switch status {
	case Approved:
		if slices.ContainsFunc(result.Findings, func(f engine.Finding) bool {
			return f.Code == engine.CodeOrganizationStopped
		}) {
			return result, nil
		}
		return a.redeem(result), a.verdict(ledger.Used, at)
	case Rejected:
		return withFinding(result, engine.CodeApprovalRejected, "the approval was refused"), nil
	case Revoked:
		return withFinding(result, engine.CodeApprovalRevoked, "the approval was revoked"), nil
	case Used: // only a decision about another intent id could have used it, and there is none
		return withFinding(result, engine.CodeApprovalExpired, "the approval was used before"), nil
	}
	result = withFinding(result, engine.CodeApprovalExpired, "the approval has expired")
	if a.First != nil {
		return result, nil
	}
	return result, a.verdict(ledger.Expired, at)
}

// redeem returns the result that Redeem returns for an approval with the status approved.
func (a *Approval) redeem(result engine.Result) engine.Result {
	switch {
	case result.Decision != engine.ApprovalRequired:
		return result
	case !a.covers(result):
		const why = "the approval does not cover all of this: it needs another"
		return withFinding(result, engine.CodeApprovalOutOfScope, why)
	}
	result.Decision = engine.Allow
	result.Findings = []engine.Finding{finding(engine.CodeApprovalGranted, "what it was held for was approved")}
	return result
}

// withFinding returns result with one more finding. Its decision is at least as strict as the
// outcome of that finding.
func withFinding(result engine.Result, code engine.Code, text string) engine.Result {
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
