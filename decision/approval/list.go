package approval

import (
	"context"
	"errors"
	"slices"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// Filter selects approvals. A zero field selects all.
type Filter struct {
	Status      Status
	AgentIDs    []string // any of these
	PolicyID    string
	IntentID    string
	ActionTypes []string // any of these
}

// held selects the rows of held decisions. It does not select by Status.
func (f *Filter) held() storage.Filter {
	return storage.Filter{
		Decision: engine.ApprovalRequired, AgentIDs: f.AgentIDs, PolicyID: f.PolicyID, IntentID: f.IntentID,
		ActionTypes: f.ActionTypes,
	}
}

// List returns the approvals of org that f selects, newest first. A page may have fewer
// approvals than its limit, or none, although more follow. The list ends only when next is
// empty.
func (d *Desk) List(
	ctx context.Context, org string, f Filter, p storage.Page,
) (all []*Approval, next string, err error) {
	if f.Status == Pending || f.Status == Approved {
		all, next, err = d.withDetails(ctx, org, f, p)
	} else {
		all, next, err = d.ofHistory(ctx, org, f, p)
	}
	if err != nil {
		return nil, "", err
	}
	now := d.Now()
	return slices.DeleteFunc(all, func(a *Approval) bool {
		return f.Status != "" && a.Status(now) != f.Status
	}), next, nil
}

// ofHistory lists the approvals of the held decisions in the history.
func (d *Desk) ofHistory(
	ctx context.Context, org string, f Filter, p storage.Page,
) (all []*Approval, next string, err error) {
	held, next, err := d.cfg.Store.ListRecords(ctx, org, f.held(), p)
	for _, r := range held {
		a, findErr := d.find(ctx, r)
		if err = errors.Join(err, findErr); err != nil {
			break
		}
		all = append(all, a)
	}
	return all, next, err
}

// withDetails lists the approvals that have details. After a crash, the details of an approved
// decision may still say that it is pending.
func (d *Desk) withDetails(
	ctx context.Context, org string, f Filter, p storage.Page,
) (all []*Approval, next string, err error) {
	waiting := registry.WaitingFilter{Approved: f.Status == Approved, AgentIDs: f.AgentIDs, PolicyID: f.PolicyID}
	details, next, err := d.docs.ListWaiting(ctx, org, waiting, p)
	if err != nil {
		return nil, "", err
	}
	selected := f.held()
	for _, kept := range details {
		r, err := d.cfg.Ledger.Held(ctx, org, kept.DecisionID)
		if errors.Is(err, storage.ErrNotFound) {
			continue // the decision is not committed yet, or never was
		}
		if err != nil {
			return nil, "", err
		}
		if !selected.Selects(r) {
			continue
		}
		a, err := d.of(ctx, r, kept)
		if err != nil {
			return nil, "", err
		}
		all = append(all, a)
	}
	return all, next, nil
}
