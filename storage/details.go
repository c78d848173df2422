package storage

import (
	"crypto/rand"
	"maps"
	"time"

	"github.com/google/uuid"

	"writ/storage/receipt"
)

// Details are what is kept of a held decision beside its row, until nobody can decide
// about it any more. The row has their digest alone, of which nothing can be guessed once
// they and their salt are deleted.
type Details struct {
	DecisionID string            `json:"decision_id"`
	Salt       string            `json:"salt"`
	Values     map[string]string `json:"values"` // scrubbed
	// AgentID and PolicyID are the row's.
	AgentID  string `json:"agent_id,omitzero"`
	PolicyID string `json:"policy_id,omitzero"`
	// ExpiresAt is until when the decision can be approved or rejected.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Findings are why the decision is held.
	Findings []HeldFinding `json:"findings,omitzero"`
	// ApprovedUntil is zero until the decision is approved. It is a copy of what the
	// verdict says, for lists, and not in the digest.
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
}

// HeldFinding is a finding that an approval covers where it is found once more: all but
// Reason are the same.
type HeldFinding struct {
	Code   string `json:"code"`
	RuleID string `json:"rule_id,omitzero"`
	// RuleRevision is that of the rule's document; 0 if no rule decided.
	RuleRevision int64  `json:"rule_revision,omitzero"`
	Reason       string `json:"reason"`
}

// NewDetails returns the details of a decision, with a new salt.
func NewDetails(decisionID string, values map[string]string) *Details {
	return &Details{DecisionID: decisionID, Salt: rand.Text(), Values: maps.Clone(values)}
}

// Digest returns the digest of the canonical JSON of {decision_id, expires_at, findings,
// salt, values} without expires_at, RFC 3339 in UTC, and findings where there are none. A
// finding is {code, reason, rule_id, rule_revision}.
func (d *Details) Digest() string {
	dst := receipt.AppendString([]byte(`{"decision_id":`), d.DecisionID)
	if !d.ExpiresAt.IsZero() {
		dst = append(d.ExpiresAt.UTC().AppendFormat(append(dst, `,"expires_at":"`...), time.RFC3339Nano), '"')
	}
	for i, f := range d.Findings {
		if i == 0 {
			dst = append(dst, `,"findings":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = receipt.AppendString(append(dst, `{"code":`...), f.Code)
		dst = receipt.AppendString(append(dst, `,"reason":`...), f.Reason)
		dst = receipt.AppendString(append(dst, `,"rule_id":`...), f.RuleID)
		dst = append(receipt.AppendInt(append(dst, `,"rule_revision":`...), f.RuleRevision), '}')
	}
	if len(d.Findings) > 0 {
		dst = append(dst, ']')
	}
	dst = receipt.AppendString(append(dst, `,"salt":`...), d.Salt)
	dst = receipt.AppendMap(append(dst, `,"values":`...), d.Values)
	return receipt.DigestBytes(append(dst, '}'))
}

// Approved reports whether the decision was approved.
func (d *Details) Approved() bool { return !d.ApprovedUntil.IsZero() }

// Deadline is when nothing can be decided about d any more and nothing can use it.
func (d *Details) Deadline() time.Time {
	if d.Approved() {
		return d.ApprovedUntil
	}
	return d.ExpiresAt
}

// Waiting begins the keys of the details that are approved or not in [ByWaiting].
func Waiting(approved bool) []byte {
	if approved {
		return []byte{1}
	}
	return []byte{0}
}

// detailsKeys are the keys of d: newest first, by state; the same for its agent and for
// its policy; and by deadline.
func detailsKeys(d *Details) []Key {
	id, err := uuid.Parse(d.DecisionID)
	if err != nil || d.ExpiresAt.IsZero() {
		return nil
	}
	for i := range id {
		id[i] = ^id[i]
	}
	newest := append(Waiting(d.Approved()), id[:]...)
	return []Key{
		{ByWaiting, newest}, {ByAgent, append(Text(d.AgentID), newest...)},
		{ByPolicy, append(Text(d.PolicyID), newest...)},
		{ByExpiry, Time(d.Deadline())},
	}
}
