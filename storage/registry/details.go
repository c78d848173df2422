package registry

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"writ/storage"
)

// PutDetails stores the details of decisions. It must return before the decisions are
// committed: a row never has the digest of what was not kept.
func (r *Registry) PutDetails(ctx context.Context, org string, all ...*storage.Details) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		for _, d := range all {
			if err := storage.AllDetails.Put(tx, org, d); err != nil {
				return err
			}
		}
		return nil
	})
}

// Details returns the details of a decision, or storage.ErrNotFound where it has
// none or they were erased.
func (r *Registry) Details(ctx context.Context, org, decisionID string) (*storage.Details, error) {
	return get(ctx, r, storage.AllDetails, org, decisionID)
}

// EraseDetails removes the details of decisions with their salts, where there are any.
func (r *Registry) EraseDetails(ctx context.Context, org string, decisionIDs ...string) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		for _, id := range decisionIDs {
			if err := tx.Delete(storage.DetailsKind, org, id); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// MarkApproved has the details of a decision say until when it is approved, if there are
// any.
func (r *Registry) MarkApproved(ctx context.Context, org, decisionID string, until time.Time) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		d, err := storage.AllDetails.Get(tx, org, decisionID)
		if errors.Is(err, storage.ErrNotFound) || err == nil && d.ApprovedUntil.Equal(until) {
			return nil
		}
		if err != nil {
			return err
		}
		d.ApprovedUntil = until
		return storage.AllDetails.Put(tx, org, d)
	})
}

// WaitingFilter selects details of decisions that can still be decided about or used.
type WaitingFilter struct {
	Approved bool     // those that are approved rather than those that are pending
	AgentIDs []string // any of these, if there are any
	PolicyID string   // of this policy, unless it is empty
}

// waitingList tells cursors of ListWaiting from others.
const waitingList = 'w'

// ListWaiting returns the details of org's decisions that f selects, newest first. Those
// past their deadline are among them until they are erased.
func (r *Registry) ListWaiting(
	ctx context.Context, org string, f WaitingFilter, p storage.Page,
) (items []*storage.Details, next string, err error) {
	q := storage.Query{Org: org, Index: storage.ByWaiting}
	switch {
	case len(f.AgentIDs) == 1:
		q.Index, q.Prefix = storage.ByAgent, storage.Text(f.AgentIDs[0])
	case f.PolicyID != "":
		q.Index, q.Prefix = storage.ByPolicy, storage.Text(f.PolicyID)
	}
	q.Prefix = append(q.Prefix, storage.Waiting(f.Approved)...)
	return page(ctx, r, storage.AllDetails, waitingList, q, p, math.MaxInt, f.selects)
}

func (f *WaitingFilter) selects(d *storage.Details) bool {
	return (len(f.AgentIDs) == 0 || slices.Contains(f.AgentIDs, d.AgentID)) &&
		(f.PolicyID == "" || f.PolicyID == d.PolicyID)
}

// Lapsed are details past their deadline, and their organization.
type Lapsed struct {
	Org string
	*storage.Details
}

// Lapsed returns details whose deadline is before a time, at most max of an organization,
// soonest first. It looks at one key of each other organization.
func (r *Registry) Lapsed(ctx context.Context, before time.Time, max int) (all []Lapsed, err error) {
	return read(ctx, r, func(tx storage.Reader) (all []Lapsed, err error) {
		from := storage.Query{Kind: storage.DetailsKind, Every: true, Bare: true}
		for {
			org, found := "", false
			if err := tx.Scan(from, func(_ []byte, d storage.Document) (bool, error) {
				org, found = d.Org, true
				return false, nil
			}); err != nil || !found {
				return all, err
			}
			n := 0
			err := storage.AllDetails.Scan(tx, storage.Query{Org: org, Index: storage.ByExpiry},
				func(_ []byte, d *storage.Details) (bool, error) {
					if !d.Deadline().Before(before) || n == max {
						return false, nil
					}
					n++
					all = append(all, Lapsed{org, d})
					return true, nil
				})
			if err != nil {
				return nil, err
			}
			from.Org, from.From = org, []byte{0xff} // after every id
		}
	})
}
