package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"writ/engine"
	"writ/storage"
)

// A history row has the fields that are not in its key. JSON would be twice the size and
// take fifteen times as long to write; BenchmarkRecord compares them.
//
//	row        = version(1) filtered rest
//	version    = 06
//	filtered   = decision(1) time text(policy-id) text(agent-id) text(action-type)
//	rest       = text(intent-id) text(intent-digest) zigzag(policy-version)
//	             text(resource) [cost] texts(metadata-keys) [metadata]
//	             texts(reasons) receipt text(issued-at) digest(audit-digest)
//	             [revisions] digest(details-digest) optional
//	revisions  = zigzag(policy-revision) zigzag(rules-revision) zigzag(agent-revision)
//	optional   = uvarint(n) n * (short(2) text), of storage.RecordTexts
//	cost       = zigzag(amount-minor) text(currency)
//	metadata   = uvarint(n) n * (text(key) text(value)), by key
//	receipt    = text(decision) text(decision-id) text(digest) zigzag(exp)
//	             text(sig) text(kid)
//	settlement = text(outcome) [zigzag(amount-minor)] text(currency)
//	             text(external-ref) time
//	time       = zigzag(Unix seconds) uvarint(nanoseconds), in UTC
//	digest     = 00 for the empty text | 01 and the 32 bytes of a SHA-256 | 02 text
//	text       = uvarint(length) bytes
//	texts      = 00 for none | uvarint(n+1) n * text
//	[x]        = 00 | 01 x
//
// The receipt's decision and decision-id are written as empty texts if they equal the
// record's own, as they should. The decision tells whether a settlement is unapproved, so
// that is not written. The settlement is beside the row: see entries.go.
const recordVersion = 6

// encoder appends to its bytes.
type encoder []byte

func (e *encoder) byte(b byte) { *e = append(*e, b) }

func (e *encoder) uint(v uint64) { *e = binary.AppendUvarint(*e, v) }

func (e *encoder) int(v int64) { *e = binary.AppendVarint(*e, v) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) texts(list []string) {
	if list == nil {
		e.byte(0)
		return
	}
	e.uint(uint64(len(list)) + 1)
	for _, s := range list {
		e.text(s)
	}
}

// digestPrefix is the prefix of a digest as text; the hex digits follow it.
const digestPrefix = "sha256:"

func (e *encoder) digest(s string) {
	if s == "" {
		e.byte(0)
		return
	}
	var sum [sha256.Size]byte
	var text [2 * len(sum)]byte
	if digits, ok := strings.CutPrefix(s, digestPrefix); ok && copy(text[:], digits) == len(digits) {
		_, err := hex.Decode(sum[:], text[:])
		hex.Encode(text[:], sum[:])
		if err == nil && string(text[:]) == digits { // no capitals
			e.byte(1)
			*e = append(*e, sum[:]...)
			return
		}
	}
	e.byte(2)
	e.text(s)
}

func (e *encoder) time(t time.Time) {
	e.int(t.Unix())
	e.uint(uint64(t.Nanosecond()))
}

// present writes whether an optional part follows, and returns that.
func (e *encoder) present(is bool) bool {
	if is {
		e.byte(1)
	} else {
		e.byte(0)
	}
	return is
}

// row appends r's row, bare without what signs its receipt.
func (e *encoder) row(r *storage.Record, bare bool) {
	e.byte(recordVersion)
	e.byte(byte(r.Decision))
	e.time(r.DecidedAt)
	e.text(r.PolicyID)
	e.text(r.AgentID)
	e.text(r.ActionType)
	e.text(r.IntentID)
	e.text(r.IntentDigest)
	e.int(r.PolicyVersion)
	e.text(r.Resource)
	if e.present(r.Cost != nil) {
		e.int(r.Cost.AmountMinor)
		e.text(r.Cost.Currency)
	}
	e.texts(r.MetadataKeys)
	if e.present(r.Metadata != nil) {
		e.metadata(r.Metadata)
	}
	e.texts(r.Reasons)
	e.receipt(r, bare)
	e.text(r.IssuedAt)
	e.digest(r.AuditDigest)
	if e.present(r.PolicyRevision != 0 || r.RulesRevision != 0 || r.AgentRevision != 0) {
		e.int(r.PolicyRevision)
		e.int(r.RulesRevision)
		e.int(r.AgentRevision)
	}
	e.digest(r.DetailsDigest)
	e.optional(r)
}

