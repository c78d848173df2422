package storage

import (
	"context"
	"math"
	"sync"
)

// EverythingChanged is the kind of a Change that stands for any number of them:
// all that was ever read may be out of date.
const EverythingChanged Kind = '*'

// Now is the revision after which Watch tells only what is still to come.
const Now uint64 = math.MaxUint64

// Change says that a document was written or removed.
type Change struct {
	Revision uint64 `json:"revision"`
	Kind     Kind   `json:"kind"`
	Org      string `json:"org"`
	// ID is the document's as its organization knows it: of a version of a policy,
	// the policy's. Alias is another name that the document is asked for by.
	ID    string `json:"id"`
	Alias string `json:"alias,omitzero"`
	// Digest is the SHA-256 of the document's value, zeros where it was removed.
	Digest [32]byte `json:"digest"`
	// Actor is who asked for it, as [WithActor] said; empty where nobody did.
	Actor string `json:"actor,omitzero"`
}

// actorKey is the key of the actor in a context.
type actorKey struct{}

// WithActor returns a context under which updates are made for actor: a credential
// as the history names it, or what else asked for them.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns what WithActor was given, or "".
func Actor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// Watchers are the functions that a handle calls for changes.
type Watchers struct {
	mu   sync.RWMutex
	next int
	by   map[int]func(Change)
}

// Add has Tell call f until stop, which returns when no call is under way.
func (w *Watchers) Add(f func(Change)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[int]func(Change))
	}
	id := w.next
	w.next++
	w.by[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, id)
	}
}

// Tell calls every watcher. Changes come in the order in which it is called.
func (w *Watchers) Tell(c Change) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, f := range w.by {
		f(c)
	}
}
