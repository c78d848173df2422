package mongodb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ/storage"
)

// health tracks the failing activities. It logs only when one begins or stops failing.
type health struct {
	log *slog.Logger

	mu       sync.Mutex
	troubles map[string]error
}

// The activities that can fail.
const (
	// beating is a write to a majority. Without it no commit is possible.
	beating = "writing to a majority"
	// streaming is receiving changes. Without it caches are read through.
	streaming = "the stream of changes"
	// counting moves decisions into the meters. Without it reading a meter costs more.
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
	return errors.Join(ctx.Err(), s.health.trouble(beating))
}

// available returns an error if no beat has succeeded for the timeout of an operation or
// a lease, whichever is longer: an operation that begins now would time out.
func (s *Store) available() error {
	if silence := s.ago(&s.slot.beaten); silence > max(s.timeout, lease) {
		return fmt.Errorf("%w: no write has come through to a majority for %v", storage.ErrUnavailable, silence.Round(100*time.Millisecond))
	}
	return nil
}

// ifAny returns err, the error of reading one document, unless there is none.
func ifAny(err error) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil
	}
	return err
}

// failed returns the error of an operation for callers of the store.
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
