// Package storage is the contract between writ and the backends that keep its documents and
// history. A handle is an open [Store]. Some backends allow several handles on the same data.
// Package registry is above every backend and has the rules for policies, rules, agents, keys and
// subscriptions. The packages below are the backends. For every "must" of this package, storagetest
// has a subtest that each backend runs.
//
// Every method is safe for concurrent use. Every document belongs to one organization. A method
// that takes an organization must treat another organization's document as if it did not exist.
// Values that are passed in or returned must not be modified afterwards by either side.
//
// A write must be durable when its method returns nil. [Log.Append] names the exception. Every read
// that starts after the method has returned must see the write. A failed write must be done
// completely or not at all.
package storage

import (
	"context"
	"errors"
)

// Every backend translates its own errors into these errors. Any other error is a fault of the
// store, and the caller must refuse the request.
var (
	// ErrNotFound means that the organization has no such document.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the write contradicts the stored data. Examples are a policy
	// version that is not newer, an external id that is taken, and a head that does not extend
	// the chain.
	ErrConflict = errors.New("conflict")
	// ErrBadCursor means that Page.After is not a cursor that the same list
	// returned.
	ErrBadCursor = errors.New("bad cursor")
	// ErrUnknown marks an error of [Log.Append] after which the batch may or may not be stored.
	ErrUnknown = errors.New("it is not known whether it was stored")
	// ErrCorrupt marks the error of a read that finds changed or damaged data.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnavailable marks a lasting fault, such as a full disk. The store logs the begin of the
	// fault itself, so callers need not log the error.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrPast means that a snapshot reads a state which the store no longer keeps.
	ErrPast = errors.New("the state that is read is no longer kept: MongoDB keeps it for " +
		"minSnapshotHistoryWindowInSeconds")
)

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	What  string // the limited documents, such as "agents"
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }

// Store keeps all data of a deployment.
type Store interface {
	Documents
	History
	Counter
	Log
	Quotas
	Retention
	Importer

	// Healthy returns nil while the store can commit. Otherwise it returns the reason, which is
	// for operators and may name paths.
	Healthy(ctx context.Context) error
	// Close flushes and releases the store. No other method may be called after Close.
	Close() error
}
