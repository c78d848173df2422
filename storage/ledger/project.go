package ledger

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// project returns the audit projection of e in the mode cfg.Audit. Its receipt is complete
// except for the signature.
func project(cfg *Config, e *Entry) (*storage.Record, error) {
	in, t := e.Intent, e.Reservation
	if err := checkDecision(e); err != nil {
		return nil, err
	}
	resource, err := in.Readings()
	if err != nil {
		return nil, fmt.Errorf("projecting the resource: %w", err)
	}
	var made texts
	size := idLen + 3*receipt.DigestLen
	for key := range in.Metadata {
		size += len(storage.MetadataField) + len(key)
	}
	made.Grow(size)
	var buf [2048]byte
	r := &storage.Record{
		// All records of an organization share one string, so that comparing two of them
		// compares pointers first.
		OrganizationID: t.quota.key.org,
		IntentID:       in.IntentID,
		IntentDigest:   made.digest(appendIntent(buf[:0], in)),
		DecisionID:     made.id(t.id),
		PolicyID:       in.PolicyID,
		PolicyVersion:  e.PolicyVersion,
		AgentID:        e.Agent(cfg.Scrub),
		ActionType:     cfg.Scrub.Identity(in.ActionType),
		Resource:       cfg.Scrub.Resource(in.Resource, resource.Projection()),
		Cost:           in.Cost,
		Decision:       e.Result.Decision,
		Reasons:        e.Result.Reasons(),
		IssuedAt:       toNanoseconds(in.IssuedAt),
		DecidedAt:      t.at,
		Credential:     KeptCredential(e.Credential, cfg.Scrub.Identity),
		Writer:         cfg.Writer,
		PolicyRevision: e.PolicyRevision,
		RulesRevision:  e.RulesRevision,
		AgentRevision:  e.AgentRevision,
		ApprovalID:     e.ApprovalID,
		DetailsDigest:  e.DetailsDigest,
		Findings:       projectFindings(&e.Result, cfg.Scrub),
	}
	if in.SessionID != "" {
		r.SessionID = cfg.Scrub.Identity(in.SessionID)
	}
	projectMetadata(r, cfg, in.Metadata)
	if cfg.Audit == Full {
		r.Sent = sent(cfg.Scrub, in, r)
	}
	r.LeftOut = leftOut(in, r, cfg.Scrub, &made)
	r.Receipt = receipt.Receipt{
		Decision:   r.Decision.String(),
		DecisionID: r.DecisionID,
		Exp:        t.at.Unix() + int64(cfg.TTL/time.Second),
		KeyID:      cfg.signer.Load().KeyID(),
	}
	r.AuditDigest = made.digest(appendAudit(buf[:0], r))
	r.Receipt.Digest = made.digest(Payload(r).AppendCanonical(buf[:0]))
	return r, nil
}

// Agent returns the key of e's agent as a row has it.
func (e *Entry) Agent(scrub interface {
	Name(raw, folded string) string
}) string {
	names := e.Names.Of(e.Intent)
	return scrub.Name(names.Keyed(), names.Key())
}

// texts holds all texts of a record in a single allocation.
type texts struct{ strings.Builder }

func (t *texts) add(text []byte) string {
	start := t.Len()
	t.Write(text)
	return t.String()[start:]
}

// joined returns prefix and s as one text.
func (t *texts) joined(prefix, s string) string {
	start := t.Len()
	t.WriteString(prefix)
	t.WriteString(s)
	return t.String()[start:]
}

// digest is [receipt.DigestBytes].
func (t *texts) digest(canonical []byte) string {
	var buf [receipt.DigestLen]byte
	return t.add(receipt.AppendDigest(buf[:0], canonical))
}

const idLen = 36

func (t *texts) id(id uuid.UUID) string {
	text, _ := id.MarshalText() // never fails
	return t.add(text)
}

// KeptCredential returns a credential in the form that records keep. The subject of an
// operator is chosen by an issuer and often an e-mail address, so identity, a
// [Scrubber.Identity], scrubs it. The id of an API key comes from the service and stays,
// so that the key's holder can find its own rows by the id.
func KeptCredential(asked string, identity func(string) string) string {
	subject, ok := strings.CutPrefix(asked, OperatorPrefix)
	if !ok {
		return asked
	}
	if kept := identity(subject); kept != subject {
		return OperatorPrefix + kept
	}
	return asked
}

// checkDecision returns nil if a receipt can express e's decision.
func checkDecision(e *Entry) error {
	d, findings := e.Result.Decision, e.Result.Findings
	if d < engine.Allow || d > engine.Deny || len(findings) == 0 {
		return fmt.Errorf("a result with decision %d and %d findings", d, len(findings))
	}
	for _, f := range findings {
		if !utf8.ValidString(f.Reason) {
			return fmt.Errorf("a reason that is not UTF-8: %q", f.Reason)
		}
	}
	if e.PolicyVersion < 1 || e.PolicyVersion > condition.MaxInteger {
		return fmt.Errorf("policy version %d is out of range", e.PolicyVersion)
	}
	return nil
}

