package main

import (
	"context"
	"time"

	"writ/storage"
	"writ/storage/registry"
)

// sweeperActor is who removes sessions, as the history of changes has it.
const sweeperActor = "sweeper"

// sweepSessions removes an organization's sessions that expired a day before a time.
func (n *node) sweepSessions(ctx context.Context, org string, at time.Time) (int, error) {
	return registry.New(n.store).SweepSessions(storage.WithActor(ctx, sweeperActor), org, at)
}
