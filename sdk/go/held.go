package writ

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Held is the error of an action that waits for an approval. From its JSON form another process can wait
// for the verdict and redeem the approval: see [Client.Wait].
type Held struct{ Decision Decision } //nolint:errname // the word of all clients

func (h *Held) Error() string {
	return "writ: held: approval " + h.Decision.ID + " is pending: " + h.Decision.Explain()
}

// heldJSON is the JSON form of a Held.
type heldJSON struct {
	ApprovalID string   `json:"approval_id"`
	Intent     Intent   `json:"intent"`
	Reasons    []string `json:"reasons"`
}

// MarshalJSON implements [json.Marshaler].
func (h *Held) MarshalJSON() ([]byte, error) {
	return json.Marshal(heldJSON{h.Decision.ID, h.Decision.Intent, h.Decision.Reasons})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (h *Held) UnmarshalJSON(data []byte) error {
	var j heldJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	if j.ApprovalID == "" || j.Intent.IntentID == "" {
		return errors.New("writ: a held action has an approval_id and an intent with its intent_id")
	}
	h.Decision = Decision{ID: j.ApprovalID, Outcome: ApprovalRequired, Intent: j.Intent, Reasons: j.Reasons}
	return nil
}

// Approval is the state of a held action.
type Approval struct {
	ID            string            `json:"approval_id"`
	Status        string            `json:"status"` // pending, approved, rejected, expired, revoked or used
	HeldAt        string            `json:"held_at"`
	ExpiresAt     string            `json:"expires_at"`
	ApprovedUntil string            `json:"approved_until,omitempty"`
	IntentID      string            `json:"intent_id"`
	IssuedAt      string            `json:"issued_at"` // of the intent
	IntentDigest  string            `json:"intent_digest"`
	PolicyID      string            `json:"policy_id"`
	AgentID       string            `json:"agent_id"`
	ActionType    string            `json:"action_type"`
	Resource      string            `json:"resource"`
	Cost          *Cost             `json:"cost,omitempty"`
	MetadataKeys  []string          `json:"metadata_keys,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"` // scrubbed, until the approval has ended
	Findings      []Finding         `json:"findings"`           // why it was held: an approval covers these alone
	DecidedAt     string            `json:"decided_at,omitempty"`
	DecidedBy     string            `json:"decided_by,omitempty"`
	Comment       string            `json:"comment,omitempty"`
	RevokedBy     string            `json:"revoked_by,omitempty"`
	UsedBy        string            `json:"used_by,omitempty"` // the id of the decision that it led to
	// Receipt proves the last verdict: see package receipt.
	Receipt json.RawMessage `json:"receipt,omitempty"`
}

// Finding is why an action is held.
type Finding struct {
	Code         string `json:"code"`
	Outcome      string `json:"outcome"`
	Decides      bool   `json:"decides,omitempty"`
	RuleID       string `json:"rule_id,omitempty"`
	RuleRevision int    `json:"rule_revision,omitempty"`
	Cause        string `json:"cause,omitempty"`
	Field        string `json:"field,omitempty"`
	Reason       string `json:"reason"`
}

// maxPoll is the longest wait that the server accepts.
const maxPoll = 60 * time.Second

// Approval returns an approval. While it is pending, the server delays its answer, for at most wait.
func (c *Client) Approval(ctx context.Context, id string, wait time.Duration) (Approval, error) {
	var a Approval
	wait = min(max(wait, 0), maxPoll)
	path := "/v1/approvals/" + url.PathEscape(id) + "?wait=" + strconv.Itoa(int(wait/time.Second))
	if err := c.get(ctx, path, wait, &a); err != nil {
		return Approval{}, err
	}
	if a.ID != id || a.Status == "" {
		return Approval{}, fmt.Errorf("%w: it is about another approval", ErrAnswer)
	}
	return a, nil
}

// Wait waits until the approval is decided, for at most timeout. Then it redeems the approval: it
// returns the allow, or a [Denied]. It returns [ErrPending] if there is no verdict in time.
func (c *Client) Wait(ctx context.Context, h *Held, timeout time.Duration) (Decision, error) {
	a, err := c.Verdict(ctx, h.Decision.ID, timeout)
	switch {
	case err != nil:
		return Decision{}, err
	case a.Status == Pending:
		return Decision{}, ErrPending
	}
	return c.Redeem(ctx, h)
}

// Pending is the status of an approval without a verdict.
const Pending = "pending"

// Verdict waits until the approval is decided, for at most timeout, and returns it. It redeems nothing.
func (c *Client) Verdict(ctx context.Context, id string, timeout time.Duration) (Approval, error) {
	for end := time.Now().Add(timeout); ; {
		a, err := c.Approval(ctx, id, time.Until(end))
		if err != nil || a.Status != Pending || time.Until(end) < time.Second {
			return a, err
		}
	}
}

// Redeem sends the held intent again with its approval. It returns the allow. The error is a [Denied],
// another [Held] if the intent needs a further approval, or [ErrPending] without a verdict. One approval
// runs one action: if another call has redeemed it, the error is [ErrAlreadyRedeemed].
func (c *Client) Redeem(ctx context.Context, h *Held) (Decision, error) {
	d, err := c.evaluate(ctx, h.Decision.Intent, h.Decision.ID)
	switch {
	case err != nil:
		return Decision{}, err
	case d.ID == h.Decision.ID:
		return Decision{}, ErrPending
	case d.Replayed && d.allowed:
		return Decision{}, ErrAlreadyRedeemed
	}
	return d, d.Err()
}