// projectMetadata sets r's metadata and its keys. If two keys are equal after scrubbing,
// the value of the first one in order is kept. Metadata without keys has no values to leave out, so
// both modes keep it.
func projectMetadata(r *storage.Record, cfg *Config, metadata map[string]string) {
	if len(metadata) == 0 {
		if metadata != nil {
			r.Metadata = map[string]string{}
		}
		return
	}
	r.MetadataKeys = make([]string, 0, len(metadata))
	for key := range metadata {
		r.MetadataKeys = append(r.MetadataKeys, key)
	}
	slices.Sort(r.MetadataKeys)
	var values map[string]string
	if cfg.Audit == Full {
		r.Metadata, values = make(map[string]string, len(metadata)), cfg.Scrub.Values(metadata)
	}
	for i, key := range r.MetadataKeys {
		kept := cfg.Scrub.Text(key)
		r.MetadataKeys[i] = kept
		if _, taken := r.Metadata[kept]; cfg.Audit == Full && !taken {
			r.Metadata[kept] = values[key]
		}
	}
	slices.Sort(r.MetadataKeys)
	r.MetadataKeys = slices.Compact(r.MetadataKeys)
}

// sent returns the members of in that r has in another form. It leaves out members with a secret. It
// also leaves out a resource with user info or with a [grant].
func sent(scrub Scrubber, in *engine.Intent, r *storage.Record) (s storage.Sent) {
	if in.AgentID != r.AgentID && scrub.Identity(in.AgentID) == in.AgentID {
		s.AgentID = in.AgentID
	}
	if in.IssuedAt != r.IssuedAt {
		// A scrubber takes the digits after a point for a fraction, in which it seeks no card number.
		digits := in.IssuedAt[strings.IndexByte(in.IssuedAt, '.')+1:]
		if scrub.Identity(in.IssuedAt) == in.IssuedAt && scrub.Identity(digits) == digits {
			s.IssuedAt = in.IssuedAt
		}
	}
	raw := in.Resource
	if raw != r.Resource && !dropsUserInfo(raw, r.Resource) && !hasGrant(raw) && scrub.Resource(raw, raw) == raw {
		s.Resource = raw
	}
	return s
}

// dropsUserInfo reports whether kept lacks an @ of the resource raw. Such an @ may end user info.
func dropsUserInfo(raw, kept string) bool {
	count := func(s string) int { return strings.Count(s, "@") + strings.Count(strings.ToLower(s), "%40") }
	return count(raw) > count(kept)
}

// grant finds a parameter of a query or a fragment that grants access to every holder of the link. The
// scrubber finds parameters whose names mean a secret in every text. The names here mean a secret only in
// a link. The HTTP conventions of OpenTelemetry redact the first four, and code is OAuth's.
var grant = regexp.MustCompile(`(?i)[?&#;/]([^?&#;/=]*[-_.])?` +
	`(awsaccesskeyid|signature|sig|x-goog-signature|code|auth|session|sid|ticket|hmac|jwt|otp|samlresponse|` +
	`token|key|key-pair-id|policy)=`)

// hasGrant reports whether the resource raw has a [grant], as written or decoded up to 4 times.
func hasGrant(raw string) bool {
	for range 4 {
		if grant.MatchString(raw) {
			return true
		}
		if !strings.Contains(raw, "%") {
			return false
		}
		raw = escape.ReplaceAllStringFunc(raw, func(s string) string {
			b, _ := strconv.ParseUint(s[1:], 16, 8) // escape matches two hexadecimal digits
			return string([]byte{byte(b)})
		})
	}
	return grant.MatchString(raw)
}

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// toNanoseconds returns an RFC 3339 time without the digits beyond nanoseconds. Those
// digits mean nothing and could hold a card number.
func toNanoseconds(issuedAt string) string {
	whole, fraction, _ := strings.Cut(issuedAt, ".")
	zone := strings.IndexFunc(fraction, func(r rune) bool { return r < '0' || r > '9' })
	if zone <= nanosecondDigits {
		return issuedAt
	}
	return whole + "." + fraction[:nanosecondDigits] + fraction[zone:]
}

const nanosecondDigits = 9

// Payload returns the payload of r's receipt. [receipt.VerifyPayload] compares the two.
func Payload(r *storage.Record) receipt.Payload {
	return receipt.Payload{
		OrganizationID: r.OrganizationID,
		IntentID:       r.IntentID,
		IntentDigest:   r.IntentDigest,
		PolicyID:       r.PolicyID,
		PolicyVersion:  r.PolicyVersion,
		Decision:       r.Receipt.Decision,
		DecisionID:     r.DecisionID,
		Reasons:        r.Reasons,
		Exp:            r.Receipt.Exp,
		AuditDigest:    r.AuditDigest,
		ApprovalID:     r.ApprovalID,
	}
}

