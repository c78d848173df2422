package storagetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Checks is a test with assertions that several test suites use.
type Checks struct{ *testing.T }

// Must ends the test if err is not nil. what names the failed step.
func (c Checks) Must(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s = %v, want nil", what, err)
	}
}

// WantErr reports an error if err is not want.
func (c Checks) WantErr(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s = %v, want %v", what, err, want)
	}
}

// WantSame reports a difference between documents. Times are equal if they are the same instant, an
// empty list equals nil, and revisions are ignored.
func (c Checks) WantSame(what string, got, want any) {
	c.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(engine.Stored{})); diff != "" {
		c.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// Heard collects the changes that a watcher receives.
type Heard struct {
	mu      sync.Mutex
	changes []storage.Change
}

// Add adds a change.
func (h *Heard) Add(c storage.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

// Take returns the changes since the last call.
func (h *Heard) Take() []storage.Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.changes
	h.changes = nil
	return c
}

// TakeNames returns what Take returns, without revisions and digests.
func (h *Heard) TakeNames() []storage.Change {
	changes := h.Take()
	for i := range changes {
		changes[i].Revision, changes[i].Digest = 0, [32]byte{}
	}
	return changes
}

// Hostile has organization ids that are easily confused. With a wrong encoding of keys, a store
// would let one of these organizations read another's documents.
var Hostile = []string{
	"a", "ab", "a\x00", "a\x00\x01", "a/", "a/b", "a:b", "a|b", "", "\x00", "\x00\x01a", "\x00\x00", "ÿ", "ÿÿ",
	"\U0010ffff", "a\x01", "A", " a", "a ", "á", "a\u0301", "p", "t", "%", "*", "..", "$ne", "org.id",
}

// PutSubscription stores or replaces s in a registry.
func PutSubscription(ctx context.Context, r interface {
	UpdateSubscription(context.Context, string, func(*storage.Subscription) bool) (*storage.Subscription, error)
}, s *storage.Subscription,
) error {
	_, err := r.UpdateSubscription(ctx, s.OrganizationID, func(stored *storage.Subscription) bool {
		*stored = *s
		return true
	})
	return err
}