func (e *encoder) optional(r *storage.Record) {
	n := uint64(0)
	for i := range storage.RecordTexts {
		if *storage.RecordTexts[i].Of(r) != "" {
			n++
		}
	}
	e.uint(n)
	for i := range storage.RecordTexts {
		if t := &storage.RecordTexts[i]; *t.Of(r) != "" {
			*e = append(*e, t.Short...)
			e.text(*t.Of(r))
		}
	}
}

func (e *encoder) metadata(m map[string]string) {
	e.uint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.text(k)
		e.text(m[k])
	}
}

func (e *encoder) receipt(r *storage.Record, bare bool) {
	e.text(unless(r.Receipt.Decision, r.Decision.String()))
	e.text(unless(r.Receipt.DecisionID, r.DecisionID))
	e.text(r.Receipt.Digest)
	e.int(r.Receipt.Exp)
	if bare {
		e.text("")
		e.text("")
		return
	}
	e.text(r.Receipt.Sig)
	e.text(r.Receipt.KeyID)
}

// unless returns s, or "" when it is usual.
func unless(s, usual string) string {
	if s == usual {
		return ""
	}
	return s
}

func (e *encoder) settlement(s *storage.Settlement) {
	e.text(s.Outcome)
	if e.present(s.AmountMinor != nil) {
		e.int(*s.AmountMinor)
	}
	e.text(s.Currency)
	e.text(s.ExternalRef)
	e.time(s.RecordedAt)
}

var errCorrupt = fmt.Errorf("a stored history row is %w", storage.ErrCorrupt)

// filtered reads a row's version and the fields that a filter uses.
func (d *decoder) filtered(r *storage.Record) {
	if d.byte() != recordVersion {
		d.fail("version")
	}
	r.Decision = engine.Decision(d.byte())
	r.DecidedAt = d.time()
	r.PolicyID = d.text()
	r.AgentID = d.text()
	r.ActionType = d.text()
}

// skips reports whether f does not select the row v. It allocates nothing: most rows are
// read no further.
func skips(v []byte, f *storage.Filter) (bool, error) {
	if f == nil {
		return false, nil
	}
	var r storage.Record // its texts are v's memory, which is not kept
	d := decoder{rest: unsafe.String(unsafe.SliceData(v), len(v))}
	d.filtered(&r)
	return d.err != nil || !f.Selects(&r), d.err
}

// parseRecord reads the row v of decision id. It returns nil without reading all of v if
// f does not select it.
func parseRecord(org string, id uuid.UUID, v []byte, f *storage.Filter) (*storage.Record, error) {
	if skip, err := skips(v, f); skip {
		return nil, err
	}
	d := decoder{rest: string(v)}
	r := &storage.Record{OrganizationID: org, DecisionID: id.String()}
	d.filtered(r)
	r.IntentID = d.text()
	r.IntentDigest = d.text()
	r.PolicyVersion = d.int()
	r.Resource = d.text()
	if d.present() {
		r.Cost = &engine.Cost{AmountMinor: d.int(), Currency: d.text()}
	}
	r.MetadataKeys = d.texts()
	if d.present() {
		r.Metadata = d.metadata()
	}
	r.Reasons = d.texts()
	d.receipt(r)
	r.IssuedAt = d.text()
	r.AuditDigest = d.digest()
	if d.present() {
		r.PolicyRevision, r.RulesRevision, r.AgentRevision = d.int(), d.int(), d.int()
	}
	r.DetailsDigest = d.digest()
	d.optional(r)
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%w: %d bytes too many", errCorrupt, len(d.rest))
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}
