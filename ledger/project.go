package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// project returns the audit projection of e as cfg.Audit has it, with a receipt
// that lacks nothing but its signature.
func project(cfg *Config, t *Turn, e Entry) (*storage.Record, error) {
	in := e.Intent
	if err := decided(e); err != nil {
		return nil, err
	}
	resource, err := in.Readings()
	if err != nil {
		return nil, fmt.Errorf("projecting the resource: %w", err)
	}
	r := &storage.Record{
		OrganizationID: t.org,
		IntentID:       in.IntentID,
		IntentDigest:   IntentDigest(in),
		DecisionID:     t.id.String(),
		PolicyID:       in.PolicyID,
		PolicyVersion:  e.PolicyVersion,
		AgentID:        cfg.Scrub.Text(in.AgentID),
		ActionType:     cfg.Scrub.Text(in.ActionType),
		Resource:       cfg.Scrub.Resource(in.Resource, resource.Projection()),
		Cost:           in.Cost,
		Decision:       e.Result.Decision,
		Reasons:        e.Result.Reasons(),
		IssuedAt:       toNanoseconds(in.IssuedAt),
		DecidedAt:      t.at,
		Credential:     cfg.Scrub.Text(e.Credential),
	}
	projectMetadata(r, cfg, in.Metadata)
	r.Receipt = receipt.Receipt{
		Decision:   r.Decision.String(),
		DecisionID: r.DecisionID,
		Exp:        t.at.Unix() + int64(cfg.TTL/time.Second),
		KeyID:      cfg.Signer.KeyID(),
	}
	r.Receipt.Digest = Payload(r).Digest()
	return r, nil
}

// decided returns nil if e has a decision that a receipt can say.
func decided(e Entry) error {
	d, findings := e.Result.Decision, e.Result.Findings
	if d < engine.Allow || d > engine.Deny || len(findings) == 0 {
		return fmt.Errorf("a result with decision %d and %d findings", d, len(findings))
	}
	for _, f := range findings {
		if !utf8.ValidString(f.Reason) {
			return fmt.Errorf("a reason that is not UTF-8: %q", f.Reason)
		}
	}
	if e.PolicyVersion < 1 || e.PolicyVersion > engine.MaxInteger {
		return fmt.Errorf("policy version %d is out of range", e.PolicyVersion)
	}
	return nil
}

// projectMetadata sets what r keeps of metadata. Of keys that are the same once
// they are scrubbed the first in order keeps its value.
func projectMetadata(r *storage.Record, cfg *Config, metadata map[string]string) {
	if len(metadata) == 0 {
		return
	}
	r.MetadataKeys = slices.AppendSeq(make([]string, 0, len(metadata)), maps.Keys(metadata))
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

// toNanoseconds returns an RFC 3339 time without the digits beyond nanoseconds,
// which say nothing and could hold a card number.
func toNanoseconds(issuedAt string) string {
	whole, fraction, _ := strings.Cut(issuedAt, ".")
	zone := strings.IndexFunc(fraction, func(r rune) bool { return r < '0' || r > '9' })
	if zone <= nanosecondDigits {
		return issuedAt
	}
	return whole + "." + fraction[:nanosecondDigits] + fraction[zone:]
}

const nanosecondDigits = 9

// Payload returns what the digest of r's receipt covers, so that a stored
// record can be held against its receipt: see [receipt.VerifyPayload].
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
	}
}

// IntentDigest returns the digest of in's canonical form, which tells whether
// two intents of the same id are the same: see the package documentation.
func IntentDigest(in *engine.Intent) string {
	var buf [1024]byte
	return receipt.DigestBytes(appendIntent(buf[:0], in))
}

func appendIntent(dst []byte, in *engine.Intent) []byte {
	dst = receipt.AppendString(append(dst, `{"action_type":`...), in.ActionType)
	dst = receipt.AppendString(append(dst, `,"agent_id":`...), in.AgentID)
	if in.Cost != nil {
		dst = receipt.AppendInt(append(dst, `,"cost":{"amount_minor":`...), in.Cost.AmountMinor)
		dst = receipt.AppendString(append(dst, `,"currency":`...), in.Cost.Currency)
		dst = append(dst, '}')
	}
	dst = receipt.AppendString(append(dst, `,"intent_id":`...), in.IntentID)
	dst = receipt.AppendString(append(dst, `,"issued_at":`...), in.IssuedAt)
	if in.Metadata != nil {
		dst = receipt.AppendMap(append(dst, `,"metadata":`...), in.Metadata)
	}
	dst = receipt.AppendString(append(dst, `,"policy_id":`...), in.PolicyID)
	dst = receipt.AppendString(append(dst, `,"resource":`...), in.Resource)
	return append(dst, '}')
}
