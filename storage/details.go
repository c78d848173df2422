package storage

import (
	"crypto/rand"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ.example/writ/storage/receipt"
)

// Details has values of a held decision: a decision that waits for an approval. They are stored
// separately from the decision's row, until the decision can no longer be approved, rejected or
// used. The row has only their digest. When the details and their salt are deleted, nobody can
// guess the values from the digest.
type Details struct {
	DecisionID string            `json:"decision_id"`
	Salt       string            `json:"salt"`
	Values     map[string]string `json:"values"` // with secrets removed
	// AgentID and PolicyID are copied from the row.
	AgentID  string `json:"agent_id,omitzero"`
	PolicyID string `json:"policy_id,omitzero"`
	// ExpiresAt is the last time at which the decision can be approved or rejected.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Findings are the reasons why the decision is held.
	Findings []HeldFinding `json:"findings,omitzero"`
	// ApprovedUntil is the end of the approval, or zero before the approval. It is a copy from the
	// verdict, because lists sort by it. The digest does not cover ApprovedUntil.
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
}

// HeldFinding is a finding of a held decision. An approval also covers a later finding that differs
// only in Reason.
type HeldFinding struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	RuleID string `json:"rule_id,omitzero"`
	// RuleRevision is the revision of the rule's document. It is 0 if the finding comes from no
	// rule.
	RuleRevision int64 `json:"rule_revision,omitzero"`
}

// NewDetails returns the details of a decision, with a new salt.
func NewDetails(decisionID string, values map[string]string) *Details {
	return &Details{DecisionID: decisionID, Salt: rand.Text(), Values: maps.Clone(values)}
}

// Digest returns the digest of the canonical JSON of {decision_id, expires_at, findings,
// salt, values}. expires_at is RFC 3339 in UTC. An absent expires_at and empty findings are left
// out. A finding is {code, reason, rule_id, rule_revision}.
func (d *Details) Digest() string {
	type finding struct {
		Code         string `json:"code"`
		Reason       string `json:"reason"`
		RuleID       string `json:"rule_id"`
		RuleRevision int64  `json:"rule_revision"`
	}
	var findings []finding
	for _, f := range d.Findings {
		findings = append(findings, finding(f))
	}
	return receipt.DigestBytes(canonical(struct {
		DecisionID string         `json:"decision_id"`
		ExpiresAt  string         `json:"expires_at,omitzero"`
		Findings   []finding      `json:"findings,omitzero"`
		Salt       string         `json:"salt"`
		Values     jsontext.Value `json:"values"`
	}{d.DecisionID, rfc3339(d.ExpiresAt), findings, d.Salt, receipt.AppendMap(nil, d.Values)}))
}

// canonical returns the canonical JSON of v, in the form of package receipt. v must be a struct of
// texts, integers and JSON. Its fields must be in the order of their JSON names.
func canonical(v any) []byte {
	b, _ := json.Marshal(v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return b
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Approved reports whether the decision was approved.
func (d *Details) Approved() bool { return !d.ApprovedUntil.IsZero() }

// Deadline returns the time from which the decision can no longer be approved, rejected or
// used.
func (d *Details) Deadline() time.Time {
	if d.Approved() {
		return d.ApprovedUntil
	}
	return d.ExpiresAt
}

// Waiting returns the prefix of the keys in [ByWaiting] of all approved or all unapproved
// details.
func Waiting(approved bool) []byte {
	if approved {
		return []byte{1}
	}
	return []byte{0}
}

// detailsKeys returns four keys of d. Three order details by approval and then newest first: among
// all, for an agent, and for a policy. The fourth orders details by deadline.
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
