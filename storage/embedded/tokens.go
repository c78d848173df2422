package embedded

import (
	"context"
	"errors"
	"time"

	"writ/storage"
)

func tokenKey(id string) key { return key{byte(kindToken)}.text(id) }

// PutToken implements storage.Tokens.
func (s *Store) PutToken(ctx context.Context, t *storage.Token) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err := s.write(ctx, t.OrganizationID, func(b *batch) (storage.Change, error) {
		_, err := s.get(tokenKey(t.ID))
		switch {
		case err == nil:
			err = storage.ErrConflict
		case errors.Is(err, storage.ErrNotFound):
			err = nil
		}
		b.document(tokenKey(t.ID), t)
		b.set(orgKey(kindTokenOrder, t.OrganizationID).time(t.CreatedAt).text(t.ID), nil)
		return tokenChange(t), err
	})
	return err
}

func tokenChange(t *storage.Token) storage.Change {
	return storage.Change{Kind: storage.TokenChanged, OrganizationID: t.OrganizationID, ID: t.ID}
}

// Token implements storage.Tokens.
func (s *Store) Token(_ context.Context, tokenID string) (*storage.Token, error) {
	return document[storage.Token](s, tokenKey(tokenID))
}

// RevokeToken implements storage.Tokens.
func (s *Store) RevokeToken(ctx context.Context, org, tokenID string, at time.Time) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		t, err := s.Token(ctx, tokenID)
		if err == nil && t.OrganizationID != org {
			err = storage.ErrNotFound
		}
		if err != nil || !t.RevokedAt.IsZero() {
			return storage.Change{}, err
		}
		t.RevokedAt = at
		b.document(tokenKey(tokenID), t)
		return tokenChange(t), nil
	})
	return err
}

// ListTokens implements storage.Tokens.
func (s *Store) ListTokens(ctx context.Context, org string, p storage.Page) ([]*storage.Token, string, error) {
	return list(ctx, s, kindTokenOrder, org, p, timeLen, func(position, _ []byte) (*storage.Token, error) {
		t, err := s.Token(ctx, string(position[timeLen:]))
		if err != nil || !t.RevokedAt.IsZero() {
			return nil, err
		}
		return t, nil
	})
}
