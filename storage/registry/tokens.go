package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"writ.example/writ/storage"
)

// PutToken stores a new token. It returns storage.ErrConflict if any organization has a token with
// the same ID. It returns storage.ErrNotFound if the token's parent is revoked, or is not a token
// of the same organization. It returns a *storage.LimitError if the organization already has
// maxTokens tokens that are usable at the new token's CreatedAt. 0 means no limit.
func (r *Registry) PutToken(ctx context.Context, t *storage.Token, maxTokens int) error {
	return r.update(ctx, t.OrganizationID, func(tx storage.Tx) error {
		if _, err := tx.Get(storage.TokenKind, "", t.ID); !errors.Is(err, storage.ErrNotFound) {
			return cmp.Or(err, storage.ErrConflict)
		}
		if t.ParentID != "" {
			parent, err := ownToken(tx, t.OrganizationID, t.ParentID)
			if err == nil && !parent.RevokedAt.IsZero() {
				err = storage.ErrNotFound
			}
			if err != nil {
				return err
			}
		}
		if maxTokens > 0 {
			n, err := usableTokens(tx, t.OrganizationID, t.CreatedAt, maxTokens)
			if err != nil {
				return err
			}
			if n >= maxTokens {
				return &storage.LimitError{What: "usable tokens", Limit: maxTokens}
			}
		}
		return storage.Tokens.Put(tx, t.OrganizationID, t)
	})
}

// Token returns the token with an id, or storage.ErrNotFound. The token may be revoked. Token takes
// no organization, because an API key does not name its organization.
func (r *Registry) Token(ctx context.Context, tokenID string) (*storage.Token, error) {
	return get(ctx, r, storage.Tokens, "", tokenID)
}

// ownToken returns org's token with an id, or storage.ErrNotFound. It never reads a token of
// another organization, because the duration of that read would reveal that the token exists.
func ownToken(tx storage.Reader, org, id string) (*storage.Token, error) {
	return first(tx, storage.Tokens, storage.Query{Org: org, Index: storage.ByOwnName, Prefix: storage.Text(id)})
}

// RevokeToken revokes a token and all its descendants in one write. An already revoked token stays
// unchanged. It returns storage.ErrNotFound if org has no such token.
func (r *Registry) RevokeToken(ctx context.Context, org, tokenID string, at time.Time) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		t, err := ownToken(tx, org, tokenID)
		if err != nil || !t.RevokedAt.IsZero() {
			return err
		}
		all, err := family(tx, t)
		if err != nil {
			return err
		}
		for _, t := range all {
			t.RevokedAt = at
			if err := storage.Tokens.Put(tx, org, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// family returns t and its unrevoked descendants.
func family(tx storage.Reader, t *storage.Token) ([]*storage.Token, error) {
	all := []*storage.Token{t}
	for i := 0; i < len(all); i++ {
		children, err := every(tx, storage.Tokens,
			storage.Query{Org: t.OrganizationID, Index: storage.ByMaker, Prefix: storage.Text(all[i].ID)})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(children, func(t *storage.Token) bool { return !t.RevokedAt.IsZero() })...)
	}
	return all, nil
}

// ListTokens returns org's tokens that are not revoked, by creation time and then by id.
func (r *Registry) ListTokens(
	ctx context.Context, org string, p storage.Page,
) (tokens []*storage.Token, next string, err error) {
	return list(ctx, r, storage.Tokens, org, storage.ByAge, p, func(t *storage.Token) bool {
		return t.RevokedAt.IsZero()
	})
}
