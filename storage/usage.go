package storage

import "context"

// Usage counts what plans limit. Its counts are kept, not taken: asking costs
// the same however much there is.
type Usage interface {
	// CountPolicies returns how many policies org has, whatever their versions.
	CountPolicies(ctx context.Context, org string) (int, error)
	// CountAgents returns how many agents org has.
	CountAgents(ctx context.Context, org string) (int, error)
	// CountRules returns how many rules org has, active or not.
	CountRules(ctx context.Context, org string) (int, error)
	// Meters calls f for each organization that had an intent decided in month,
	// once, with what Metered returns for it. Their order is the backend's. f may
	// call the store; its error ends the walk and is returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
}
