package storage

import "time"

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
