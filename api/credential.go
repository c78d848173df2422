package api

import "time"

// credentialBody is the answer of GET /v1/credential. Its members have the names of a token's.
type credentialBody struct {
	OrganizationID string     `json:"organization_id"`
	Kind           string     `json:"kind"`
	ID             string     `json:"id"` // a key's public id, or an operator's sub
	Scopes         []string   `json:"scopes"`
	ExpiresAt      *time.Time `json:"expiresAt"` // null if the credential never expires
	AgentID        string     `json:"agent_id,omitzero"`
	PolicyID       string     `json:"policy_id,omitzero"`
}

// credential tells a caller what its own credential may do.
func (s *Server) credential(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	who := &r.who
	body := credentialBody{
		OrganizationID: who.org, Kind: "operator", ID: who.subject, Scopes: who.scopes.names(), PolicyID: who.policy,
	}
	if who.isKey {
		body.Kind = "api_key"
	}
	if who.agents != nil {
		body.AgentID = who.agents.String()
	}
	if !who.expires.IsZero() {
		at := who.expires.UTC()
		body.ExpiresAt = &at
	}
	return r.ok(body)
}
