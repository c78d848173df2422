package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"writ.example/writ/storage"
)

// Stop stops org, so that nothing is allowed, and returns its stop. If org is stopped already, nothing
// is written, and the stop is the earlier one. When Stop returns nil as its error, every replica denies.
func (r *Registry) Stop(ctx context.Context, org string, at time.Time) (*storage.Stop, error) {
	stop, err := change(storage.WithUrgency(ctx), r, org, func(tx storage.Tx) (*storage.Stop, error) {
		stop, err := storage.Stops.Get(tx, org, storage.StopID)
		if !errors.Is(err, storage.ErrNotFound) {
			return stop, err
		}
		stop = &storage.Stop{At: at, By: storage.Actor(ctx)}
		if err := storage.Stops.Put(tx, org, stop); err != nil {
			return nil, err
		}
		return stop, Tell(tx, org, at, storage.Event{
			Type: storage.OrganizationStopped, Subject: organizationSubject,
			Fact: at.UTC().Format(time.RFC3339Nano), At: at, Data: map[string]any{"stopped_by": stop.By},
		})
	})
	if err != nil {
		return nil, err
	}
	if err := r.switched(ctx); err != nil {
		return nil, err
	}
	return stop, nil
}

// Resume ends the stop of org, if there is one. When it returns nil, every replica decides again.
func (r *Registry) Resume(ctx context.Context, org string, at time.Time) error {
	err := r.update(storage.WithUrgency(ctx), org, func(tx storage.Tx) error {
		stop, err := tx.Get(storage.StopKind, org, storage.StopID)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		if err := tx.Delete(storage.StopKind, org, storage.StopID); err != nil {
			return err
		}
		return Tell(tx, org, at, storage.Event{
			Type: storage.OrganizationResumed, Subject: organizationSubject,
			Fact: strconv.FormatUint(stop.Revision, 10), At: at, Data: map[string]any{"resumed_by": storage.Actor(ctx)},
		})
	})
	if err != nil {
		return err
	}
	return r.switched(ctx)
}

// organizationSubject is the subject of the events about an organization's own status.
const organizationSubject = "organization/" + storage.StopID

// switched returns nil once every replica has heard of a switch that was committed before.
func (r *Registry) switched(ctx context.Context) error {
	if err := r.docs.Barrier(ctx); err != nil {
		return fmt.Errorf("waiting until every replica has heard of the switch: %w", err)
	}
	return nil
}

// Stopped returns the stop of org, or nil if org is active.
func (r *Registry) Stopped(ctx context.Context, org string) (*storage.Stop, error) {
	stop, err := get(ctx, r, storage.Stops, org, storage.StopID)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // an active organization has none
	}
	return stop, err
}
