package storage

import "context"

// Quotas grants places in the months' meters. Every stored decision uses one up. A handle
// that holds places counts decisions without a request for each, and all handles together
// never exceed a limit.
type Quotas interface {
	// Grant gives this handle up to want places of org's meter of month, so that the
	// decided intents and the places held by all handles stay within limit. It returns how
	// many, 0 if the limit is reached. It may give fewer than are left, to leave some for
	// other handles, but not 0.
	//
	// Appending a record uses up one of the handle's places; callers must hold one for
	// each. The places of a handle that is given up become free, and that handle gets
	// ErrConflict instead of more.
	Grant(ctx context.Context, org string, month Month, limit, want int64) (granted int64, err error)
	// Return gives back n of the places that this handle holds, at once or, while the
	// store cannot commit, later. After an error the places may have been returned: they
	// must be neither used nor returned again.
	Return(ctx context.Context, org string, month Month, n int64) error
	// Metered returns how many distinct intents org had decided in month, counted
	// over all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f once for each organization with a decision in month, in any order,
	// with what Metered returns. f may call the store; its error ends the walk and is
	// returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
	// Windows returns where handles count together what rules count, nil for a store
	// that one process writes: that process counts by itself.
	Windows() Windows
}
