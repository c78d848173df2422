package storage

import "time"

// Token is an API key without its secret, which is stored nowhere.
type Token struct {
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	ParentID       string    `json:"parent_id,omitzero"` // the token that made it; empty: an operator made it
	Name           string    `json:"name"`
	Scopes         []string  `json:"scopes"`
	AgentID        string    `json:"agent_id,omitzero"`  // id or glob of the agents it is bound to; empty: unbound
	PolicyID       string    `json:"policy_id,omitzero"` // the policy of requests that name none; empty: none
	Hash           [32]byte  `json:"hash"`               // SHA-256 of the whole key
	Hint           string    `json:"hint"`               // the part of the key that a masked key shows
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt      time.Time `json:"revoked_at,omitzero"` // zero: not revoked
}
