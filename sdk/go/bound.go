package writ

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"writ.example/writ/storage/receipt"
)

// maxVersion is the highest version of a policy that a receipt is tried with: an answer does not say its
// version. A try takes less than a microsecond.
const maxVersion = 10_000

// binds says why the receipt of an allow is not the receipt of this very intent. Without trusted keys every
// one is. Nothing that the server says here helps it: the digest covers the intent as it was sent.
func (c *Client) binds(ctx context.Context, d Decision, in Intent, approval string) error {
	if c.trusted == nil || !d.allowed {
		return nil
	}
	organization, err := c.organizationID(ctx)
	if err != nil {
		return err
	}
	p := receipt.Payload{
		OrganizationID: organization, IntentID: strings.ToLower(in.IntentID), IntentDigest: in.digest(),
		PolicyID: strings.ToLower(in.PolicyID), Decision: d.Outcome, DecisionID: d.ID, Reasons: d.Reasons,
		Exp: d.Receipt.Exp, AuditDigest: d.AuditDigest, ApprovalID: strings.ToLower(approval),
	}
	for p.PolicyVersion = 1; p.PolicyVersion <= maxVersion; p.PolicyVersion++ {
		if receipt.VerifyPayload(d.Receipt, p) == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: its receipt is of another intent", ErrAnswer)
}

// organizationID returns the organization of the client's API key. It asks the server once.
func (c *Client) organizationID(ctx context.Context) (string, error) {
	c.mu.Lock()
	id := c.organization
	c.mu.Unlock()
	if id != "" {
		return id, nil
	}
	own, err := c.Credential(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking for the organization of the receipt: %w", err)
	case own.OrganizationID == "":
		return "", errors.Join(ErrAnswer, errors.New("the credential has no organization"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.organization = own.OrganizationID
	return own.OrganizationID, nil
}

// digest returns the digest of the intent as it is sent.
func (in Intent) digest() string {
	sent := receipt.Intent{
		ActionType: in.ActionType, AgentID: in.AgentID, Cost: (*receipt.Cost)(in.Cost),
		IntentID: strings.ToLower(in.IntentID), IssuedAt: in.IssuedAt, Metadata: in.Metadata,
		PolicyID: strings.ToLower(in.PolicyID), Resource: in.Resource, SessionID: strings.ToLower(in.SessionID),
	}
	if len(in.Metadata) == 0 {
		sent.Metadata = nil // it is not sent
	}
	return receipt.DigestBytes(sent.AppendCanonical(nil))
}
