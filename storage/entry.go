package storage

import (
	"time"

	"writ/storage/receipt"
)

// EntryKind says what an [Entry] tells.
type EntryKind string

// The kinds of entries. Their keys are the decision's id, what was decided on, a
// UUIDv7, kind/id/revision of what was changed, the id of what was imported, and a
// UUIDv7.
const (
	SettlementEntry EntryKind = "settlement"
	VerdictEntry    EntryKind = "verdict"
	RetentionEntry  EntryKind = "retention"
	ChangeEntry     EntryKind = "change"
	ImportEntry     EntryKind = "import"
	AbandonEntry    EntryKind = "abandoned"
)

// Entry is a leaf of the chain that is no decision. It never changes.
type Entry struct {
	Kind           EntryKind
	OrganizationID string
	Key            string // unique in its organization and kind
	// Body is the leaf: see package receipt. A backend need not keep that of a
	// settlement, which follows from Settlement.
	Body []byte
	// Settlement is what a settlement says. Whoever reads the record of decision Key
	// gets it, with its receipt.
	Settlement *Settlement
	// Inclusion is set by [Seal].
	receipt.Inclusion
}

// Removed reports that e is of a decision that has no row: [Retention] has removed
// it, or there was none.
func (e *Entry) Removed() bool { return e.Body == nil && e.Settlement == nil }

// SettlementEntry returns r's settlement, which it must have, as it is signed:
// the canonical JSON of
//
//	{amount_minor, currency, decision_id, entry, external_ref, organization_id,
//	 outcome, recorded_at, unapproved}
//
// without the members that the row's settlement lacks.
func (r *Record) SettlementEntry() *Entry {
	s := r.Settlement
	e := &Entry{Kind: SettlementEntry, OrganizationID: r.OrganizationID, Key: r.DecisionID, Settlement: s}
	e.Body = canonical(struct {
		AmountMinor    *int64    `json:"amount_minor,omitzero"`
		Currency       string    `json:"currency,omitzero"`
		DecisionID     string    `json:"decision_id"`
		Entry          EntryKind `json:"entry"`
		ExternalRef    string    `json:"external_ref,omitzero"`
		OrganizationID string    `json:"organization_id"`
		Outcome        string    `json:"outcome"`
		RecordedAt     string    `json:"recorded_at"`
		Unapproved     bool      `json:"unapproved,omitzero"`
	}{
		s.AmountMinor, s.Currency, r.DecisionID, e.Kind, s.ExternalRef, r.OrganizationID, s.Outcome,
		s.RecordedAt.UTC().Format(time.RFC3339Nano), s.Unapproved,
	})
	if s.Receipt != nil {
		e.Inclusion = *s.Receipt
	}
	return e
}
