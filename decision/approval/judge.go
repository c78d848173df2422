package approval

import (
	"cmp"
	"context"
	"errors"
	"time"

	"writ.example/writ/storage/ledger"
)

// These are the refusals of [Desk.Judge].
var (
	// ErrDecided means that another verdict stands or that the approval was used.
	ErrDecided = errors.New("the approval was decided otherwise")
	// ErrExpired means that the approval was not decided or not revoked in time.
	ErrExpired = errors.New("the approval has expired")
	// ErrPending means that the approval cannot be revoked, because it was not approved.
	ErrPending = errors.New("the approval is pending: there is nothing to revoke")
	// ErrSelf means that the credential itself, or one of the same family, asked for the
	// decision.
	ErrSelf = errors.New("whoever asked can't approve it")
)

// Ruling is the decision of an approver about an approval.
type Ruling struct {
	// Verdict is ledger.Approved, ledger.Rejected or ledger.Revoked.
	Verdict string
	Comment string
	// For is how long the approval is valid, at most [MaxTTL] / 3. Zero means the TTL of the
	// desk.
	For time.Duration
}

// Approver is the credential of the person who decides.
type Approver struct {
	// Credential has the form of [ledger.Entry] and is not scrubbed. Kept is the same text,
	// scrubbed.
	Credential, Kept string
}

// Judge decides about an approval and returns the approval in its new state. If the same
// verdict stands already, Judge changes nothing and returns the approval with the first
// verdict. The errors are the refusals above, storage.ErrNotFound and the errors of the ledger.
func (d *Desk) Judge(ctx context.Context, org, id string, by Approver, r Ruling) (*Approval, error) {
	a, err := d.Find(ctx, org, id)
	if err != nil {
		return nil, err
	}
	if related, err := d.Related(ctx, a.Held, by.Credential); err != nil {
		return nil, err
	} else if related {
		return nil, ErrSelf
	}
	now := d.Now()
	if again, err := a.permits(r.Verdict, now); again || err != nil {
		return a, err
	}
	at := now
	if at.Before(a.Held.DecidedAt) {
		at = a.Held.DecidedAt
	}
	v := a.verdict(r.Verdict, at)
	v.DecidedBy, v.Comment = by.Kept, d.cfg.Scrub.Text(r.Comment)
	if r.Verdict == ledger.Approved {
		v.ApprovedUntil = v.DecidedAt.Add(cmp.Or(r.For, min(d.cfg.TTL, MaxTTL/3)))
	}
	stands, err := d.cfg.Ledger.Judge(ctx, v)
	if err != nil {
		return nil, err
	}
	d.afterVerdict(ctx, stands)
	if stands.Verdict != ledger.Approved {
		a.Details = nil
	}
	if a.Verdicts, err = d.cfg.Ledger.Verdicts(ctx, org, id); err != nil {
		return nil, err
	}
	if stands.Verdict != r.Verdict {
		return a, ErrDecided
	}
	if stands.DecidedBy == v.DecidedBy && stands.DecidedAt.Equal(v.DecidedAt) { // the verdict that stands is v itself
		d.metrics.judged(r.Verdict)
	}
	return a, nil
}

// permits returns an error if the verdict cannot be given now. It returns again as true if the
// same verdict was given before.
func (a *Approval) permits(verdict string, now time.Time) (again bool, err error) {
	status := a.Status(now)
	switch {
	case verdict == ledger.Revoked && a.End != nil, verdict != ledger.Revoked && a.First != nil &&
		a.First.Verdict != ledger.Expired:
		if a.End != nil && a.End.Verdict == verdict || verdict != ledger.Revoked && a.First.Verdict == verdict {
			return true, nil
		}
		return false, ErrDecided
	case status == Expired:
		return false, ErrExpired
	case verdict == ledger.Revoked && status == Pending:
		return false, ErrPending
	case verdict == ledger.Revoked && status != Approved:
		return false, ErrDecided
	}
	return false, nil
}

// afterVerdict updates the details after a verdict was committed, and wakes the callers of
// Await. A crash before afterVerdict loses nothing, because lists and sweeps read the verdicts.
func (d *Desk) afterVerdict(ctx context.Context, v *ledger.Verdict) {
	if v.Verdict == ledger.Approved {
		if err := d.docs.MarkApproved(context.WithoutCancel(ctx), v.OrganizationID, v.ApprovalID,
			v.ApprovedUntil); err != nil {
			d.cfg.Log.WarnContext(ctx, "an approval stands and is not listed as approved yet", "approval", v.ApprovalID,
				"error", err)
		}
	} else {
		d.Drop(ctx, v.OrganizationID, v.ApprovalID)
	}
	d.tell(name{v.OrganizationID, v.ApprovalID})
}
