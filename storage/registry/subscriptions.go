package registry

import (
	"context"
	"errors"
	"fmt"

	"writ/storage"
)

// UpdateSubscription replaces org's subscription by what f makes of it,
// atomically: no other write falls between. f gets a copy, or one that has only
// its OrganizationID where there is none, and returns whether it changed it; if
// not, nothing is written. f must not change the OrganizationID, must not call
// the store, and may be called more than once. It returns what is stored then, or
// storage.ErrNotFound.
func (r *Registry) UpdateSubscription(
	ctx context.Context, org string, f func(*storage.Subscription) (changed bool),
) (sub *storage.Subscription, err error) {
	err = r.update(ctx, org, func(tx storage.Tx) error {
		var missing error
		sub, err = storage.Subscriptions.Get(tx, org, "")
		if errors.Is(err, storage.ErrNotFound) {
			sub, missing, err = &storage.Subscription{OrganizationID: org}, err, nil
		}
		if err != nil {
			return err
		}
		stored := *sub
		if !f(sub) {
			sub = &stored
			return missing
		}
		if sub.OrganizationID != org {
			return fmt.Errorf("updating the subscription of %s: its organization became %s", org, sub.OrganizationID)
		}
		_, err = storage.Subscriptions.Put(tx, org, sub)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// Subscription returns org's, or storage.ErrNotFound.
func (r *Registry) Subscription(ctx context.Context, org string) (*storage.Subscription, error) {
	return read(ctx, r, func(tx storage.Reader) (*storage.Subscription, error) {
		return storage.Subscriptions.Get(tx, org, "")
	})
}
