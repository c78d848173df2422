package mongodb

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"writ/storage"
)

// A record is stored as this document. Unset fields are left out, except the first ten.
// The code reads and writes it without reflection, which takes three times as long.
//
//	_id  text(org) intent       d   decision id          at  time of decision, in milliseconds
//	o    organization           k   decision             ns  its nanoseconds below that
//	a    agent id               p   policy id            t   action type
//	s    receipt: {h: digest, e: exp, s: sig, kid, and where they are not the record's k: decision, d: decision id}
//
//	pv   policy version         id  intent digest        r   resource
//	c    cost: {n, c}           mk  metadata keys        m   metadata: keys and values in turn
//	w    reasons                i   issued at            by  credential
//	ad   audit digest           wr  writer               pr, rr, ar  revisions of policy, rules, agent
//	se   session id             ap  approval id          dd  digest of details
//	st   settlement: {o: outcome, at, ns: recorded at, s: sig, kid, n: amount, c: currency, x: external ref}
//
// Digests and sigs are binary if their texts are canonical, which genuine ones are.

// intentKey is the key of an intent, which is decided once; key is [storage.Record.IntentKey].
func intentKey(org, key string) []byte { return append(storage.Text(org), key...) }

// intentKeys yields the bounds of org's keys of intents of each length: the server orders
// keys by that first. The longest is of two UUIDs.
func intentKeys(org string) iter.Seq2[[]byte, []byte] {
	id := uuid.Nil.String()
	return func(yield func(lower, last []byte) bool) {
		for n := 1; n <= len(storage.IntentKey(id, id)); n++ {
			if !yield(append(storage.Text(org), make([]byte, n)...), append(storage.Text(org), bytes.Repeat([]byte{0xff}, n)...)) {
				return
			}
		}
	}
}

// document is a BSON document under construction.
type document []byte

func (d *document) start(key string) int32 {
	var at int32
	if key == "" {
		at, *d = bsoncore.AppendDocumentStart(*d)
	} else {
		at, *d = bsoncore.AppendDocumentElementStart(*d, key)
	}
	return at
}

func (d *document) end(at int32) {
	*d, _ = bsoncore.AppendDocumentEnd(*d, at) // fails only if at is no start
}

func (d *document) binary(key string, b []byte) { *d = bsoncore.AppendBinaryElement(*d, key, 0, b) }
func (d *document) text(key, s string)          { *d = bsoncore.AppendStringElement(*d, key, s) }
func (d *document) int32(key string, n int32)   { *d = bsoncore.AppendInt32Element(*d, key, n) }
func (d *document) int64(key string, n int64)   { *d = bsoncore.AppendInt64Element(*d, key, n) }

func (d *document) time(t time.Time) {
	*d = bsoncore.AppendDateTimeElement(*d, "at", t.UnixMilli())
	d.int32("ns", below(t))
}

// optional is text, left out if it is empty.
func (d *document) optional(key, s string) {
	if s != "" {
		d.text(key, s)
	}
}

func (d *document) optionalInt(key string, n int64) {
	if n != 0 {
		d.int64(key, n)
	}
}

func (d *document) texts(key string, list []string) {
	if len(list) == 0 {
		return
	}
	at, b := bsoncore.AppendArrayElementStart(*d, key)
	for i, s := range list {
		b = bsoncore.AppendStringElement(b, indexKey(i), s)
	}
	*d, _ = bsoncore.AppendArrayEnd(b, at) // fails only if at is no start
}

// digest appends a text. A digest is stored as its bytes.
func (d *document) digest(key, s string) {
	var space [32]byte
	if b, ok := digestBytes(space[:0], s); ok {
		d.binary(key, b)
	} else {
		d.optional(key, s)
	}
}

// sig appends a text. Base64url is stored as its bytes.
func (d *document) sig(key, s string) {
	var space [1024]byte // a proof among 4 million leaves
	if b, ok := sigBytes(space[:0], s); ok {
		d.binary(key, b)
	} else {
		d.optional(key, s)
	}
}

// row appends the row of a record with a known decision id.
func (d *document) row(key string, r *storage.Record, id uuid.UUID) {
	row := d.start(key)
	d.binary("_id", intentKey(r.OrganizationID, r.IntentKey()))
	d.text("o", r.OrganizationID)
	d.binary("d", id[:])
	d.int32("k", int32(r.Decision))
	d.text("a", r.AgentID)
	d.text("p", r.PolicyID)
	d.text("t", r.ActionType)
	d.time(r.DecidedAt)
	d.receipt(r)
	d.optionalInt("pv", r.PolicyVersion)
	d.digest("id", r.IntentDigest)
	d.optional("r", r.Resource)
	if r.Cost != nil {
		cost := d.start("c")
		d.int64("n", r.Cost.AmountMinor)
		d.optional("c", r.Cost.Currency)
		d.end(cost)
	}
	d.texts("mk", r.MetadataKeys)
	if len(r.Metadata) > 0 {
		pairs := make([]string, 0, 2*len(r.Metadata))
		for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
			pairs = append(pairs, k, r.Metadata[k])
		}
		d.texts("m", pairs)
	}
	d.texts("w", r.Reasons)
	d.optional("i", r.IssuedAt)
	d.digest("ad", r.AuditDigest)
	d.optionalInt("pr", r.PolicyRevision)
	d.optionalInt("rr", r.RulesRevision)
	d.optionalInt("ar", r.AgentRevision)
	d.digest("dd", r.DetailsDigest)
	for i := range storage.RecordTexts {
		t := &storage.RecordTexts[i]
		d.optional(t.Short, *t.Of(r))
	}
	if r.Settlement != nil { // it was imported
		d.settlement("st", r.SettlementEntry())
	}
	d.end(row)
}

func (d *document) receipt(r *storage.Record) {
	at := d.start("s")
	d.digest("h", r.Receipt.Digest)
	d.int64("e", r.Receipt.Exp)
	d.sig("s", r.Receipt.Sig)
	d.text("kid", r.Receipt.KeyID)
	if r.Receipt.Decision != r.Decision.String() {
		d.text("k", r.Receipt.Decision)
	}
	if r.Receipt.DecisionID != r.DecisionID {
		d.text("d", r.Receipt.DecisionID)
	}
	d.end(at)
}

// settlementRow returns the field of a settlement in the row of its decision.
func settlementRow(e *storage.Entry) bson.Raw {
	var d document
	d.settlement("", e)
	return bson.Raw(d)
}

func (d *document) settlement(key string, e *storage.Entry) {
	s := e.Settlement
	at := d.start(key)
	d.text("o", s.Outcome)
	d.time(s.RecordedAt)
	d.sig("s", e.Sig)
	d.text("kid", e.KeyID)
	if s.AmountMinor != nil {
		d.int64("n", *s.AmountMinor)
	}
	d.optional("c", s.Currency)
	d.optional("x", s.ExternalRef)
	d.end(at)
}

// below returns the nanoseconds of t below a millisecond, which a date of the server
// drops.
func below(t time.Time) int32 {
	return int32(t.Nanosecond() % int(time.Millisecond)) //nolint:gosec // less than a million
}
