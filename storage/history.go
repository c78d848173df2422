package storage

import (
	"context"
	"time"

	"writ/engine"
	"writ/ledger/receipt"
)

// Record is the audit projection of one decision together with the answer that
// was given: a row of the authorization history. Only its Settlement ever
// changes, and that once.
//
// DecisionID is a UUIDv7 in its canonical, lower-case form; history is ordered
// by it. The time it carries must be within [MaxSkew] of DecidedAt, so that a
// range of times is a range of ids.
type Record struct {
	OrganizationID string            `json:"organization_id"`
	IntentID       string            `json:"intent_id"`
	IntentDigest   string            `json:"intent_digest"`
	DecisionID     string            `json:"decision_id"`
	PolicyID       string            `json:"policy_id"`
	PolicyVersion  int64             `json:"policy_version"`
	AgentID        string            `json:"agent_id"`
	ActionType     string            `json:"action_type"`
	Resource       string            `json:"resource"` // without user info, query and fragment
	Cost           *engine.Cost      `json:"cost,omitzero"`
	MetadataKeys   []string          `json:"metadata_keys,omitzero"`
	Metadata       map[string]string `json:"metadata,omitzero"` // audit mode full only, scrubbed
	Decision       engine.Decision   `json:"decision"`
	Reasons        []string          `json:"reasons"`
	Receipt        receipt.Receipt   `json:"receipt"`
	IssuedAt       string            `json:"issued_at"`
	DecidedAt      time.Time         `json:"decided_at"`
	Credential     string            `json:"credential,omitzero"` // that asked: a key's id or "operator:" and its subject; empty: not known
	Settlement     *Settlement       `json:"settlement,omitzero"`
}

// Removed reports that [Retention] has removed r: of what it was only
// OrganizationID, IntentID and DecisionID are left.
func (r *Record) Removed() bool { return r.Decision == 0 }

// MaxSkew is how far a decision id's time may be from the record's DecidedAt.
const MaxSkew = time.Minute

// Settlement is what became of an allowed action.
type Settlement struct {
	Outcome     string    `json:"outcome"` // executed, failed or skipped
	AmountMinor *int64    `json:"amount_minor,omitzero"`
	Currency    string    `json:"currency,omitzero"`
	ExternalRef string    `json:"external_ref,omitzero"`
	RecordedAt  time.Time `json:"recorded_at"`
}

// Filter selects history rows; a zero field selects all.
type Filter struct {
	Decision   engine.Decision
	AgentID    string
	PolicyID   string
	ActionType string
	From, To   time.Time // DecidedAt in [From, To)
}

// History reads and settles what [Decisions] committed.
type History interface {
	// ListRecords returns org's records that f selects, newest first. A page of
	// a filter that selects little may hold less than Limit, even nothing, though
	// more follows: only an empty next ends the list.
	ListRecords(ctx context.Context, org string, f Filter, p Page) (records []*Record, next string, err error)
	// Record returns the record of a decision, or ErrNotFound.
	Record(ctx context.Context, org, decisionID string) (*Record, error)
	// Settle adds s to a record that has no settlement. It must return
	// ErrConflict when it has a different one, and nil for an equal one
	// (RecordedAt aside).
	Settle(ctx context.Context, org, decisionID string, s Settlement) (*Record, error)
}

// SameSettlement reports whether a and b are equal but for RecordedAt.
func SameSettlement(a, b Settlement) bool {
	if (a.AmountMinor == nil) != (b.AmountMinor == nil) {
		return false
	}
	if a.AmountMinor != nil && *a.AmountMinor != *b.AmountMinor {
		return false
	}
	return a.Outcome == b.Outcome && a.Currency == b.Currency && a.ExternalRef == b.ExternalRef
}

// Selects reports whether f selects r.
func (f *Filter) Selects(r *Record) bool {
	switch {
	case f.Decision != 0 && f.Decision != r.Decision,
		f.AgentID != "" && f.AgentID != r.AgentID,
		f.PolicyID != "" && f.PolicyID != r.PolicyID,
		f.ActionType != "" && f.ActionType != r.ActionType,
		!f.From.IsZero() && r.DecidedAt.Before(f.From),
		!f.To.IsZero() && !r.DecidedAt.Before(f.To):
		return false
	}
	return true
}
