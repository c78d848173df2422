package writ

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Outcomes of an action: see [Record].
const (
	Executed = "executed"
	Failed   = "failed"
)

// Record says what became of an action.
type Record struct {
	DecisionID  string `json:"decision_id"`
	Outcome     string `json:"outcome"` // Executed, Failed or skipped
	AmountMinor *int64 `json:"amount_minor,omitempty"`
	Currency    string `json:"currency,omitempty"`
	ExternalRef string `json:"external_ref,omitempty"`
}

// Record records what became of an action. The key needs the scope actions:record.
func (c *Client) Record(ctx context.Context, r Record) error {
	return c.send(ctx, http.MethodPost, "/v1/actions/record", r, nil)
}

// EvaluateAll asks for the decisions about at most 100 intents of one policy in one request. If
// together is true, they are all allowed or none is. The results have the order of the intents. An
// intent that could not be decided has an error and the zero Decision.
func (c *Client) EvaluateAll(ctx context.Context, together bool, intents ...Intent) ([]Result, error) {
	batch := struct {
		PolicyID  string            `json:"policy_id"`
		SessionID string            `json:"session_id,omitempty"`
		Mode      string            `json:"mode"`
		Intents   []json.RawMessage `json:"intents"`
	}{Mode: "each"}
	if together {
		batch.Mode = "all"
	}
	results := make([]Result, len(intents))
	for i, in := range intents {
		in, err := c.complete(in)
		switch {
		case err != nil:
			return nil, fmt.Errorf("intent %d: %w", i, err)
		case i > 0 && in.PolicyID != batch.PolicyID:
			return nil, fmt.Errorf("intent %d: writ: a batch has one policy, the first intent has another", i)
		case i > 0 && in.SessionID != batch.SessionID:
			return nil, fmt.Errorf("intent %d: writ: a batch has one session, the first intent has another", i)
		}
		batch.PolicyID, batch.SessionID = in.PolicyID, in.SessionID
		results[i].Decision.Intent = in
		data, err := json.Marshal(in.alone())
		if err != nil {
			return nil, fmt.Errorf("writ: encoding intent %d: %w", i, err)
		}
		batch.Intents = append(batch.Intents, data)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, fmt.Errorf("writ: encoding the batch: %w", err)
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/policy/evaluate/batch", body: body, repeats: true})
	if err != nil {
		return nil, err
	}
	var answered struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := decode(a.body, &answered); err != nil {
		return nil, err
	}
	if a.status != http.StatusOK || len(answered.Results) != len(intents) {
		return nil, fmt.Errorf("%w: %d results for %d intents, status %d",
			ErrAnswer, len(answered.Results), len(intents), a.status)
	}
	for i, data := range answered.Results {
		results[i] = c.resultOf(ctx, data, results[i].Decision.Intent)
	}
	return results, nil
}

// Result is the decision about an intent of a batch, or the error that prevented it.
type Result struct {
	Decision Decision
	Err      error
}

func (c *Client) resultOf(ctx context.Context, data []byte, in Intent) Result {
	var p Problem
	if json.Unmarshal(data, &p) == nil && p.Code != "" {
		c.hideProblem(&p)
		return Result{Err: &p}
	}
	d, err := decisionOf(data, time.Now())
	if err == nil {
		err = c.trusts(d)
	}
	if err == nil {
		err = c.binds(ctx, d, in, "")
	}
	if err != nil {
		return Result{Err: c.hide(err)}
	}
	d.Intent = in
	c.hideTexts(d.Reasons)
	return Result{Decision: d}
}

// Credential says what the client's own API key may do.
type Credential struct {
	OrganizationID string   `json:"organization_id"`
	Kind           string   `json:"kind"` // api_key or operator
	ID             string   `json:"id"`
	Scopes         []string `json:"scopes"`
	// ExpiresAt is zero if the credential never expires.
	ExpiresAt time.Time `json:"expiresAt"`
	AgentID   string    `json:"agent_id"`  // the agents to which the key is bound, or empty
	PolicyID  string    `json:"policy_id"` // the policy of batches that name none, or empty
}

// Credential returns the credential of the client's API key. It needs no scope, so every program can check
// its key when it starts.
func (c *Client) Credential(ctx context.Context) (Credential, error) {
	var own Credential
	err := c.get(ctx, "/v1/credential", 0, &own)
	return own, err
}

// Session narrows a policy to one task. An empty member narrows nothing.
type Session struct {
	ID                      string   `json:"session_id,omitempty"`
	PolicyID                string   `json:"policy_id"`
	AgentID                 string   `json:"agent_id"`
	AllowedActionTypes      []string `json:"allowed_action_types,omitempty"`
	AllowedResourcePatterns []string `json:"allowed_resource_patterns,omitempty"`
	MaxCostMinor            *int64   `json:"max_cost_minor,omitempty"`
	Status                  string   `json:"status,omitempty"`
	ExpiresAt               string   `json:"expires_at,omitempty"`
}

// OpenSession opens a session for ttl. The key needs the scope sessions:write.
func (c *Client) OpenSession(ctx context.Context, s Session, ttl time.Duration) (Session, error) {
	if s.PolicyID == "" {
		s.PolicyID = c.config.PolicyID
	}
	if s.AgentID == "" {
		s.AgentID = c.config.AgentID
	}
	var opened Session
	err := c.send(ctx, http.MethodPost, "/v1/sessions", struct {
		Session
		TTL int `json:"ttl"`
	}{s, int(ttl / time.Second)}, &opened)
	return opened, err
}

// CloseSession closes a session for good.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	path := "/v1/sessions/" + url.PathEscape(id)
	return c.send(ctx, http.MethodPatch, path, map[string]string{"status": "closed"}, nil)
}

