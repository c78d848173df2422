package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
)

// Import implements storage.Importer. It writes one frame and does not change the chain or the
// meters.
func (s *Store) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := errors.Join(ctx.Err(), checkOrg(org), storage.CheckImport(org, rows, removed)); err != nil {
		return err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := s.health.writable(); err != nil {
		return err
	}
	items, err := s.importItems(rows, removed)
	if err != nil || len(items) == 0 {
		return err
	}
	stored, err := s.writeImport(items)
	if err != nil {
		return err
	}
	b := s.newBatch()
	if err := s.follow(b, stored, make(map[meter]int64)); err != nil {
		return err
	}
	if err := s.keepWith(b, stored.Number, s.apply); err != nil {
		return err
	}
	return s.tables.AddFrame(stored)
}

// writeImport writes a frame without a head, and makes the frame durable. The caller holds
// s.commits.
func (s *Store) writeImport(items [][]byte) (stored segment.Frame, err error) {
	last, err := s.headed(s.log.Last())
	if errors.Is(err, storage.ErrNotFound) {
		last, err = new(frame), nil
	}
	if err != nil {
		return stored, err
	}
	head := binary.BigEndian.AppendUint64(nil, last.number)
	number, err := s.write(head, items)
	if err == nil {
		err = s.sync() // with WriteBehind the write alone is not durable
	}
	return segment.Frame{Number: number, Head: head, Items: items}, err
}

// importItems returns the items of the rows and tombstones that are not stored yet. The caller
// holds s.commits.
func (s *Store) importItems(rows []*storage.Record, removed []*storage.Tombstone) (items [][]byte, err error) {
	for _, r := range rows {
		id := uuid.MustParse(r.DecisionID) // CheckImport has parsed it already
		earlier, err := s.decided(intent{r.OrganizationID, r.IntentKey()})
		if earlier != nil {
			err = storage.SameRow(earlier, r)
		} else if err == nil {
			err = s.noRow(r.OrganizationID, id)
		}
		if err != nil {
			return nil, err
		}
		if earlier != nil {
			continue
		}
		items = append(items, encoded(func(c *codec) { c.record(r, id, false) }))
		if r.Settlement != nil {
			items = append(items, encoded(func(c *codec) { c.entryItem(r.SettlementEntry(), false) }))
		}
	}
	for _, t := range removed {
		fresh, err := s.isFresh(t)
		if err != nil {
			return nil, err
		}
		if fresh {
			items = append(items, ofIntent(tombstoneItem, t.OrganizationID, t.IntentKey(), uuid.MustParse(t.DecisionID),
				leavesOf(t)))
		}
	}
	return items, nil
}

// noRow returns storage.ErrConflict if a decision has a row.
func (s *Store) noRow(org string, id uuid.UUID) error {
	_, err := s.now().find(org, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: decision %s is of another intent", storage.ErrConflict, id)
	}
	return err
}

// isFresh reports whether t is not stored yet.
func (s *Store) isFresh(t *storage.Tombstone) (bool, error) {
	id := uuid.MustParse(t.DecisionID) // CheckImport has parsed it already
	name := intent{t.OrganizationID, t.IntentKey()}
	earlier, err := s.decided(name)
	if err == nil && earlier != nil && earlier.Removed() {
		var left []byte
		left, err = s.get(orgKey(kindIntent, name.org).text(name.id))
		if string(left) == string(id[:])+string(leavesOf(t)) {
			return false, err
		}
	}
	switch {
	case err != nil:
		return false, err
	case earlier != nil:
		return false,
			fmt.Errorf("%w: another decision than %s, which was removed, stands for its intent", storage.ErrConflict,
				id)
	}
	return true, s.noRow(t.OrganizationID, id)
}

// leavesOf returns the leaves of an imported tombstone, encoded as in the row of an intent.
func leavesOf(t *storage.Tombstone) (v []byte) {
	for _, l := range t.Leaves {
		v = appendForeignLeaf(v, l, true)
	}
	return v
}

// ofIntent returns the item of a tombstone or of an abandoned import.
func ofIntent(kind byte, org, intent string, id uuid.UUID, leaves []byte) []byte {
	return encoded(func(c *codec) {
		c.item(&item{kind: kind, org: org, id: id, intent: intent})
		c.bytes(leaves)
	})
}

// encoded returns the bytes that f writes.
func encoded(f func(c *codec)) []byte {
	var c codec
	f(&c)
	return c.b
}

// abandon adds to b what follows from an item that abandons an import in the given frame. Its row counts no more,
// unless it was removed or abandoned before.
func (s *Store) abandon(b *batch, it *item, frame uint64) error {
	b.delete(orgKey(kindIntent, it.org).text(it.intent))
	r, err := s.until(frame-1).find(it.org, it.id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	var rec *storage.Record
	if err == nil {
		rec, err = s.readRow(&r, nil)
	}
	if err == nil {
		b.count(rec, -1)
	}
	return err
}
