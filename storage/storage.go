// Package storage is the contract between writ and the backends that keep its documents and
// history. The rules for policies, rules, agents, keys and subscriptions are in package registry,
// above every backend. Backends are in the packages below. Every "must" here has a subtest of its
// name in storagetest, which runs on each backend.
//
// Every method is safe for concurrent use. Every document belongs to one organization. A method
// that takes an organization must treat another organization's document exactly like a missing
// one. Values that are passed in or returned must not be modified afterwards by either side.
//
// A write must be durable when its method returns nil (but see [Log.Append] for decisions) and
// must be visible to every read that starts after that. A write that fails must be done
// completely or not at all.
package storage

import (
	"context"
	"errors"
)

// The errors every backend translates its own into. Anything else a method
// returns is a fault of the store: the caller must refuse.
var (
	// ErrNotFound means that the organization has no such document.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the write contradicts what is stored: a policy
	// version that is not newer, an external id that is taken, a head that does
	// not extend the chain.
	ErrConflict = errors.New("conflict")
	// ErrBadCursor means that Page.After is not a cursor that the same list
	// returned.
	ErrBadCursor = errors.New("bad cursor")
	// ErrUnknown marks an error of [Log.Append] after which nobody knows whether the
	// batch is stored.
	ErrUnknown = errors.New("it is not known whether it was stored")
	// ErrCorrupt marks an error of reading what is not as it was written.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnavailable marks a fault that the store itself has logged once for as long as it
	// lasts, such as a full disk. Callers need not log it.
	ErrUnavailable = errors.New("the store is unavailable")
)

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	What  string // the limited documents, such as "agents"
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }

// Store is everything a deployment keeps.
type Store interface {
	Documents
	History
	Log
	Quotas
	Retention
	Importer

	// Healthy returns nil while the store can commit, otherwise why it cannot.
	// The reason is for operators and may name paths.
	Healthy(ctx context.Context) error
	// Close flushes and releases the store. No other method may be called after.
	Close() error
}
