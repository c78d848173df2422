package approval

import (
	"context"
	"errors"

	"writ/engine"
	"writ/storage"
	"writ/storage/registry"
)

// Filter selects approvals; a zero field selects all.
type Filter struct {
	Status   Status
	AgentIDs []string // any of these
	PolicyID string
}

// List returns org's approvals that f selects, newest first. A page may hold less than its
// limit, even nothing, though more follows: only an empty next ends the list.
func (d *Desk) List(ctx context.Context, org string, f Filter, p storage.Page) (all []*Approval, next string, err error) {
	var held []*storage.Record
	if f.Status == Pending || f.Status == Approved {
		held, next, err = d.waitingOnes(ctx, org, f, p)
	} else {
		held, next, err = d.cfg.Store.ListRecords(ctx, org, storage.Filter{Decision: engine.ApprovalRequired, AgentIDs: f.AgentIDs, PolicyID: f.PolicyID}, p)
	}
	if err != nil {
		return nil, "", err
	}
	now := d.Now()
	for _, r := range held {
		a, err := d.of(ctx, r)
		if err != nil {
			return nil, "", err
		}
		if f.Status == "" || a.Status(now) == f.Status {
			all = append(all, a)
		}
	}
	return all, next, nil
}

// waitingOnes returns the held decisions that have details. Approvals whose verdict is not
// in their details yet, after a crash, are found among the pending ones.
func (d *Desk) waitingOnes(ctx context.Context, org string, f Filter, p storage.Page) (held []*storage.Record, next string, err error) {
	waiting := registry.WaitingFilter{Approved: f.Status == Approved, AgentIDs: f.AgentIDs, PolicyID: f.PolicyID}
	details, next, err := d.docs.ListWaiting(ctx, org, waiting, p)
	if err != nil {
		return nil, "", err
	}
	for _, kept := range details {
		r, err := d.cfg.Ledger.Held(ctx, org, kept.DecisionID)
		switch {
		case err == nil:
			held = append(held, r)
		case !errors.Is(err, storage.ErrNotFound): // its decision is being committed, or never was
			return nil, "", err
		}
	}
	return held, next, nil
}
