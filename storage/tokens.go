package storage

import "time"

// Token is an API key without its secret. The secret is stored nowhere.
type Token struct {
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	ParentID       string    `json:"parent_id,omitzero"` // id of the parent token; empty: none
	Name           string    `json:"name"`
	Scopes         []string  `json:"scopes"`
	AgentID        string    `json:"agent_id,omitzero"`  // id or glob of the allowed agents; empty: any
	PolicyID       string    `json:"policy_id,omitzero"` // policy of requests that name no policy; empty: none
	Hash           [32]byte  `json:"hash"`               // SHA-256 of the whole key with its secret
	Hint           string    `json:"hint"`               // the visible part of a masked key
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt      time.Time `json:"revoked_at,omitzero"` // zero: not revoked
}
