package embedded

import (
	"context"
	"errors"
	"fmt"

	"writ/storage"
)

// PutSubscription implements storage.Subscriptions.
func (s *Store) PutSubscription(ctx context.Context, sub *storage.Subscription) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.putSubscription(ctx, sub)
}

// putSubscription is PutSubscription for who holds writes.
func (s *Store) putSubscription(ctx context.Context, sub *storage.Subscription) error {
	org := sub.OrganizationID
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		b.document(orgKey(kindSubscription, org), sub)
		return storage.Change{Kind: storage.SubscriptionChanged, OrganizationID: org}, nil
	})
	return err
}

// UpdateSubscription implements storage.Subscriptions.
func (s *Store) UpdateSubscription(
	ctx context.Context, org string, f func(*storage.Subscription) bool,
) (*storage.Subscription, error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	sub, err := s.Subscription(ctx, org)
	missing := errors.Is(err, storage.ErrNotFound)
	if missing {
		sub = &storage.Subscription{OrganizationID: org}
	} else if err != nil {
		return nil, err
	}
	if !f(sub) {
		if missing {
			return nil, storage.ErrNotFound
		}
		return sub, nil
	}
	if sub.OrganizationID != org {
		return nil, fmt.Errorf("updating the subscription of %s: its organization became %s", org, sub.OrganizationID)
	}
	if err := s.putSubscription(ctx, sub); err != nil {
		return nil, err
	}
	return sub, nil
}

// Subscription implements storage.Subscriptions.
func (s *Store) Subscription(_ context.Context, org string) (*storage.Subscription, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	return document[storage.Subscription](s, orgKey(kindSubscription, org))
}
