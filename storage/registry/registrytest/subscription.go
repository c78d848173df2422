// Package registrytest has what tests of several packages put into a registry.
package registrytest

import (
	"context"

	"writ/storage"
)

// PutSubscription stores or replaces s.
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