// AuditDigest returns the digest of r's canonical JSON without the members audit_digest,
// receipt and settlement, which are added later.
func AuditDigest(r *storage.Record) string {
	var buf [2048]byte
	return receipt.DigestBytes(appendAudit(buf[:0], r))
}

func appendAudit(dst []byte, r *storage.Record) []byte {
	dst = receipt.AppendMember(dst, `{"action_type":`, r.ActionType)
	dst = receipt.AppendMember(dst, `,"agent_id":`, r.AgentID)
	dst = appendNumber(dst, `,"agent_revision":`, r.AgentRevision)
	dst = appendOptional(dst, `,"approval_id":`, r.ApprovalID)
	if r.Cost != nil {
		dst = receipt.Cost(*r.Cost).AppendCanonical(append(dst, `,"cost":`...))
	}
	dst = appendOptional(dst, `,"credential":`, r.Credential)
	dst = r.DecidedAt.AppendFormat(append(dst, `,"decided_at":"`...), time.RFC3339Nano)
	dst = receipt.AppendMember(dst, `","decision":`, r.Decision.String())
	dst = receipt.AppendMember(dst, `,"decision_id":`, r.DecisionID)
	dst = appendOptional(dst, `,"details_digest":`, r.DetailsDigest)
	if len(r.Findings) > 0 {
		dst = AppendFindings(append(dst, `,"findings":`...), r.Findings)
	}
	dst = receipt.AppendMember(dst, `,"intent_digest":`, r.IntentDigest)
	dst = receipt.AppendMember(dst, `,"intent_id":`, r.IntentID)
	dst = receipt.AppendMember(dst, `,"issued_at":`, r.IssuedAt)
	if len(r.LeftOut) > 0 {
		dst = receipt.AppendStrings(append(dst, `,"left_out":`...), r.LeftOut)
	}
	if r.Metadata != nil {
		dst = receipt.AppendMap(append(dst, `,"metadata":`...), r.Metadata)
	}
	if r.MetadataKeys != nil {
		dst = receipt.AppendStrings(append(dst, `,"metadata_keys":`...), r.MetadataKeys)
	}
	dst = receipt.AppendMember(dst, `,"organization_id":`, r.OrganizationID)
	dst = receipt.AppendMember(dst, `,"policy_id":`, r.PolicyID)
	dst = appendNumber(dst, `,"policy_revision":`, r.PolicyRevision)
	dst = receipt.AppendInt(append(dst, `,"policy_version":`...), r.PolicyVersion)
	dst = receipt.AppendStrings(append(dst, `,"reasons":`...), r.Reasons)
	dst = receipt.AppendMember(dst, `,"resource":`, r.Resource)
	dst = appendNumber(dst, `,"rules_revision":`, r.RulesRevision)
	dst = appendSent(dst, &r.Sent)
	dst = appendOptional(dst, `,"session_id":`, r.SessionID)
	dst = appendOptional(dst, `,"writer":`, r.Writer)
	return append(dst, '}')
}

// appendSent appends the member sent, unless it is empty.
func appendSent(dst []byte, s *storage.Sent) []byte {
	if *s == (storage.Sent{}) {
		return dst
	}
	dst = append(dst, `,"sent":`...)
	members := len(dst)
	dst = appendOptional(dst, `,"agent_id":`, s.AgentID)
	dst = appendOptional(dst, `,"issued_at":`, s.IssuedAt)
	dst = appendOptional(dst, `,"resource":`, s.Resource)
	dst[members] = '{' // in place of the first comma
	return append(dst, '}')
}

// appendOptional appends a member, unless it is empty.
func appendOptional(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return receipt.AppendMember(dst, name, s)
}

func appendNumber(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return receipt.AppendInt(append(dst, name...), n)
}

// IntentDigest returns the digest of in's canonical form. Two intents with the same id are
// the same intent if their digests are equal: see the package documentation.
func IntentDigest(in *engine.Intent) string {
	var buf [1024]byte
	return receipt.DigestBytes(appendIntent(buf[:0], in))
}

func appendIntent(dst []byte, in *engine.Intent) []byte {
	return receipt.Intent{
		ActionType: in.ActionType, AgentID: in.AgentID, Cost: (*receipt.Cost)(in.Cost), IntentID: in.IntentID,
		IssuedAt: in.IssuedAt, Metadata: in.Metadata, PolicyID: in.PolicyID, Resource: in.Resource,
		SessionID: in.SessionID,
	}.AppendCanonical(dst)
}
