package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage/receipt"
)

// Record is a row of the authorization history: the audit projection of one decision with its
// answer. A row never changes, because its Settlement is an [Entry] of its own.
//
// DecisionID is a UUIDv7 in its canonical, lower-case form. History is in the order of decision
// ids. The time in the id must be within [MaxSkew] of DecidedAt, so that a range of times is a
// range of ids.
type Record struct {
	OrganizationID string            `json:"organization_id"`
	IntentID       string            `json:"intent_id"` // a canonical UUID: a backend may refuse another
	IntentDigest   string            `json:"intent_digest"`
	DecisionID     string            `json:"decision_id"`
	PolicyID       string            `json:"policy_id"`
	PolicyVersion  int64             `json:"policy_version"`
	AgentID        string            `json:"agent_id"` // the agent's key: see engine.AgentNames
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
	// of the caller: a key's id, or "operator:" and a subject; empty: not known
	Credential string `json:"credential,omitzero"`
	// of the row, see ledger.AuditDigest; empty: the row is older than audit digests
	AuditDigest string `json:"audit_digest,omitzero"`
	// The rest is the context of the decision: its writer, the revisions of the documents,
	// the session and the approval that the intent named, and the digest of its [Details].
	// Each is absent if it was not kept.
	Writer         string `json:"writer,omitzero"`
	PolicyRevision int64  `json:"policy_revision,omitzero"`
	RulesRevision  int64  `json:"rules_revision,omitzero"`
	AgentRevision  int64  `json:"agent_revision,omitzero"`
	SessionID      string `json:"session_id,omitzero"`
	ApprovalID     string `json:"approval_id,omitzero"`
	DetailsDigest  string `json:"details_digest,omitzero"`
	Sent           Sent   `json:"sent,omitzero"`
	// Findings are the reasons as data, in the same order. A decision whose only finding is
	// [engine.CodePolicyAllowed] has none, and so has a row that an earlier version of writ decided.
	Findings []Finding `json:"findings,omitzero"`
	// LeftOut names the members of the intent that Intent lacks: "resource", "agent_id",
	// "action_type", "issued_at", "session_id", "approval_id", "metadata.<key>" for a value, and
	// "metadata" for a key that is not kept whole. It is sorted, and nil if Intent lacks nothing.
	LeftOut    []string    `json:"left_out,omitzero"`
	Settlement *Settlement `json:"settlement,omitzero"`
}

// Sent has members of the intent as they were sent, if the row has them in another form. A member is
// empty if it holds a secret or user info. Only the audit mode full keeps it.
type Sent struct {
	AgentID  string `json:"agent_id,omitzero"`
	IssuedAt string `json:"issued_at,omitzero"`
	Resource string `json:"resource,omitzero"`
}

// Intent returns the decided intent, as far as the row has it.
func (r *Record) Intent() *engine.Intent {
	return &engine.Intent{
		IntentID: r.IntentID, PolicyID: r.PolicyID, AgentID: cmp.Or(r.Sent.AgentID, r.AgentID),
		ActionType: r.ActionType,
		Resource:   cmp.Or(r.Sent.Resource, r.Resource), Cost: r.Cost, Metadata: r.Metadata,
		IssuedAt: cmp.Or(r.Sent.IssuedAt, r.IssuedAt), SessionID: r.SessionID,
	}
}

// RecordText is an optional text of a record.
type RecordText struct {
	Name  string // of the column in the export
	Short string // in stored rows: two letters, unique and never changed
	Of    func(*Record) *string
}

// RecordTexts are the optional texts of a record. Stores write them, audit digests cover them
// and the export has a column for each, in this order.
var RecordTexts = []RecordText{
	{"credential", "by", func(r *Record) *string { return &r.Credential }},
	{"writer", "wr", func(r *Record) *string { return &r.Writer }},
	{"session_id", "se", func(r *Record) *string { return &r.SessionID }},
	{"approval_id", "ap", func(r *Record) *string { return &r.ApprovalID }},
	{"sent_agent_id", "sa", func(r *Record) *string { return &r.Sent.AgentID }},
	{"sent_issued_at", "si", func(r *Record) *string { return &r.Sent.IssuedAt }},
	{"sent_resource", "sr", func(r *Record) *string { return &r.Sent.Resource }},
}

// TextCalled returns a pointer to r's text with that short name, or nil for an unknown name.
func (r *Record) TextCalled(short string) *string {
	for i := range RecordTexts {
		if RecordTexts[i].Short == short {
			return RecordTexts[i].Of(r)
		}
	}
	return nil
}

// IntentKey returns the key of r's intent. An organization has at most one decision for a key.
// The key is the id of the intent. If the intent is decided under an approval, a zero byte and
// the id of the approval follow.
func (r *Record) IntentKey() string { return IntentKey(r.IntentID, r.ApprovalID) }

// IntentKey returns [Record.IntentKey] for an intent and an approval. approvalID may be empty.
func IntentKey(intentID, approvalID string) string {
	if approvalID == "" {
		return intentID
	}
	return intentID + "\x00" + approvalID
}

// CutIntentKey returns the two ids in an [IntentKey].
func CutIntentKey(key string) (intentID, approvalID string) {
	intentID, approvalID, _ = strings.Cut(key, "\x00")
	return intentID, approvalID
}

// Held reports whether r was held for an approval.
func (r *Record) Held() bool { return r.Decision == engine.ApprovalRequired }

