package embedded

import (
	"encoding/binary"
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
//
// The value of a key that leads to an item is
//
//	location = uvarint(frame) uvarint(index)
//
// with index 0 for a head.
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
	index uint64
}

func (p location) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, p.frame), p.index)
}

func parseLocation(v []byte) (p location, err error) {
	c := decoding(v)
	c.uint(&p.frame)
	c.uint(&p.index)
	return p, c.end()
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
		r, err := parseRecord(it.org, it.id, []byte(it.body), nil)
		if err != nil {
			return leaf, err
		}
		if r.Receipt.KeyID == "" {
			r.Receipt.KeyID = keyID
		}
		return r.Receipt.LeafHash(), nil
	case settlementItem:
		r := storage.Record{OrganizationID: it.org, DecisionID: it.id.String()}
		if err := parseSettlement(&r, []byte(it.body)); err != nil {
			return leaf, err
		}
		r.Settlement.Unapproved = it.unapproved
		return receipt.EntryLeaf(r.SettlementEntry().Body), nil
	}
	e, err := parseEntry(it.org, it.entryKind, []byte(it.body))
	if err != nil {
		return leaf, err
	}
	return receipt.EntryLeaf(e.Body), nil
}

// locate reads the frame of the location v. index is the place of the item in the frame.
func (s *Store) locate(v []byte) (f *frame, index uint64, err error) {
	p, err := parseLocation(v)
	if err != nil {
		return nil, 0, err
	}
	f, err = s.frame(p.frame)
	if err == nil && p.index >= uint64(len(f.items)) {
		err = fmt.Errorf("%w: frame %d has %d items", errCorrupt, p.frame, len(f.items))
	}
	return f, p.index, err
}

// item does what locate does, and also reads the item. The item must be of the given kind.
func (s *Store) item(v []byte, kind byte) (f *frame, it item, index uint64, err error) {
	if f, index, err = s.locate(v); err != nil {
		return nil, it, 0, err
	}
	it, err = parseItem(f.items[index])
	if err == nil && it.kind != kind {
		err = fmt.Errorf("%w: item %d of frame %d is another", errCorrupt, index, f.number)
	}
	return f, it, index, err
}

// readRow reads the record at the location v. settlement is the location of its settlement, or nil
// if it has none. readRow returns nil if f does not select the record.
func (s *Store) readRow(org string, id uuid.UUID, v, settlement []byte, f *storage.Filter) (*storage.Record, error) {
	in, it, index, err := s.item(v, recordItem)
	if err == nil && (it.org != org || it.id != id) {
		err = fmt.Errorf("%w: the row of decision %s is in its place", errCorrupt, it.id)
	}
	if err != nil {
		return nil, err
	}
	r, err := parseRecord(org, id, []byte(it.body), f)
	if err != nil || r == nil {
		return nil, err
	}
	if r.Receipt.Sig == "" {
		proof, err := in.sig(index)
		if err != nil {
			return nil, err
		}
		r.Receipt.Sig, r.Receipt.KeyID = proof.Sig, proof.KeyID
	}
	if settlement != nil {
		err = s.readSettlement(r, settlement)
	}
	return r, err
}

// readSettlement reads the settlement at the location v into r.
func (s *Store) readSettlement(r *storage.Record, v []byte) error {
	in, it, index, err := s.item(v, settlementItem)
	if err == nil && (it.org != r.OrganizationID || it.id.String() != r.DecisionID) {
		err = fmt.Errorf("%w: the settlement of decision %s is in its place", errCorrupt, it.id)
	}
	if err != nil {
		return err
	}
	if err := parseSettlement(r, []byte(it.body)); err != nil || r.Settlement.Receipt.Sig != "" {
		return err
	}
	*r.Settlement.Receipt, err = in.sig(index)
	return err
}

// readEntry reads the entry at the location v.
func (s *Store) readEntry(org string, kind storage.EntryKind, v []byte) (*storage.Entry, error) {
	in, it, index, err := s.item(v, entryItem)
	if err == nil && (it.org != org || it.entryKind != kind) {
		err = errCorruptEntry
	}
	if err != nil {
		return nil, err
	}
	e, err := parseEntry(org, kind, []byte(it.body))
	if err == nil && e.Sig == "" {
		e.Inclusion, err = in.sig(index)
	}
	return e, err
}

// readHead reads the head at the location v.
func (s *Store) readHead(v []byte) (h receipt.SignedHead, err error) {
	p, err := parseLocation(v)
	if err != nil {
		return h, err
	}
	f, err := s.frame(p.frame)
	if err != nil {
		return h, err
	}
	return f.head, nil
}