// SetAgentStatus throws the kill switch of an agent ("disabled") or releases it ("active"). It is in
// force when the call returns. The key needs the scope agents:write.
func (c *Client) SetAgentStatus(ctx context.Context, agentID, status string) error {
	path := "/v1/agents/" + url.PathEscape(agentID) + "/status"
	return c.send(ctx, http.MethodPatch, path, map[string]string{"status": status}, nil)
}

// SetOrganizationStatus stops everything that the organization's agents ask ("stopped") or ends the stop
// ("active"). It is in force when the call returns. The key needs the scope agents:write, for all agents.
func (c *Client) SetOrganizationStatus(ctx context.Context, status string) error {
	var is struct{ Status string }
	err := c.send(ctx, http.MethodPatch, "/v1/organization/status", map[string]string{"status": status}, &is)
	if err == nil && is.Status != status {
		err = fmt.Errorf("%w: it does not say that the organization is %s", ErrAnswer, status)
	}
	return err
}

// DecideApproval approves, rejects or revokes a held action. verdict is approved, rejected or revoked.
// The key needs the scope approvals:decide.
func (c *Client) DecideApproval(ctx context.Context, id, verdict, comment string) (Approval, error) {
	body := map[string]string{"status": verdict}
	if comment != "" {
		body["comment"] = comment
	}
	var a Approval
	err := c.send(ctx, http.MethodPatch, "/v1/approvals/"+url.PathEscape(id), body, &a)
	return a, err
}

// History yields the rows of the history, the newest first, as the server sends them. filter has the
// parameters of GET /v1/authorizations, such as agent_id. It ends after the first error.
func (c *Client) History(ctx context.Context, filter url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := url.Values{}
		for k, v := range filter {
			query[k] = v
		}
		for {
			var page struct {
				Data       []json.RawMessage `json:"data"`
				NextCursor string            `json:"next_cursor"`
			}
			if err := c.get(ctx, "/v1/authorizations?"+query.Encode(), 0, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, row := range page.Data {
				if !yield(row, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			query.Set("cursor", page.NextCursor)
		}
	}
}
