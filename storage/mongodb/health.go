package mongodb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"writ/storage"
)

// health knows what is wrong. It logs when that changes, and only then.
type health struct {
	log *slog.Logger

	mu       sync.Mutex
	troubles map[string]error
}

// What can be wrong.
const (
	// beating is a write to a majority: without it nothing can be committed.
	beating = "writing to a majority"
	// streaming is hearing of changes: without it caches are read through.
	streaming = "the stream of changes"
	// counting moves decisions into the meters: without it more is read for a meter.
	counting = "counting decisions"
)

// report says how doing something has ended.
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
	return errors.Join(ctx.Err(), s.health.trouble(beating))
}

// available refuses once no beat has come through for as long as an operation may take,
// or for a lease if that is longer: what begins now would wait in vain.
func (s *Store) available() error {
	if silence := s.ago(&s.slot.beaten); silence > max(s.timeout, lease) {
		return fmt.Errorf("%w: no write has come through to a majority for %v", storage.ErrUnavailable, silence.Round(100*time.Millisecond))
	}
	return nil
}

// failed returns the error of an operation as a caller of the store gets it.
func failed(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case errors.Is(err, storage.ErrUnavailable):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", storage.ErrUnavailable, doing, err)
}
