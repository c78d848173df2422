package decision

import (
	"context"
	"errors"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// ErrNoApproval means that the id of an approval is not the id of a held decision of the
// organization.
var ErrNoApproval = errors.New("there is no such approval")

// findApproval loads the approval that a request names, with its status at the time of the
// decision. findApproval must run before recall. If the approval is used in between, recall
// finds the decision that used it.
func (b *batch) findApproval(ctx context.Context, it *item) (err error) {
	if it.entry.ApprovalID == "" {
		return nil
	}
	defer condition.Paused(b.who.Slot)()
	it.approval, err = b.Approvals.Find(ctx, b.who.Organization, it.entry.ApprovalID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return ErrNoApproval
	case err != nil:
		return err
	case it.approval.Held.IntentDigest != ledger.IntentDigest(it.entry.Intent):
		return ledger.ErrIntentConflict
	}
	it.status = it.approval.Status(it.entry.Reservation.Time())
	return nil
}

// redeemedBefore returns ledger.ErrRaced if one of the earlier requests names the same approval
// as req. The decision of that request is then also the answer to req.
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
