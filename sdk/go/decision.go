package writ

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // a UUID of version 5 is made with it
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"writ.example/writ/storage/receipt"
)

// Intent is an action that an agent wants to take. Action type and resource are required.
type Intent struct {
	// IntentID is a UUID that the caller chooses. The server decides an intent once: the same intent sent
	// again has the same decision. If it is empty, the client makes a new UUID.
	IntentID   string `json:"intent_id"`
	PolicyID   string `json:"policy_id"` // the default is Config.PolicyID
	AgentID    string `json:"agent_id"`  // the default is Config.AgentID
	ActionType string `json:"action_type"`
	Resource   string `json:"resource"`
	Cost       *Cost  `json:"cost,omitempty"`
	// Metadata has further facts for rules. Keys that begin with "fact." are statements of this program
	// and not of the agent.
	Metadata map[string]string `json:"metadata,omitempty"`
	// IssuedAt is the time of the intent, in RFC 3339. The default is now, or 1970 if there is a Key.
	IssuedAt string `json:"issued_at"`
	// Key is the caller's own key for the action, such as the number of an order. The client makes the
	// IntentID from it, so a caller that crashed and asks again gets the same decision. A repetition must
	// have the same IssuedAt.
	Key string `json:"-"`
	// SessionID is the session in which the agent acts, if it acts in one.
	SessionID string `json:"session_id,omitempty"`
}

// Cost is an amount in the smallest unit of a currency, such as cents.
type Cost struct {
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"` // ISO 4217, such as EUR
}

// Receipt is the signed outcome of a decision: see [Client.Verify].
type Receipt = receipt.Receipt

// Outcomes of a decision.
const (
	Allow            = receipt.Allow
	Deny             = receipt.Deny
	ApprovalRequired = receipt.ApprovalRequired
)

// Decision is the decision about an intent. The zero Decision is not allowed.
type Decision struct {
	Intent  Intent   // as sent, with the members that the client filled in
	ID      string   // the decision's id
	Outcome string   // Allow, Deny or ApprovalRequired
	Reasons []string // each is a code, a colon and a sentence
	Receipt Receipt
	// AuditDigest is the digest of the decision's row of the history, if the server says it.
	AuditDigest string
	// Replayed says that the intent was decided before this call.
	Replayed bool

	allowed bool
}

// Allowed reports whether the action may run.
func (d Decision) Allowed() bool { return d.allowed }

// Explain returns the outcome and the reasons in words.
func (d Decision) Explain() string {
	return fmt.Sprintf("%s (decision %s): %s", d.Outcome, d.ID, strings.Join(d.Reasons, "; "))
}

// Err returns nil for an allow. Otherwise it returns a [Denied] or a [Held].
func (d Decision) Err() error {
	switch {
	case d.allowed:
		return nil
	case d.Outcome == ApprovalRequired:
		return &Held{Decision: d}
	}
	return &Denied{Decision: d}
}

// Evaluate asks for the decision about an intent. For a deny or a hold it returns a decision that is not
// allowed, and no error. An error means that there is no decision: the action must not run.
func (c *Client) Evaluate(ctx context.Context, in Intent) (Decision, error) {
	in, err := c.complete(in)
	if err != nil {
		return Decision{}, err
	}
	return c.evaluate(ctx, in, "")
}

// Require returns the decision if the action may run. Otherwise the error is a [Denied], a [Held], or the
// reason why there is no decision.
func (c *Client) Require(ctx context.Context, in Intent) (Decision, error) {
	d, err := c.Evaluate(ctx, in)
	if err != nil {
		return Decision{}, err
	}
	return d, d.Err()
}

