package registry

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/storage"
)

// UpdateSubscription changes org's subscription atomically. It calls f with a copy of the
// subscription, perhaps more than once. If org has no subscription, the copy has only an
// OrganizationID. If f returns false, nothing is written. f must not change the OrganizationID
// and must not call the store. UpdateSubscription returns the stored subscription, or
// storage.ErrNotFound.
func (r *Registry) UpdateSubscription(
	ctx context.Context, org string, f func(*storage.Subscription) (changed bool),
) (*storage.Subscription, error) {
	return change(ctx, r, org, func(tx storage.Tx) (*storage.Subscription, error) {
		sub, missing := storage.Subscriptions.Get(tx, org, "")
		if errors.Is(missing, storage.ErrNotFound) {
			sub = &storage.Subscription{OrganizationID: org}
		} else if missing != nil {
			return nil, missing
		}
		stored := *sub
		switch {
		case !f(sub):
			return &stored, missing
		case sub.OrganizationID != org:
			return nil, fmt.Errorf(
				"updating the subscription of %s: its organization became %s", org, sub.OrganizationID,
			)
		}
		return sub, storage.Subscriptions.Put(tx, org, sub)
	})
}

// Subscription returns org's subscription, or storage.ErrNotFound.
func (r *Registry) Subscription(ctx context.Context, org string) (*storage.Subscription, error) {
	return get(ctx, r, storage.Subscriptions, org, "")
}
