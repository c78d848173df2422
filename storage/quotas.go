package storage

import "context"

// Quotas hands out the places of the months' meters. Every decision that is stored
// takes one, so that a handle that has places may count without asking for each
// decision, and all handles together never count further than a limit.
type Quotas interface {
	// Grant gives this handle up to want places of org's meter of month, as far as
	// those that were decided and those that any handle holds stay within limit. It
	// returns how many, 0 where the limit is reached. It may give fewer than there
	// are, so that other handles get some, but not none.
	//
	// A record that is appended uses one of its handle's places up: who appends has
	// one for each. The places that a handle held when it was lost come back, and it gets
	// ErrConflict instead of more.
	Grant(ctx context.Context, org string, month Month, limit, want int64) (granted int64, err error)
	// Return gives back n of the places that this handle holds, at once or, where the
	// store can't commit, once it can. After an error it may
	// have done so: they are not to be used any more, nor returned again.
	Return(ctx context.Context, org string, month Month, n int64) error
	// Metered returns how many distinct intents org had decided in month, counted
	// over all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f for each organization that had an intent decided in month,
	// once, with what Metered returns for it. Their order is the backend's. f may
	// call the store; its error ends the walk and is returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
}
