package embedded

import (
	"context"

	"writ/storage"
)

// PutSubscription implements storage.Subscriptions.
func (s *Store) PutSubscription(ctx context.Context, sub *storage.Subscription) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	org := sub.OrganizationID
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		b.document(orgKey(kindSubscription, org), sub)
		return storage.Change{Kind: storage.SubscriptionChanged, OrganizationID: org}, nil
	})
	return err
}

// Subscription implements storage.Subscriptions.
func (s *Store) Subscription(_ context.Context, org string) (*storage.Subscription, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	return document[storage.Subscription](s, orgKey(kindSubscription, org))
}
