package registry

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"writ.example/writ/storage"
)

// PutDetails stores the details of decisions. Commit the decisions only after it has returned: a
// row must not have the digest of details that are not stored.
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

// Details returns the details of a decision. It returns storage.ErrNotFound if they are missing or
// erased.
func (r *Registry) Details(ctx context.Context, org, decisionID string) (*storage.Details, error) {
	return get(ctx, r, storage.AllDetails, org, decisionID)
}

// EraseDetails removes the details of decisions, with the salts of the details. It ignores missing
// details.
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

// MarkApproved sets ApprovedUntil of a decision's details. It ignores missing details.
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

// WaitingFilter selects details of held decisions. A pending decision waits for an approval. An
// approved decision waits for its use.
type WaitingFilter struct {
	Approved bool     // true: approved decisions; false: pending decisions
	AgentIDs []string // decisions of any of these agents; empty: of all agents
	PolicyID string   // decisions under this policy; empty: under all policies
}

// waitingList is the first byte of ListWaiting's cursors.
const waitingList = 'w'

// ListWaiting returns the details of org's decisions that f selects, newest first. Details past
// their deadline are listed until they are erased.
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

// Lapsed has details whose deadline has passed, and their organization.
type Lapsed struct {
	Org string
	*storage.Details
}

// Lapsed returns the details whose deadline is before the given time. For each organization it
// returns at most max details, the earliest deadline first. An organization without such details
// costs one read of one key.
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
			from.Org, from.From = org, []byte{0xff} // sorts after every id
		}
	})
}
