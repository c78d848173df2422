package embedded

import (
	"context"
	"errors"
	"time"

	"writ/storage"
)

func tokenKey(id string) key { return key{byte(kindToken)}.text(id) }

func tokenOf(org, id string) key { return orgKey(kindTokenOf, org).text(id) }

// indexToken writes by what else than its id and its age t is found.
func (b *batch) indexToken(t *storage.Token) {
	b.set(tokenOf(t.OrganizationID, t.ID), nil)
	if t.RevokedAt.IsZero() {
		b.set(endKey(t), nil)
	}
}

// PutToken implements storage.Tokens.
func (s *Store) PutToken(ctx context.Context, t *storage.Token, maxTokens int) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err := s.write(ctx, t.OrganizationID, func(b *batch) (storage.Change, error) {
		if err := s.checkToken(ctx, t, maxTokens); err != nil {
			return storage.Change{}, err
		}
		b.document(tokenKey(t.ID), t)
		b.indexToken(t)
		b.set(orgKey(kindTokenOrder, t.OrganizationID).time(t.CreatedAt).text(t.ID), nil)
		if t.ParentID != "" {
			b.set(childrenOf(t.ParentID).text(t.ID), nil)
		}
		return tokenChange(t), nil
	})
	return err
}

// checkToken returns why t can't be stored.
func (s *Store) checkToken(ctx context.Context, t *storage.Token, maxTokens int) error {
	if _, err := s.get(tokenKey(t.ID)); err == nil {
		return storage.ErrConflict
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if t.ParentID != "" {
		if err := s.checkParent(ctx, t); err != nil {
			return err
		}
	}
	if maxTokens <= 0 {
		return nil
	}
	n, err := s.usableTokens(ctx, t.OrganizationID, t.CreatedAt, maxTokens)
	if err == nil && n >= maxTokens {
		err = &storage.LimitError{What: "usable tokens", Limit: maxTokens}
	}
	return err
}

// childrenOf starts the keys of the tokens that were made with a token.
func childrenOf(tokenID string) key { return key{byte(kindTokenChild)}.escaped(tokenID) }

func (s *Store) checkParent(ctx context.Context, t *storage.Token) error {
	parent, err := s.Token(ctx, t.ParentID)
	if err == nil && (parent.OrganizationID != t.OrganizationID || !parent.RevokedAt.IsZero()) {
		err = storage.ErrNotFound
	}
	return err
}

func tokenChange(t *storage.Token) storage.Change {
	return storage.Change{Kind: storage.TokenChanged, OrganizationID: t.OrganizationID, ID: t.ID}
}

// Token implements storage.Tokens.
func (s *Store) Token(_ context.Context, tokenID string) (*storage.Token, error) {
	return document[storage.Token](s, tokenKey(tokenID))
}

// RevokeToken implements storage.Tokens. It reads no token of another
// organization.
func (s *Store) RevokeToken(ctx context.Context, org, tokenID string, at time.Time) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	var revoked []*storage.Token
	changed, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		if _, err := s.get(tokenOf(org, tokenID)); err != nil {
			return storage.Change{}, err
		}
		t, err := s.Token(ctx, tokenID)
		if err != nil || !t.RevokedAt.IsZero() {
			return storage.Change{}, err
		}
		revoked, err = s.family(ctx, t)
		for _, t := range revoked {
			t.RevokedAt = at
			b.delete(endKey(t))
			b.document(tokenKey(t.ID), t)
		}
		return storage.Change{}, err
	})
	if changed {
		for _, t := range revoked {
			s.watchers.tell(tokenChange(t))
		}
	}
	return err
}

// family returns t and all that descend from it and are not revoked.
func (s *Store) family(ctx context.Context, t *storage.Token) ([]*storage.Token, error) {
	all := []*storage.Token{t}
	for i := 0; i < len(all); i++ {
		prefix := childrenOf(all[i].ID)
		err := s.scan(ctx, prefix, prefix.end(), func(k, _ []byte) (bool, error) {
			child, err := s.Token(ctx, string(k[len(prefix):]))
			if err == nil && child.RevokedAt.IsZero() {
				all = append(all, child)
			}
			return false, err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
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
