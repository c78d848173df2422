package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/storage"
	"writ/storage/receipt"
)

// Verdict is what became of a decision that was held for approval. The first of
// approved, rejected and expired stands, and the first of used and revoked ends an
// approval, whoever races: each of the two is one entry.
//
// Its entry is the canonical JSON of
//
//	{approval_id, approved_until, comment, decided_at, decided_by, details_digest, entry,
//	 intent_digest, organization_id, used_by, verdict}
//
// without the members that are empty; times are RFC 3339 in UTC. Its key is approval_id
// or, where it ends an approval, approval_id followed by "/end".
type Verdict struct {
	OrganizationID string `json:"organization_id"`
	ApprovalID     string `json:"approval_id"` // the id of the decision that was held
	Verdict        string `json:"verdict"`     // one of the constants below
	IntentDigest   string `json:"intent_digest,omitzero"`
	// DetailsDigest is of what was approved: see [storage.Details].
	DetailsDigest string    `json:"details_digest,omitzero"`
	DecidedAt     time.Time `json:"decided_at,omitzero"`
	// DecidedBy is the credential of the approver, as [KeptCredential] has it.
	DecidedBy string `json:"decided_by,omitzero"`
	Comment   string `json:"comment,omitzero"` // scrubbed
	// ApprovedUntil is when what was approved can be used no longer.
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
	UsedBy        string    `json:"used_by,omitzero"` // the decision that the approval led to

	Receipt receipt.Inclusion `json:"-"`
}

// The verdicts.
const (
	Approved = "approved"
	Rejected = "rejected"
	Expired  = "expired" // nobody decided in time; signed when somebody asked for it
	Revoked  = "revoked" // it was approved and not used
	Used     = "used"    // the decision UsedBy has used it up
)

func (v *Verdict) ends() bool { return v.Verdict == Revoked || v.Verdict == Used }

func endKey(approvalID string) string { return approvalID + "/end" }

// entry returns the entry of v, which is not signed yet.
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

// Verdicts are the verdicts on a decision; each is nil where there is none.
type Verdicts struct {
	First *Verdict // approved, rejected or expired
	End   *Verdict // used or revoked
}

// Verdicts returns what was decided about a decision that was held. It is what a commit
// finds, not what it will find: only a commit decides a race.
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

// Judge makes v final and returns what stands: v, or the verdict that was first.
func (l *Ledger) Judge(ctx context.Context, v *Verdict) (*Verdict, error) {
	stands, err := l.append(ctx, v.entry())
	if err != nil {
		return nil, fmt.Errorf("committing a verdict: %w", err)
	}
	return ParseVerdict(stands[0])
}

// Held returns a decision that was held, or storage.ErrNotFound where it was not, is not
// there or was removed.
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

// Now returns the ledger's time, which no earlier decision or verdict of it is after.
func (l *Ledger) Now() time.Time {
	_, at := l.ids.next(l.cfg.Now())
	return at
}
