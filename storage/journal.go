package storage

import (
	"context"
	"time"
)

// Journal has what was allowed in the order of the commits, and keeps values that are derived from it. A store
// that a single process writes implements it.
type Journal interface {
	// Position returns the position of the last durable commit. Later commits have greater positions.
	Position(ctx context.Context) (uint64, error)
	// Allowed calls f for the rows of an organization that allow, were decided at from or later, and were
	// committed up to a position, in any order. They have no receipts. A row has its settlement if that was
	// committed up to the position, too. Allowed calls yield often.
	Allowed(ctx context.Context, org string, from time.Time, upTo uint64, yield func(), f func(*Record) error) error
	// Since calls f for the rows that allow and were committed after a position, up to another, in order, and for
	// the settlements of such rows. A row has no settlement when it was committed, and settled is false. The
	// settlement comes as the row with it, and settled is true. Since leaves out the organizations that are not
	// wanted. It returns ErrConflict if an import was taken back in between.
	Since(ctx context.Context, after, upTo uint64, wanted func(org string) bool, f func(r *Record, settled bool)) error
	// Derived returns a value that Derive stored, or ErrNotFound.
	Derived(key []byte) ([]byte, error)
	// Derive stores values by their keys, after it has dropped all values with keys in ranges. It does all or
	// nothing. A crash may lose the last calls, but no call before one that it keeps. If an operator accepts the
	// loss of commits, all values are lost.
	Derive(ctx context.Context, d Derivation) error
}

// Derivation is a change of derived values. A key's range includes its start and excludes its end.
type Derivation struct {
	Set  map[string][]byte
	Drop [][2]string
}
