package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
)

// tokenBody is the body of POST /v1/tokens.
type tokenBody struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expiresAt"`
	AgentID   *string    `json:"agent_id"`
	PolicyID  *string    `json:"policy_id"`

	scopes scopeSet // the set of Scopes; checkNewToken sets it
}

// tokenSecret is the answer to a new token. No other answer holds a whole key.
type tokenSecret struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}

// tokenSummary is a row of the list of tokens.
type tokenSummary struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Token     string     `json:"token"`
	Scopes    []string   `json:"scopes"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt"` // null if the token never expires
	AgentID   string     `json:"agent_id,omitzero"`
	PolicyID  string     `json:"policy_id,omitzero"`
}

// createToken makes an API key. If another key makes it, the new key has at most the scopes, the lifetime and the
// agents of that key. Revoking that key revokes the new key too.
func (s *Server) createToken(r *request, in *tokenBody) error {
	if !r.who.scopes.has(in.scopes) {
		return insufficientScope(in.scopes &^ r.who.scopes)
	}
	key, id := apikey.New()
	t := &storage.Token{
		ID: id, OrganizationID: r.who.org, Name: in.Name, Scopes: in.scopes.names(),
		Hash: apikey.Hash([]byte(key)), Hint: apikey.Hint(key), CreatedAt: r.stamp(), ExpiresAt: r.who.keyExpiry(),
	}
	if r.who.isKey {
		t.ParentID = r.who.subject
	}
	if err := s.bind(r, in, t); err != nil {
		return err
	}
	if in.ExpiresAt != nil {
		t.ExpiresAt = in.ExpiresAt.UTC()
	}
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	r.slot.Leave() // the rest only waits for the store
	err = s.docs.PutToken(r.ctx, t, plan.Tokens)
	if errors.Is(err, storage.ErrNotFound) {
		return errUnauthorized // the key that makes it was revoked meanwhile
	}
	if err != nil {
		return fmt.Errorf("storing a token: %w", err)
	}
	return r.created(tokenSecret{Token: key, ID: id})
}

// keyExpiry returns the latest expiry of a key that p makes, or zero for no bound. The end of an operator's token does
// not bound the keys that the operator makes.
func (p *principal) keyExpiry() time.Time {
	if p.isKey {
		return p.expires
	}
	return time.Time{}
}

func checkNewToken(r *request, in *tokenBody) error {
	var bad fieldErrors
	bad.name("name", in.Name)
	var i int
	var err error
	if in.scopes, i, err = parseScopes(in.Scopes); err != nil {
		bad.add(fmt.Sprintf("scopes[%d]", i), err.Error())
	}
	if len(in.Scopes) == 0 {
		in.scopes = scopeEvaluate
	}
	switch latest := r.who.keyExpiry(); {
	case in.ExpiresAt == nil:
	case !in.ExpiresAt.After(r.now):
		bad.add("expiresAt", "must be in the future")
	case in.ExpiresAt.UTC().Year() > 9999: // the offset of the time may hide this year
		bad.add("expiresAt", "must be before the year 10000 in UTC")
	case !latest.IsZero() && in.ExpiresAt.After(latest):
		bad.add("expiresAt", "must not be after "+latest.Format(time.RFC3339Nano)+
			", when the key that makes it expires")
	}
	if in.AgentID != nil {
		_, err := engine.CompileAgentPattern("agent_id", *in.AgentID)
		bad.merge(err)
		in.checkBound(&bad)
	}
	if in.PolicyID != nil {
		bad.uuid("policy_id", *in.PolicyID)
	}
	return bad.err()
}

// checkBound refuses the scopes that a key with agents can't have. They are for the whole
// organization.
func (in *tokenBody) checkBound(bad *fieldErrors) {
	for i, name := range in.Scopes {
		if scope, _, err := parseScopes(in.Scopes[i : i+1]); err == nil && scope&^boundScopes != 0 {
			bad.add(fmt.Sprintf("scopes[%d]", i), fmt.Sprintf(
				"can't be %s beside agent_id, because it is for the whole organization: want some of %s",
				name, strings.ReplaceAll(boundScopes.String(), " ", ", ")))
		}
	}
}

// listTokens returns a plain array of the tokens that are not revoked.
func (s *Server) listTokens(r *request) error {
	tokens, next, err := pageOf(r, "tokens", s.docs.ListTokens)
	if err != nil {
		return err
	}
	rows := make([]tokenSummary, 0, len(tokens))
	for _, t := range tokens {
		rows = append(rows, summary(t))
	}
	return r.part(rows, next)
}

func summary(t *storage.Token) tokenSummary {
	row := tokenSummary{
		ID: t.ID, Name: t.Name, Token: apikey.Mask(t.ID, t.Hint), Scopes: t.Scopes, CreatedAt: t.CreatedAt,
		AgentID: t.AgentID, PolicyID: t.PolicyID,
	}
	if !t.ExpiresAt.IsZero() {
		row.ExpiresAt = &t.ExpiresAt
	}
	return row
}

// revokeToken revokes a token and all tokens that were made with it. They are revoked before the answer is sent.
func (s *Server) revokeToken(r *request) error {
	if err := s.docs.RevokeToken(r.ctx, r.who.org, r.param, r.now); err != nil {
		return about("token", err)
	}
	return r.answer(http.StatusNoContent, nil)
}
