package receipt

// Payload has the grounds and the content of a decision. The digest of a receipt covers the
// payload. A Payload is not sent. A client that knows its fields can compare it with the receipt by
// [VerifyPayload].
type Payload struct {
	OrganizationID string
	IntentID       string
	IntentDigest   string // DigestBytes of the intent's canonical JSON
	PolicyID       string
	PolicyVersion  int64
	Decision       string
	DecisionID     string
	Reasons        []string // in the same order as in the answer
	Exp            int64    // unix seconds
	AuditDigest    string   // the digest of the decision's row in the history; empty in older receipts
	ApprovalID     string   // the approval that the intent used; empty if it used none
}

// AppendCanonical appends the payload's canonical JSON. The strings must be valid UTF-8: see
// AppendString. The integers must be within AppendInt's range. It does not allocate when dst has
// room.
func (p Payload) AppendCanonical(dst []byte) []byte {
	dst = append(dst, '{')
	if p.ApprovalID != "" {
		dst = append(AppendMember(dst, `"approval_id":`, p.ApprovalID), ',')
	}
	if p.AuditDigest != "" {
		dst = append(AppendMember(dst, `"audit_digest":`, p.AuditDigest), ',')
	}
	dst = AppendMember(dst, `"decision":`, p.Decision)
	dst = AppendMember(dst, `,"decision_id":`, p.DecisionID)
	dst = AppendInt(append(dst, `,"exp":`...), p.Exp)
	dst = AppendMember(dst, `,"intent_digest":`, p.IntentDigest)
	dst = AppendMember(dst, `,"intent_id":`, p.IntentID)
	dst = AppendMember(dst, `,"organization_id":`, p.OrganizationID)
	dst = AppendMember(dst, `,"policy_id":`, p.PolicyID)
	dst = AppendInt(append(dst, `,"policy_version":`...), p.PolicyVersion)
	dst = AppendStrings(append(dst, `,"reasons":`...), p.Reasons)
	return append(dst, '}')
}

// Digest returns [DigestBytes] of the canonical form.
func (p Payload) Digest() string {
	var buf [1024]byte
	return DigestBytes(p.AppendCanonical(buf[:0]))
}
