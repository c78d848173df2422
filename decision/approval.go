package decision

import (
	"context"
	"errors"
	"slices"
	"time"

	"writ/approval"
	"writ/engine"
	"writ/ledger"
	"writ/storage"
)

// ErrNoApproval means that no decision of the organization was held under the id of an
// approval.
var ErrNoApproval = errors.New("there is no such approval")

// under returns the approval that a request names and its status at a time, nil where it
// names none. It is read before the decision that it led to is looked for: an approval
// that was used by then has led to one.
func (b *batch) under(ctx context.Context, req Request, at time.Time) (*approval.Approval, approval.Status, error) {
	if req.ApprovalID == "" {
		return nil, "", nil
	}
	if b.cfg.Approvals == nil {
		return nil, "", ErrNoApproval
	}
	a, err := b.cfg.Approvals.Find(ctx, b.who.Organization, req.ApprovalID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, "", ErrNoApproval
	case err != nil:
		return nil, "", err
	case a.Held.IntentDigest != ledger.IntentDigest(req.Intent):
		return nil, "", ledger.ErrIntentConflict
	}
	return a, a.Status(at), nil
}

// hold returns the digest of what an approver needs of an intent, which is kept before
// the decision is committed. It is empty where nothing is held.
func (b *batch) hold(in *engine.Intent, t *ledger.Reservation, rules *engine.RuleSet, result engine.Result) string {
	if b.cfg.Approvals == nil || result.Decision != engine.ApprovalRequired {
		return ""
	}
	details := b.cfg.Approvals.Details(in, t, result, rules)
	b.held = append(b.held, details)
	return details.Digest()
}

// drop erases what was kept of entries that do not stand, all where stand is nil, and of
// approvals that those which stand have ended.
func (b *batch) drop(ctx context.Context, stand []ledger.Outcome) {
	if b.cfg.Approvals == nil {
		return
	}
	var ids []string
	for n, out := range stand {
		if v := b.entries[n].Verdict; v != nil && out.Err == nil && !out.Replayed {
			b.cfg.Approvals.Ended(v)
			ids = append(ids, v.ApprovalID)
		}
	}
	for _, kept := range b.held {
		stood := func(out ledger.Outcome) bool { return out.Err == nil && out.Record.DecisionID == kept.DecisionID }
		if !slices.ContainsFunc(stand, stood) {
			ids = append(ids, kept.DecisionID)
		}
	}
	b.cfg.Approvals.Drop(ctx, b.who.Organization, ids...)
}

// redeemedBefore returns ledger.ErrRaced if one of earlier is for the same intent under the
// same approval: what comes of that is what req is answered with.
func redeemedBefore(earlier []Request, req Request) error {
	if req.ApprovalID == "" {
		return nil
	}
	for _, e := range earlier {
		if e.ApprovalID == req.ApprovalID {
			return ledger.ErrRaced
		}
	}
	return nil
}
