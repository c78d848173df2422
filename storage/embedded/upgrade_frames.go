package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// frames writes a frame for each head.
func (m *historyMover) frames() (err error) {
	lower := key{byte(kindMove)}
	if m.leaves, err = m.s.newIter(&pebble.IterOptions{LowerBound: lower, UpperBound: lower.end()}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.leaves.Close()) }()
	if m.rows, err = m.s.newIter(nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.rows.Close()) }()
	m.progress.begin("upgrade: moving the history to segments")
	m.leaves.First()
	lower = key{byte(kindHead)}
	err = m.s.scan(context.Background(), lower, lower.end(), func(k, v []byte) (bool, error) {
		seq, ok := headSeq(k)
		if !ok {
			return true, errors.New("the key of a head is none")
		}
		if err := m.frame(seq, v); err != nil {
			return true, fmt.Errorf("head %d: %w", seq, err)
		}
		m.progress.tell(seq)
		return false, m.s.health.writable()
	})
	if err == nil {
		err = m.leaves.Error()
	}
	return err
}

// frame writes the frame of a head.
func (m *historyMover) frame(seq uint64, v []byte) error {
	var h receipt.SignedHead
	if err := h.UnmarshalBinary(v); err != nil {
		return err
	}
	if seq > m.before.Seq+1 {
		m.s.health.log.Warn("upgrade: heads are missing whose loss was accepted", "from", m.before.Seq+1, "to", seq-1)
	}
	if h.Seq != seq || h.Chain != m.before.ID || seq == m.before.Seq+1 && h.Prev != m.before.Prev {
		return errors.New("it does not follow the head before")
	}
	m.before = m.before.Next(h.Head)
	leaves, err := m.leavesOf(seq)
	if err != nil {
		return err
	}
	items, err := m.items(&h, leaves)
	if err == nil {
		_, err = m.s.log.Append(v, items)
	}
	return err
}

// movedLeaf is a leaf with what it is of, nothing if that was removed.
type movedLeaf struct {
	index  uint32
	hash   [32]byte
	record *storage.Record
	row    []byte // of record, if a settlement is in it
	entry  *storage.Entry
}

// leavesOf reads the leaves of the next head.
func (m *historyMover) leavesOf(seq uint64) (leaves []movedLeaf, err error) {
	for it := m.leaves; it.Valid(); it.Next() {
		k := it.Key()[1:]
		at := parsePlace(k)
		if at.seq > seq {
			break
		}
		if at.seq < seq {
			continue // its head is not there
		}
		l := movedLeaf{index: at.index}
		if err := m.read(&l, bytes.Clone(k[placeLen:])); err != nil {
			return nil, fmt.Errorf("leaf %d: %w", at.index, err)
		}
		leaves = append(leaves, l)
	}
	return leaves, nil
}

// read reads what is under k.
func (m *historyMover) read(l *movedLeaf, k key) error {
	if k[0] == removedItem {
		copy(l.hash[:], k[1:])
		return nil
	}
	org, rest, err := position(k)
	if err != nil {
		return err
	}
	if kind(k[0]) == kindEntry {
		v, err := m.s.seek(m.rows, k)
		if err == nil {
			l.entry, err = m.s.entryOf(string(org), entryKindOf(rest[0]), v)
		}
		if err == nil {
			l.hash = receipt.EntryLeaf(l.entry.Body)
		}
		return err
	}
	id, settlement, err := parsePosition(rest)
	if err != nil {
		return err
	}
	r, err := m.s.recordAt(m.rows, string(org), id, nil)
	switch {
	case err != nil:
		return err
	case settlement:
		l.entry = r.SettlementEntry()
		l.hash = receipt.EntryLeaf(l.entry.Body)
		return nil
	}
	l.record, l.hash = r, r.Receipt.LeafHash()
	if r.Settlement != nil && r.Settlement.Receipt == nil {
		v, err := m.s.seek(m.rows, k)
		l.row = bytes.Clone(v)
		return err
	}
	return nil
}

// items returns the items of a head's frame. A sig that follows from the frame is left out.
func (m *historyMover) items(h *receipt.SignedHead, leaves []movedLeaf) ([][]byte, error) {
	if missing := int64(h.Size) - int64(len(leaves)); missing < 0 || missing > 0 && !m.unmarked {
		return nil, fmt.Errorf("it signs %d leaves, and %d are there", h.Size, len(leaves))
	}
	hashes := make([][32]byte, h.Size)
	items := make([][]byte, h.Size)
	for i := range leaves {
		l := &leaves[i]
		if l.index >= h.Size || i > 0 && leaves[i-1].index == l.index {
			return nil, fmt.Errorf("leaf %d is not one of it, or is there twice", l.index)
		}
		hashes[l.index] = l.hash
	}
	sigs := make([]string, h.Size) // empty if they do not follow
	if len(leaves) == len(hashes) {
		var err error
		if sigs, err = h.Sigs(hashes); err != nil {
			return nil, err
		}
	}
	for i := range items {
		items[i] = leftOf(hashes[i])
	}
	for i := range leaves {
		l := &leaves[i]
		if l.record == nil && l.entry == nil {
			continue
		}
		proof := l.inclusion()
		bare := proof == receipt.Inclusion{Sig: sigs[l.index], KeyID: h.KeyID}
		if signed, err := proof.SignedHead(l.hash); !bare && (err != nil || signed.Head != h.Head) {
			return nil, fmt.Errorf("leaf %d is not under it: %w", l.index, err)
		}
		items[l.index] = l.item(bare)
	}
	return items, nil
}

func (l *movedLeaf) inclusion() receipt.Inclusion {
	if l.record != nil {
		return l.record.Receipt.Inclusion()
	}
	return l.entry.Inclusion
}

func (l *movedLeaf) item(bare bool) []byte {
	e := make(encoder, 0, 640)
	switch {
	case l.row != nil:
		e.byte(recordItem)
		e.text(l.record.OrganizationID)
		id := uuid.MustParse(l.record.DecisionID)
		e = append(append(e, id[:]...), l.row...)
	case l.record != nil:
		e.record(l.record, uuid.MustParse(l.record.DecisionID), bare)
	default:
		e.entryItem(l.entry, bare)
	}
	return e
}
