package approval

import (
	"context"
	"errors"
	"time"

	"writ.example/writ/storage"
)

const (
	// sweepEvery is the interval of sweeps. After settle has passed, expired details are kept
	// no longer than this.
	sweepEvery = 10 * time.Second
	// sweepMost is the largest number of details that one write erases.
	sweepMost = 250
	// settle is the time between the deadline of details and their sweep. It is longer than the
	// difference between the clocks of any two replicas.
	settle = storage.MaxSkew
)

// Run sweeps at intervals until ctx ends: see [Desk.Sweep].
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	failed := false
	for {
		err := d.Sweep(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			d.cfg.Log.ErrorContext(ctx, "expired details of held decisions could not be erased", "error",
				err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sweep erases the details of approvals that have ended, and of decisions that were never
// committed. Only the leading process sweeps.
func (d *Desk) Sweep(ctx context.Context) error {
	for d.cfg.Store.Leads() {
		lapsed, err := d.docs.Lapsed(ctx, d.Now().Add(-settle), sweepMost)
		if err != nil || len(lapsed) == 0 {
			return err
		}
		erase := make(map[string][]string)
		kept := 0
		var errs error
		for _, l := range lapsed {
			ended, err := d.ended(ctx, l.Org, l.Details)
			errs = errors.Join(errs, err)
			if !ended {
				kept++
				continue
			}
			erase[l.Org] = append(erase[l.Org], l.DecisionID)
		}
		for org, ids := range erase {
			errs = errors.Join(errs, d.docs.EraseDetails(ctx, org, ids...))
		}
		if errs != nil || kept == len(lapsed) || len(lapsed) < sweepMost {
			return errs
		}
	}
	return nil
}

// ended reports whether an approval past its deadline has ended. A decision that was approved
// has not ended. For such a decision, ended marks the details as approved.
func (d *Desk) ended(ctx context.Context, org string, kept *storage.Details) (bool, error) {
	a, err := d.Find(ctx, org, kept.DecisionID)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil // the decision was never committed, or retention has removed it
	}
	if err != nil {
		return false, err
	}
	switch a.Status(d.Now()) {
	case Pending:
		return false, nil
	case Approved:
		return false, d.docs.MarkApproved(ctx, org, kept.DecisionID, a.First.ApprovedUntil)
	case Expired:
		d.metrics.lapsed(a.Verdicts)
	}
	return true, nil
}
