package storage

import (
	"context"
	"sync"
)

// EverythingChanged is the kind of a Change that stands for any number of changes. After such a
// Change every earlier read may be out of date.
const EverythingChanged Kind = '*'

// Change says that a document was written or removed.
type Change struct {
	Revision uint64 `json:"revision"` // in the order of Org
	Kind     Kind   `json:"kind"`
	Org      string `json:"org"`
	// ID is the id of the document in its organization. A policy version has the id of its policy.
	// Alias is a second name under which the document can be found.
	ID    string `json:"id"`
	Alias string `json:"alias,omitzero"`
	// Digest is the SHA-256 of the document's value. It is zero if the document was removed.
	Digest [32]byte `json:"digest"`
	// Actor is the actor from [WithActor], or empty.
	Actor string `json:"actor,omitzero"`
}

type actorKey struct{}

// WithActor returns a context whose updates are recorded as made by actor. An actor is a
// credential in the form of [Record.Credential], or the name of a part of writ.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns the actor that was given to [WithActor], or "".
func Actor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

type urgentKey struct{}

// WithUrgency returns a context whose updates a backend may commit before others that wait. It is for kill switches,
// whose callers wait until nothing more is allowed.
func WithUrgency(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

// Urgent reports whether ctx is from [WithUrgency].
func Urgent(ctx context.Context) bool {
	urgent, _ := ctx.Value(urgentKey{}).(bool)
	return urgent
}

// Watchers are the functions that a handle calls for each change.
type Watchers struct {
	mu sync.RWMutex
	by map[*func(Change)]struct{}
}

// Add makes Tell call f until stop is called. stop waits until no call of f is running.
func (w *Watchers) Add(f func(Change)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[*func(Change)]struct{})
	}
	w.by[&f] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, &f)
	}
}

// Tell calls every watcher with c.
func (w *Watchers) Tell(c Change) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for f := range w.by {
		(*f)(c)
	}
}
