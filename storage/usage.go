package storage

import "context"

// Usage tells what was metered.
type Usage interface {
	// Meters calls f for each organization that had an intent decided in month,
	// once, with what Metered returns for it. Their order is the backend's. f may
	// call the store; its error ends the walk and is returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
}