// Metered reports whether r counts in a meter. A decision under an approval does not count: its
// intent was counted when it was held for the approval.
func (r *Record) Metered() bool { return r.ApprovalID == "" }

// Found reports whether r has a reason with this code.
func (r *Record) Found(code engine.Code) bool {
	prefix := string(code) + ":"
	return slices.ContainsFunc(r.Reasons, func(reason string) bool { return strings.HasPrefix(reason, prefix) })
}

// Removed reports whether [Retention] has removed r. A removed record has only OrganizationID,
// IntentID, ApprovalID and DecisionID.
func (r *Record) Removed() bool { return r.Decision == 0 }

// MaxBody is the longest request body in bytes. It allows a batch of 100 intents of 40 KB, or a
// list of 10,000 values of 400 bytes. A row is at most twice as long.
const MaxBody = 4 << 20

// MaxListBytes is the greatest size of all lists of an organization together, by engine.List.Size.
// They are kept in memory with its rules.
const MaxListBytes = 2 * MaxBody

// MaxLibraryBytes is the greatest size of all libraries of an organization together, by
// engine.Library.Size. They are compiled together, and kept in memory with its rules.
const MaxLibraryBytes = 256 << 10

// MaxSkew bounds the difference between a decision id's time and the record's DecidedAt.
const MaxSkew = time.Minute

// Settlement is the outcome of an action.
type Settlement struct {
	Outcome     string    `json:"outcome"` // executed, failed or skipped
	AmountMinor *int64    `json:"amount_minor,omitzero"`
	Currency    string    `json:"currency,omitzero"`
	ExternalRef string    `json:"external_ref,omitzero"`
	RecordedAt  time.Time `json:"recorded_at"`
	// Unapproved says that the action was executed although the decision did not allow it.
	// [Record.Settle] sets it. Such a settlement means that the caller does not enforce decisions.
	Unapproved bool `json:"unapproved,omitzero"`
	// Releases says that the settlement may lower the counts of rules. It depends on the credential that
	// records the settlement, so it is stored: a window that is read again must have the same count.
	Releases bool `json:"releases,omitzero"`
	// Receipt proves the settlement. It is nil until the settlement is stored.
	Receipt *receipt.Inclusion `json:"receipt,omitzero"`
}

// Executed is the outcome of an action that was carried out.
const Executed = "executed"

// IsOutcome reports whether s is an outcome that a settlement can have.
func IsOutcome(s string) bool { return s == Executed || s == "failed" || s == "skipped" }

// Settle sets r.Settlement to s, and sets its Unapproved.
func (r *Record) Settle(s Settlement) {
	s.Unapproved = s.Outcome == Executed && r.Decision != engine.Allow
	r.Settlement = &s
}

// Filter selects history rows. A zero field selects all rows.
type Filter struct {
	Decision    engine.Decision
	AgentIDs    []string // one of these
	PolicyID    string
	ActionTypes []string  // one of these
	From, To    time.Time // start inclusive, end exclusive

	IntentID, SessionID, Credential string
	ApprovalID                      string // what was decided under this approval
	// RuleID and Code are of any finding. [engine.CodePolicyAllowed] also selects allows without one.
	RuleID, Code string
}

// History reads the records that a [Log] has appended.
type History interface {
	// ListRecords returns org's records that f selects, newest first. A page must end after MaxRead
	// rows that f does not select. So it may be short or empty although more records follow. Only an
	// empty next means that the list has ended.
	ListRecords(ctx context.Context, org string, f Filter, p Page) (records []*Record, next string, err error)
	// Record returns the record of a decision, or ErrNotFound.
	Record(ctx context.Context, org, decisionID string) (*Record, error)
}

// SameSettlement reports whether a and b are equal in all fields except RecordedAt, Unapproved,
// Releases and Receipt.
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
	for _, p := range [...][2]string{
		{f.IntentID, r.IntentID}, {f.SessionID, r.SessionID}, {f.Credential, r.Credential},
		{f.ApprovalID, r.ApprovalID},
	} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	return f.MaySelect(r) && f.finds(r)
}

// Reads reports whether f selects by findings.
func (f *Filter) Reads() bool { return f.RuleID != "" || f.Code != "" }

func (f *Filter) finds(r *Record) bool {
	rule, code := f.RuleID == "", f.Code == ""
	if f.Code == string(engine.CodePolicyAllowed) && len(r.Findings) == 0 {
		code = r.Decision == engine.Allow
	}
	for i := range r.Findings {
		rule = rule || r.Findings[i].RuleID == f.RuleID
		code = code || r.Findings[i].Code == f.Code
	}
	return rule && code
}

// MaySelect is [Filter.Selects] by the decision, the agent, the policy, the action type and the time
// alone. A store compares these before it reads the rest of a row.
func (f *Filter) MaySelect(r *Record) bool {
	switch {
	case f.Decision != 0 && f.Decision != r.Decision,
		len(f.AgentIDs) > 0 && !slices.Contains(f.AgentIDs, r.AgentID),
		f.PolicyID != "" && f.PolicyID != r.PolicyID,
		len(f.ActionTypes) > 0 && !slices.Contains(f.ActionTypes, r.ActionType),
		!f.From.IsZero() && r.DecidedAt.Before(f.From),
		!f.To.IsZero() && !r.DecidedAt.Before(f.To):
		return false
	}
	return true
}
