package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"writ.example/writ/storage"
)

// Frozen reads the rows of a store as they were when it was opened, while the store goes on. Its other reads are of
// now.
type Frozen struct {
	reads
	rowView
	state *pebble.Snapshot
}

// Freeze opens a Frozen. Until it is closed no segment is rewritten, so it must be closed soon, and before the store.
// If a segment is being rewritten, Freeze returns an error with [storage.ErrUnavailable].
func (s *Store) Freeze(ctx context.Context) (*Frozen, error) {
	if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
		return nil, err
	}
	tip, err := s.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if !s.rewrites.TryRLock() { // a wait could take long
		return nil, fmt.Errorf("%w: rows are being moved, try again", storage.ErrUnavailable)
	}
	f := &Frozen{reads: s}
	s.writes.Lock()
	s.commits.Lock()
	f.state = s.db.NewSnapshot()
	f.rowView = rowView{store: s, chain: tip.ID, state: f.state, upTo: s.log.Last()}
	s.commits.Unlock()
	s.writes.Unlock()
	return f, nil
}

// Close lets segments be rewritten again.
func (f *Frozen) Close() error {
	defer f.store.rewrites.RUnlock()
	return f.state.Close()
}
