package storage

import (
	"time"

	"writ.example/writ/storage/receipt"
)

// EntryKind is the kind of an [Entry].
type EntryKind string

// The kinds of entries. A comment says what the Key of such an entry is.
const (
	SettlementEntry EntryKind = "settlement" // the decision's id
	VerdictEntry    EntryKind = "verdict"    // the held decision's id
	RetentionEntry  EntryKind = "retention"  // a UUIDv7
	ChangeEntry     EntryKind = "change"     // kind/id/revision of the document
	ImportEntry     EntryKind = "import"     // the export's id
	AbandonEntry    EntryKind = "abandoned"  // a UUIDv7
)

// Entry is a leaf of the chain that does not contain a decision. It never changes.
type Entry struct {
	Kind           EntryKind
	OrganizationID string
	Key            string // unique among the organization's entries of this kind
	// Body is the content of the leaf, see package receipt. A backend need not keep the body of a
	// settlement: [Record.SettlementEntry] can compute it.
	Body []byte
	// Settlement is the content of a settlement entry. When the decision is read, its record has
	// this settlement and the receipt.
	Settlement *Settlement
	// Inclusion is set by [Seal].
	receipt.Inclusion
}

// Removed reports whether e settles a decision that has no row. Either the decision never existed,
// or [Retention] has removed its row.
func (e *Entry) Removed() bool { return e.Body == nil && e.Settlement == nil }

// SettlementEntry returns the entry of r.Settlement, which must not be nil. The entry's body is the
// canonical JSON of
//
//	{amount_minor, currency, decision_id, entry, external_ref, organization_id,
//	 outcome, recorded_at, releases, unapproved}
//
// Members that the settlement lacks are left out.
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
		Releases       bool      `json:"releases,omitzero"`
		Unapproved     bool      `json:"unapproved,omitzero"`
	}{
		s.AmountMinor, s.Currency, r.DecisionID, e.Kind, s.ExternalRef, r.OrganizationID, s.Outcome,
		s.RecordedAt.UTC().Format(time.RFC3339Nano), s.Releases, s.Unapproved,
	})
	if s.Receipt != nil {
		e.Inclusion = *s.Receipt
	}
	return e
}
