package mongodb

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
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

// Healthy implements storage.Store.
func (s *Store) Healthy(ctx context.Context) error {
	return cmp.Or(ctx.Err(), s.health.trouble(beating))
}
