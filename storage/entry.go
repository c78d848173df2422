package storage

import (
	"time"

	"writ/storage/receipt"
)

// EntryKind is the kind of an [Entry].
type EntryKind string

// The kinds of entries. The comment of each kind says what the keys of its entries are.
const (
	SettlementEntry EntryKind = "settlement" // id of the decision
	VerdictEntry    EntryKind = "verdict"    // id of the held decision
	RetentionEntry  EntryKind = "retention"  // UUIDv7
	ChangeEntry     EntryKind = "change"     // kind/id/revision of the document
	ImportEntry     EntryKind = "import"     // id of the export
	AbandonEntry    EntryKind = "abandoned"  // UUIDv7
)

// Entry is a leaf of the chain that is not a decision. It never changes.
type Entry struct {
	Kind           EntryKind
	OrganizationID string
	Key            string // unique in its organization and kind
	// Body is the content of the leaf, see package receipt. A backend need not keep the body of
	// a settlement, because it follows from Settlement.
	Body []byte
	// Settlement is the content of a settlement entry. A read of the decision with the id Key
	// returns it in the record, with its receipt.
	Settlement *Settlement
	// Inclusion is set by [Seal].
	receipt.Inclusion
}

// Removed reports whether e is the settlement of a decision without a row. Either the decision
// never existed, or [Retention] has removed it.
func (e *Entry) Removed() bool { return e.Body == nil && e.Settlement == nil }

// SettlementEntry returns the entry of r's settlement, which r must have. The body of the entry
// is the canonical JSON of
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