// complete fills in the members that the caller left out.
func (c *Client) complete(in Intent) (Intent, error) {
	in.PolicyID = cmp.Or(in.PolicyID, c.config.PolicyID)
	in.AgentID = cmp.Or(in.AgentID, c.config.AgentID)
	if in.Key != "" {
		in.IntentID = cmp.Or(in.IntentID, keyed(in.PolicyID, in.AgentID, in.Key))
		in.IssuedAt = cmp.Or(in.IssuedAt, "1970-01-01T00:00:00Z")
	}
	in.IntentID = cmp.Or(in.IntentID, newUUID())
	in.IssuedAt = cmp.Or(in.IssuedAt, time.Now().UTC().Format(time.RFC3339Nano))
	switch {
	case in.PolicyID == "":
		return in, errors.New("writ: the intent has no policy: set PolicyID or WRIT_POLICY_ID")
	case in.AgentID == "":
		return in, errors.New("writ: the intent has no agent: set AgentID or WRIT_AGENT_ID")
	case in.ActionType == "" || in.Resource == "":
		return in, errors.New("writ: the intent has no action type or no resource: set ActionType and Resource")
	}
	return in, nil
}

// alone returns the intent without its session, which stands beside it in a request.
func (in Intent) alone() Intent {
	in.SessionID = ""
	return in
}

// evaluate sends a complete intent. approval is the id of the approval to redeem, or empty.
func (c *Client) evaluate(ctx context.Context, in Intent, approval string) (Decision, error) {
	body, err := json.Marshal(struct {
		PolicyID   string `json:"policy_id"`
		SessionID  string `json:"session_id,omitempty"`
		Intent     Intent `json:"intent"`
		ApprovalID string `json:"approval_id,omitempty"`
	}{in.PolicyID, in.SessionID, in.alone(), approval})
	if err != nil {
		return Decision{}, fmt.Errorf("writ: encoding the intent: %w", err)
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: evaluatePath, body: body, repeats: true})
	if err != nil {
		return Decision{}, err
	}
	d, err := decisionOf(a.body, time.Now())
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%w: its status is %d", ErrAnswer, a.status)
	}
	if err == nil {
		err = c.trusts(d)
	}
	if err == nil {
		err = c.binds(ctx, d, in, approval)
	}
	if err != nil {
		return Decision{}, c.hide(err)
	}
	c.hideTexts(d.Reasons)
	d.Intent, d.Replayed = in, a.replayed
	return d, nil
}

// trusts says why the receipt of a decision is not trusted. Without trusted keys every one is.
func (c *Client) trusts(d Decision) error {
	if c.trusted == nil {
		return nil
	}
	if bad := receipt.Verify(d.Receipt, *c.trusted, time.Now()); bad != nil && !errors.Is(bad, receipt.ErrExpired) {
		return fmt.Errorf("%w: its receipt does not verify: %w", ErrAnswer, bad)
	}
	return nil
}

// decisionOf reads the answer of an evaluation.
func decisionOf(body []byte, now time.Time) (Decision, error) {
	result, err := receipt.ParseResult(body)
	if err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	r := result.Receipt
	if now.Unix() >= r.Exp && r.Decision == Allow {
		return Decision{}, fmt.Errorf("%w: decision %s", ErrExpired, r.DecisionID)
	}
	return Decision{
		ID: r.DecisionID, Outcome: r.Decision, Reasons: result.Reasons, Receipt: r, AuditDigest: result.AuditDigest,
		allowed: r.Decision == Allow,
	}, nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return textOf(b, 4)
}

// keyNamespace is the namespace of the ids that are made from keys. It is the same in the clients of all
// languages.
const keyNamespace = "\x6f\x1d\x2a\x4e\x9c\x1b\x5d\x0e\x8a\x57\x3c\x6b\x2f\x7e\x9d\x10"

// keyed returns the id of an intent that has a Key, as a UUID of version 5 (RFC 9562).
func keyed(policyID, agentID, key string) string {
	var name strings.Builder
	e := json.NewEncoder(&name)
	e.SetEscapeHTML(false)
	_ = e.Encode([]string{policyID, agentID, key})
	sum := sha1.Sum([]byte(keyNamespace + strings.TrimSuffix(name.String(), "\n"))) //nolint:gosec // the version's own
	return textOf([16]byte(sum[:16]), 5)
}

// textOf returns the text of a UUID of a version.
func textOf(b [16]byte, version byte) string {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
