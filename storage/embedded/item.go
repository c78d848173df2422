package embedded

import (
	"fmt"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// The head of a frame is a receipt.SignedHead as its MarshalBinary writes it. The items are the
// batch's records and then its entries. A frame of an import has imported items. It has eight bytes
// in place of a head. They are the number of the last earlier frame that has a head, or 0 if no
// earlier frame has one.
//
//	item       = record | settlement | entry | removed | tombstone | abandoned
//	record     = 'r' text(org) decision-id(16) row                see record.go
//	settlement = 's' text(org) decision-id(16) unapproved(1) settled  see entries.go
//	entry      = 'e' text(org) entry-kind(1) entry                 see entries.go
//	removed    = 'x' leaf(32)                                      what is left of a removed record or settlement
//	tombstone  = 't' text(org) decision-id(16) text(intent) *leaf  of an imported one: see retention.go
//	abandoned  = 'a' text(org) decision-id(16) text(intent)        the imported record or tombstone before is removed
//
// The texts sig and kid of an item are empty if they follow from the frame. Then the kid is the
// head's kid. The sig is computed from the item's place in the tree of all items' leaves. If the
// root of this tree is not the root in the head, the frame cannot be read. docs/history-format.md
// has the whole format.
const (
	recordItem     = 'r'
	settlementItem = 's'
	entryItem      = 'e'
	removedItem    = 'x'
	tombstoneItem  = 't'
	abandonedItem  = 'a'
)

// location is the place of an item: its frame, and its index in the frame.
type location struct {
	frame uint64
	index uint32
}

// item is an item of a frame. Its kind determines which fields are set.
type item struct {
	kind       byte
	org        string
	id         uuid.UUID         // of the decision; not set for an entry
	intent     string            // of a tombstone or an abandoned import: see storage.IntentKey
	entryKind  storage.EntryKind // of an entry
	unapproved bool              // of a settlement
	body       string            // the bytes of a row, settlement or entry, or the leaves of a tombstone
	removed    [32]byte          // the leaf of a removed item
}

// item codes an item up to its body.
func (c *codec) item(it *item) {
	if c.byte(&it.kind); it.kind == removedItem {
		c.bytes(it.removed[:])
		return
	}
	c.text(&it.org)
	if it.kind == entryItem {
		b := kindBytes[it.entryKind]
		c.byte(&b)
		if it.entryKind = entryKindOf(b); it.entryKind == "" {
			c.fail("kind of an entry")
		}
		return
	}
	c.bytes(it.id[:])
	switch it.kind {
	case recordItem:
	case settlementItem:
		it.unapproved = c.present(it.unapproved)
	case tombstoneItem, abandonedItem:
		c.text(&it.intent)
	default:
		c.fail("kind of an item")
	}
}

func parseItem(b []byte) (it item, err error) {
	c := decoding(b)
	c.item(&it)
	it.body = c.rest
	return it, c.err
}

// leaf returns the leaf of an item. keyID is the key of the frame's head.
func (it *item) leaf(keyID string) (leaf [32]byte, err error) {
	switch it.kind {
	case removedItem:
		return it.removed, nil
	case recordItem:
		r, c := storage.Record{DecisionID: it.id.String()}, codec{reads: true, rest: it.body}
		if c.receipt(&r, false); c.err != nil {
			return leaf, c.err
		}
		if r.Receipt.KeyID == "" {
			r.Receipt.KeyID = keyID
		}
		return r.Receipt.LeafHash(), nil
	case settlementItem:
		r := storage.Record{OrganizationID: it.org, DecisionID: it.id.String()}
		if err := parseSettlement(&r, it.body); err != nil {
			return leaf, err
		}
		r.Settlement.Unapproved = it.unapproved
		return receipt.EntryLeaf(r.SettlementEntry().Body), nil
	}
	e, err := parseEntry(it.org, it.entryKind, it.body)
	if err != nil {
		return leaf, err
	}
	return receipt.EntryLeaf(e.Body), nil
}

// at reads the item at a location, and its frame.
func (s *Store) at(p location) (f *frame, it item, err error) {
	r := frameReader{s: s}
	if f, it, err = r.at(p); err == nil {
		r.keep()
	}
	return f, it, err
}

// at reads the item at a location, and its frame, as frame does.
func (r *frameReader) at(p location) (f *frame, it item, err error) {
	f, err = r.frame(p.frame)
	if err == nil && int(p.index) >= len(f.items) {
		err = fmt.Errorf("%w: frame %d has %d items", errCorrupt, p.frame, len(f.items))
	}
	if err == nil {
		it, err = parseItem(f.items[p.index])
	}
	return f, it, err
}

// readRow reads the record of a row, with its settlement. It returns nil if f does not select the record.
func (s *Store) readRow(r *row, f *storage.Filter) (*storage.Record, error) {
	rec, err := parseRecord(r.it.org, r.it.id, r.it.body, f)
	if err != nil || rec == nil {
		return nil, err
	}
	if rec.Receipt.Sig == "" {
		proof, err := r.in.sig(r.at.index)
		if err != nil {
			return nil, err
		}
		rec.Receipt.Sig, rec.Receipt.KeyID = proof.Sig, proof.KeyID
	}
	if r.settled.frame > 0 {
		err = s.readSettlement(rec, r.settled)
	}
	return rec, err
}

// readSettlement reads the settlement at a location into r.
func (s *Store) readSettlement(r *storage.Record, at location) error {
	in, it, err := s.at(at)
	if err != nil {
		return err
	}
	if err := parseSettlement(r, it.body); err != nil || r.Settlement.Receipt.Sig != "" {
		return err
	}
	*r.Settlement.Receipt, err = in.sig(at.index)
	return err
}

// readEntry reads the entry at a location. It returns nil if another item is there.
func (s *Store) readEntry(org string, kind storage.EntryKind, at location) (*storage.Entry, error) {
	in, it, err := s.at(at)
	if err != nil || it.kind != entryItem || it.org != org || it.entryKind != kind {
		return nil, err
	}
	e, err := parseEntry(org, kind, it.body)
	if err == nil && e.Sig == "" {
		e.Inclusion, err = in.sig(at.index)
	}
	return e, err
}
