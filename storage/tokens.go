package storage

import (
	"context"
	"time"
)

// Token is an API key without its secret, which is stored nowhere.
type Token struct {
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	ParentID       string    `json:"parent_id,omitzero"` // the token it was made with; empty: an operator made it
	Name           string    `json:"name"`
	Scopes         []string  `json:"scopes"`
	AgentID        string    `json:"agent_id,omitzero"`  // the agents it is bound to, an id or a glob; empty: none
	PolicyID       string    `json:"policy_id,omitzero"` // the policy it means where none is named; empty: none
	Hash           [32]byte  `json:"hash"`               // SHA-256 of the whole key
	Hint           string    `json:"hint"`               // what a masked key may show
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt      time.Time `json:"revoked_at,omitzero"` // zero: not revoked
}

// Tokens keeps API keys. Token ids are unique across organizations, because a
// key must be found before its organization is known.
type Tokens interface {
	// PutToken stores a new token; ErrConflict when its ID exists, ErrNotFound
	// when its parent is revoked or not a token of its organization. It must
	// return a *LimitError when maxTokens tokens of its organization are usable at
	// its CreatedAt already (0: no limit): neither revoked nor expired.
	PutToken(ctx context.Context, t *Token, maxTokens int) error
	// Token returns the token, revoked ones included, or ErrNotFound.
	Token(ctx context.Context, tokenID string) (*Token, error)
	// RevokeToken sets RevokedAt unless it is set, of the token and of all that
	// descend from it, in one write. It returns ErrNotFound for a token that is
	// not org's.
	RevokeToken(ctx context.Context, org, tokenID string, at time.Time) error
	// ListTokens returns org's tokens that are not revoked, by creation time,
	// then id.
	ListTokens(ctx context.Context, org string, p Page) (tokens []*Token, next string, err error)
}
