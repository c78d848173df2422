package mongodb

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

type parsedRow struct {
	intent []byte // its key
	id     uuid.UUID
	record *storage.Record
}

// parser reads a document. After the first error it reads zeros.
type parser struct{ err error }

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: a stored %s", errCorrupt, what)
	}
}

// each calls f for the fields of a document or the elements of an array.
func (p *parser) each(doc []byte, f func(key string, v bsoncore.Value)) {
	length, rest, ok := bsoncore.ReadLength(doc)
	if !ok || int(length) != len(doc) {
		p.fail("document")
		return
	}
	for len(rest) > 1 && p.err == nil {
		e, after, ok := bsoncore.ReadElement(rest)
		if !ok {
			p.fail("field")
			return
		}
		key, value := e.KeyBytes(), e[1:]
		f(string(key), bsoncore.Value{Type: bsoncore.Type(e[0]), Data: value[len(key)+1:]})
		rest = after
	}
}

// text returns a string in the document's memory, which must never change.
func (p *parser) text(v bsoncore.Value) string {
	// int32 length with the NUL at the end, the text, NUL
	length, rest, ok := bsoncore.ReadLength(v.Data)
	if !ok || v.Type != bsoncore.TypeString || length < 1 || int(length) != len(rest) {
		p.fail("text")
		return ""
	}
	return unsafe.String(unsafe.SliceData(rest), length-1)
}

func (p *parser) int(v bsoncore.Value) int64 {
	n, ok := v.AsInt64OK()
	if !ok {
		p.fail("number")
	}
	return n
}

func (p *parser) binary(v bsoncore.Value) []byte {
	_, b, ok := v.BinaryOK()
	if !ok {
		p.fail("binary")
	}
	return b
}

// packed reads a text that may be stored as bytes; text makes the text of them.
func (p *parser) packed(v bsoncore.Value, text func([]byte) string) string {
	if v.Type == bsoncore.TypeBinary {
		return text(p.binary(v))
	}
	return p.text(v)
}

func (p *parser) id(v bsoncore.Value) (id uuid.UUID) {
	b := p.binary(v)
	if len(b) != len(id) {
		p.fail("id")
		return id
	}
	return uuid.UUID(b)
}

func (p *parser) date(v bsoncore.Value) time.Time {
	ms, ok := v.DateTimeOK()
	if !ok {
		p.fail("date")
	}
	return time.UnixMilli(ms).UTC()
}

func (p *parser) document(v bsoncore.Value, f func(key string, v bsoncore.Value)) {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		p.fail("part")
		return
	}
	p.each(v.Data, f)
}

func (p *parser) texts(v bsoncore.Value) (list []string) {
	p.document(v, func(_ string, v bsoncore.Value) { list = append(list, p.text(v)) })
	return list
}

// parseRow reads a row or a tombstone of org. The texts of its record share one copy of
// raw.
func parseRow(org string, raw bson.Raw) (parsedRow, error) {
	raw = bytes.Clone(raw)
	var p parser
	r := &storage.Record{OrganizationID: org}
	w := parsedRow{record: r}
	var settled *storage.Settlement
	removed, of := false, ""
	p.each(raw, func(key string, v bsoncore.Value) {
		switch key {
		case "_id":
			w.intent = p.binary(v)
		case "g":
			w.id, removed = p.id(v), true
		case "o":
			of = p.text(v)
		case "d":
			w.id = p.id(v)
		case "k":
			r.Decision = engine.Decision(p.int(v)) //nolint:gosec // as it was written
		case "at":
			r.DecidedAt = p.date(v)
		case "ns":
			r.DecidedAt = r.DecidedAt.Add(time.Duration(p.int(v)))
		case "s":
			p.receipt(v, &r.Receipt)
		case "st":
			settled = p.settlement(v)
		case "l", "f": // see tombstone
		default:
			p.field(r, key, v)
		}
	})
	intent, ok := strings.CutPrefix(string(w.intent), string(storage.Text(org)))
	if !ok || !removed && of != org {
		p.fail(fmt.Sprintf("row of %q in the place of one of %q", of, org))
	}
	intentID, approvalID := storage.CutIntentKey(intent)
	if r.IntentID, r.DecisionID = intentID, w.id.String(); removed {
		r.ApprovalID = approvalID
	} else if r.ApprovalID != approvalID {
		p.fail(fmt.Sprintf("row of approval %q in the place of one of %q", r.ApprovalID, approvalID))
	}
	if removed {
		return w, p.err
	}
	if r.Receipt.Decision == "" {
		r.Receipt.Decision = r.Decision.String()
	}
	if r.Receipt.DecisionID == "" {
		r.Receipt.DecisionID = r.DecisionID
	}
	if settled != nil {
		r.Settle(*settled)
	}
	return w, p.err
}

