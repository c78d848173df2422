package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Verdict is a verdict on a decision that was held for approval. A decision has at most
// two verdicts, and each is an entry. The first verdict is approved, rejected or expired.
// Only an approved decision has a second one, used or revoked, which ends the approval.
//
// Its entry is the canonical JSON of
//
//	{approval_id, approved_until, comment, decided_at, decided_by, details_digest, entry,
//	 intent_digest, organization_id, used_by, verdict}
//
// without empty members. Times are RFC 3339 in UTC. Its key is approval_id, followed by
// "/end" if it ends an approval.
type Verdict struct {
	OrganizationID string `json:"organization_id"`
	ApprovalID     string `json:"approval_id"` // the id of the decision that was held
	Verdict        string `json:"verdict"`     // one of the constants below
	IntentDigest   string `json:"intent_digest,omitzero"`
	// DetailsDigest is the digest of the approved [storage.Details].
	DetailsDigest string    `json:"details_digest,omitzero"`
	DecidedAt     time.Time `json:"decided_at,omitzero"`
	// DecidedBy is the credential of the approver, in the form of [KeptCredential].
	DecidedBy string `json:"decided_by,omitzero"`
	Comment   string `json:"comment,omitzero"` // scrubbed
	// ApprovedUntil is when the approval ends if it is not used.
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
	UsedBy        string    `json:"used_by,omitzero"` // the id of the decision that used the approval

	Receipt receipt.Inclusion `json:"-"`
}

// The verdicts.
const (
	Approved = "approved"
	Rejected = "rejected"
	Expired  = "expired" // nobody decided in time
	Revoked  = "revoked" // revoked after it was approved and before it was used
	Used     = "used"    // used by the decision UsedBy
)

func (v *Verdict) ends() bool { return v.Verdict == Revoked || v.Verdict == Used }

func endKey(approvalID string) string { return approvalID + "/end" }

// entry returns the unsigned entry of v.
func (v Verdict) entry() *storage.Entry {
	key := v.ApprovalID
	if v.ends() {
		key = endKey(key)
	}
	v.DecidedAt, v.ApprovedUntil = v.DecidedAt.UTC(), v.ApprovedUntil.UTC()
	return entryOf(storage.VerdictEntry, v.OrganizationID, key, v)
}

// ParseVerdict reads the entry of a verdict.
func ParseVerdict(e *storage.Entry) (*Verdict, error) {
	v, err := parseBody(e, Verdict.entry)
	v.Receipt = e.Inclusion
	return &v, err
}

// Verdicts are the verdicts on a decision. Each is nil if it was not given.
type Verdicts struct {
	First *Verdict // approved, rejected or expired
	End   *Verdict // used or revoked
}

// Verdicts returns the verdicts on a decision that was held. Another verdict may be given
// at any time. Only a commit decides which verdict is first.
func (l *Ledger) Verdicts(ctx context.Context, org, approvalID string) (v Verdicts, err error) {
	if v.First, err = l.verdict(ctx, org, approvalID); v.First != nil && err == nil {
		v.End, err = l.verdict(ctx, org, endKey(approvalID))
	}
	return v, err
}

func (l *Ledger) verdict(ctx context.Context, org, key string) (*Verdict, error) {
	e, err := l.cfg.Store.Entry(ctx, org, storage.VerdictEntry, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking up a verdict: %w", err)
	}
	return ParseVerdict(e)
}

// Judge makes v final. It returns the stored verdict: v, or an earlier one.
func (l *Ledger) Judge(ctx context.Context, v *Verdict) (*Verdict, error) {
	final, err := l.append(ctx, v.entry())
	if err != nil {
		return nil, fmt.Errorf("committing a verdict: %w", err)
	}
	return ParseVerdict(final[0])
}

// Held returns a decision that was held. Its error is storage.ErrNotFound if there is no
// such decision, or if it was not held.
func (l *Ledger) Held(ctx context.Context, org, decisionID string) (*storage.Record, error) {
	r, err := l.cfg.Store.Record(ctx, org, decisionID)
	if err == nil && !r.Held() {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("looking up a held decision: %w", err)
	}
	return r, nil
}

// Now returns the ledger's time. It is not before the time of any earlier decision or
// verdict of this ledger.
func (l *Ledger) Now() time.Time {
	_, at := l.ids.next(l.cfg.Now())
	return at
}
