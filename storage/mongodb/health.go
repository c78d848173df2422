package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"writ.example/writ/storage"
)

// health records which activities fail. It logs only when an activity begins or stops failing.
type health struct {
	log *slog.Logger

	mu       sync.Mutex
	troubles map[string]error
}

// The activities that can fail.
const (
	// beating is the regular write to a majority. If it fails, no commit is possible.
	beating = "writing to a majority"
	// streaming is the reading of changes. If it fails, callers bypass their caches.
	streaming = "the stream of changes"
	// passing is the age of the changes that the stream passes. While it fails, callers bypass their caches.
	passing = "the age of the stream of changes"
	// settling gives up silent handles. While it fails, kill switches wait.
	settling = "giving up a silent replica"
	// keeping looks after the collections.
	keeping = "keeping the collections"
	// indexing builds indexes. While it fails, operations that need them are refused.
	indexing = "building an index"
	// counting adds decisions to the meters. If it fails, reads of a meter take longer.
	counting = "counting decisions"
)

// report records the result of an activity.
func (h *health) report(doing string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch was := h.troubles[doing]; {
	case err != nil && was == nil:
		h.log.Error("the MongoDB store has a fault", "in", doing, "error", err)
	case err == nil && was != nil:
		h.log.Info("the MongoDB store has recovered", "in", doing)
	}
	h.troubles[doing] = err
}

func (h *health) trouble(doing string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.troubles[doing]
}

// maxAhead is how far the clock of a healthy process may be from the primary's. Receipts are dated by it.
const maxAhead = 30 * time.Second

// compareClocks compares the clock of this process with the primary's, which has set when a slot expires.
// began is the time before this write. An answer that took long, as after a freeze, tells nothing.
func (s *Store) compareClocks(row *slotRow, began time.Time) {
	took := time.Since(began)
	if took > beatPatience {
		return
	}
	ahead := began.Add(took / 2).Sub(row.Until.Add(-lease))
	s.slot.ahead.Store(int64(ahead))
	s.metrics.ahead.Set(ahead.Seconds())
}

// checkClock returns an error if the clock of this process is far from the primary's.
func (s *Store) checkClock() error {
	ahead := time.Duration(s.slot.ahead.Load())
	if ahead.Abs() <= maxAhead {
		return nil
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	return fmt.Errorf("the clock of this replica is %v %s that of MongoDB's primary: set it, since it dates receipts",
		ahead.Abs().Round(time.Second), side)
}

// lateFor is for how long the stream may be late before it is told.
const lateFor = 10 * time.Second

// Late returns an error if the stream of changes passes the own beats, but has passed them late for a while.
func (s *Store) Late() error { return s.health.trouble(passing) }

func (s *Store) checkStream() error {
	age := s.FreshFor()
	streams := s.health.trouble(streaming) == nil
	if age <= storage.MaxAge || !streams {
		s.slot.fresh.Store(s.age())
		return nil
	}
	if s.ago(&s.slot.fresh) <= lateFor {
		return nil
	}
	return fmt.Errorf("the stream of changes is late by %v, so policies are read from MongoDB for each request, "+
		"and kill switches wait: on a sharded cluster set periodicNoopIntervalSecs to 1 on each shard, which is "+
		"10 otherwise",
		age.Round(100*time.Millisecond))
}

// Healthy implements storage.Store.
func (s *Store) Healthy(ctx context.Context) error {
	return cmp.Or(ctx.Err(), s.health.trouble(beating), s.checkClock())
}