// field reads a field whose meaning depends on no other field.
func (p *parser) field(r *storage.Record, key string, v bsoncore.Value) {
	switch key {
	case "a":
		r.AgentID = p.text(v)
	case "p":
		r.PolicyID = p.text(v)
	case "t":
		r.ActionType = p.text(v)
	case "pv":
		r.PolicyVersion = p.int(v)
	case "id":
		r.IntentDigest = p.packed(v, digestText)
	case "r":
		r.Resource = p.text(v)
	case "c":
		r.Cost = &engine.Cost{}
		p.document(v, func(key string, v bsoncore.Value) {
			if key == "n" {
				r.Cost.AmountMinor = p.int(v)
			} else {
				r.Cost.Currency = p.text(v)
			}
		})
	case "mk":
		r.MetadataKeys = p.texts(v)
	case "m":
		pairs := p.texts(v)
		r.Metadata = make(map[string]string, len(pairs)/2)
		for i := 1; i < len(pairs); i += 2 {
			r.Metadata[pairs[i-1]] = pairs[i]
		}
	case "w":
		r.Reasons = p.texts(v)
	case "i":
		r.IssuedAt = p.text(v)
	case "ad":
		r.AuditDigest = p.packed(v, digestText)
	case "pr":
		r.PolicyRevision = p.int(v)
	case "rr":
		r.RulesRevision = p.int(v)
	case "ar":
		r.AgentRevision = p.int(v)
	case "dd":
		r.DetailsDigest = p.packed(v, digestText)
	default:
		if to := r.TextCalled(key); to != nil {
			*to = p.text(v)
			return
		}
		p.fail(fmt.Sprintf("row with the field %q, which this version of writ does not know", key))
	}
}

func (p *parser) receipt(v bsoncore.Value, r *receipt.Receipt) {
	p.document(v, func(key string, v bsoncore.Value) {
		switch key {
		case "h":
			r.Digest = p.packed(v, digestText)
		case "e":
			r.Exp = p.int(v)
		case "s":
			r.Sig = p.packed(v, base64.RawURLEncoding.EncodeToString)
		case "kid":
			r.KeyID = p.text(v)
		case "k":
			r.Decision = p.text(v)
		case "d":
			r.DecisionID = p.text(v)
		}
	})
}

func (p *parser) settlement(v bsoncore.Value) *storage.Settlement {
	s := &storage.Settlement{Receipt: &receipt.Inclusion{}}
	p.document(v, func(key string, v bsoncore.Value) {
		switch key {
		case "o":
			s.Outcome = p.text(v)
		case "at":
			s.RecordedAt = p.date(v)
		case "ns":
			s.RecordedAt = s.RecordedAt.Add(time.Duration(p.int(v)))
		case "s":
			s.Receipt.Sig = p.packed(v, base64.RawURLEncoding.EncodeToString)
		case "kid":
			s.Receipt.KeyID = p.text(v)
		case "n":
			amount := p.int(v)
			s.AmountMinor = &amount
		case "c":
			s.Currency = p.text(v)
		case "x":
			s.ExternalRef = p.text(v)
		}
	})
	return s
}
