package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/receipt"
)

// A removal deletes the keys of rows by ranges of ids. For each row it writes a key of kindIntent, which has the leaves
// of the row. The leaves show that the record of the intent was removed and is not lost:
//
//	intent = decision-id(16) leaf [leaf]    of the decision and of its settlement
//	leaf   = uvarint(head's sequence) uvarint(index) hash(32)    of the directory's chain
//	       | 00 imported(1) chain(16) uvarint(head's sequence) uvarint(index) hash(32)    of another
//
// Imported is 1 if the row was removed before the import, so that only its tombstone was imported.
// Otherwise it is 0.

// leaf codes a leaf without its chain.
func (c *codec) leaf(l *receipt.Leaf) {
	index := uint64(l.Index)
	c.uint(&l.Seq)
	c.uint(&index)
	c.bytes(l.Hash[:])
	l.Index = uint32(index)
}

// appendLeaf appends l to the row of an intent.
func appendLeaf(v []byte, l receipt.Leaf) []byte {
	c := codec{b: v}
	c.leaf(&l)
	return c.b
}

// appendForeignLeaf appends l, a leaf of another chain.
func appendForeignLeaf(v []byte, l receipt.Leaf, imported bool) []byte {
	c := codec{b: append(v, 0)}
	c.present(imported)
	c.bytes(l.Chain[:])
	c.leaf(&l)
	return c.b
}

// parseIntent reads the value of kindIntent. chain is the chain of the directory. left has the leaves of the removed
// record. imported says that it was already removed when it was imported.
func parseIntent(v []byte, chain [16]byte) (id uuid.UUID, left []receipt.Leaf, imported bool, err error) {
	if len(v) < idLen {
		return id, nil, false, fmt.Errorf("%w: the decision of an intent has %d bytes", errCorrupt, len(v))
	}
	c := decoding(v[copy(id[:], v):])
	for c.err == nil && len(c.rest) > 0 {
		l := receipt.Leaf{Chain: chain}
		if c.rest[0] == 0 {
			c.rest = c.rest[1:]
			imported = c.present(false) || imported
			c.bytes(l.Chain[:])
		}
		c.leaf(&l)
		left = append(left, l)
	}
	if len(left) == 0 {
		c.fail("nothing is left of a removed row")
	}
	return id, left, imported, c.err
}

// CountExpired implements storage.Retention. It also removes settlements whose rows were removed
// without them.
func (s *Store) CountExpired(
	ctx context.Context, org string, before time.Time, max int,
) (n storage.Expired, err error) {
	if err := checkOrg(org); err != nil {
		return n, err
	}
	orphans := make(map[uuid.UUID]bool)
	err = s.rowsBefore(ctx, org, before, func(id uuid.UUID, row, settlement []byte) (bool, error) {
		switch {
		case row == nil:
			orphans[id] = true
			return false, nil
		case n.Records == max:
			return true, nil
		}
		n.Records++
		if settlement != nil {
			n.Settled++
		}
		return false, nil
	})
	if err != nil {
		return storage.Expired{}, err
	}
	return n, s.removeOrphans(ctx, org, orphans)
}

// rowsBefore calls f, as eachRow does, for the rows of org that were decided before a time.
func (s *Store) rowsBefore(
	ctx context.Context, org string, before time.Time, f func(id uuid.UUID, row, settlement []byte) (bool, error),
) error {
	prefix := orgKey(kindRecord, org)
	end := key(bytes.Clone(prefix)).id(storage.IDAt(before.Add(-storage.MaxSkew)))
	return s.eachRow(ctx, s.index.Scan, org, prefix, end, f)
}

// eachRow calls f for the rows of org with keys from lower up to upper, until f returns stop.
// settlement is nil if the row has no settlement. row is nil if a settlement has no row.
func (s *Store) eachRow(
	ctx context.Context, scan func(ctx context.Context, lower, upper []byte, f index.Visit) error,
	org string, lower, upper key,
	f func(id uuid.UUID, row, settlement []byte) (stop bool, err error),
) error {
	var id uuid.UUID // the id of row; f was not called for row yet
	var row, buf []byte
	stopped, prefix := false, len(orgKey(kindRecord, org))
	tell := func(id uuid.UUID, row, settlement []byte) (_ bool, err error) {
		stopped, err = f(id, row, settlement)
		return stopped, err
	}
	err := scan(ctx, lower, upper, func(k, v []byte) (bool, error) {
		of, settlement, err := parsePosition(k[prefix:])
		last := row
		row = nil
		switch {
		case err != nil:
			return true, &storage.BreakError{OrganizationID: org, Err: err}
		case settlement && last != nil && of == id:
			return tell(id, last, v)
		case last != nil:
			if stop, err := tell(id, last, nil); stop || err != nil {
				return true, err
			}
		}
		if settlement {
			return tell(of, nil, v)
		}
		buf = append(buf[:0], v...)
		id, row = of, buf
		return false, nil
	})
	if row == nil || stopped || err != nil {
		return err
	}
	_, err = f(id, row, nil)
	return err
}

// removeOrphans removes settlements whose rows were removed. The tombstones of such rows have the
// settlements' leaves. Other settlements without rows stay, because they are damage.
func (s *Store) removeOrphans(ctx context.Context, org string, orphans map[uuid.UUID]bool) error {
	if len(orphans) == 0 || s.options.ReadOnly {
		return nil
	}
	tip, err := s.Tip(ctx)
	if err != nil {
		return err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	if err := errors.Join(s.health.writable(), s.index.Flush()); err != nil {
		return err
	}
	b, n := s.newBatch(), 0
	err = s.scanPrefix(ctx, orgKey(kindIntent, org), func(_, v []byte) (bool, error) {
		id, left, _, err := parseIntent(v, tip.ID)
		if err != nil || !orphans[id] {
			return false, err
		}
		leaf, err := s.settlementLeaf(org, id)
		if err == nil && slices.Contains(left, leaf) {
			b.delete(settlementKey(org, id))
			n++
		}
		if errors.Is(err, storage.ErrNotFound) {
			err = nil // it was removed with its row in between
		}
		return false, err
	})
	if err != nil || n == 0 {
		return err
	}
	s.health.log.Warn("settlements were left behind when their decisions were removed; they are removed now",
		"dir", s.health.dir, "organization", org, "settlements", n)
	return s.finish(b)
}

// settlementLeaf returns the leaf of the settlement of decision id. It returns storage.ErrNotFound
// if the decision has no settlement.
func (s *Store) settlementLeaf(org string, id uuid.UUID) (leaf receipt.Leaf, err error) {
	v, err := s.index.Get(settlementKey(org, id))
	if err != nil {
		return leaf, err
	}
	f, it, index, err := s.item(v, settlementItem)
	if err != nil {
		return leaf, err
	}
	hash, err := it.leaf(f.head.KeyID)
	return receipt.Leaf{Chain: f.head.Chain, Seq: f.head.Seq, Index: uint32(index), Hash: hash}, err
}

// expired returns the rows to remove. They are rows of org that were decided before a time, at most
// as many as most says. It counts their bytes in garbage.
func (s *Store) expired(
	ctx context.Context, org string, before time.Time, most storage.Expired, garbage garbage,
) (rows []*storage.Record, n storage.Expired, err error) {
	err = s.rowsBefore(ctx, org, before, func(id uuid.UUID, row, settlement []byte) (bool, error) {
		switch {
		case row == nil:
			return true, fmt.Errorf("%w: the settlement of decision %s has none", errCorrupt, id)
		case n.Records == most.Records || settlement != nil && n.Settled == most.Settled:
			return true, nil
		}
		r, err := s.readRow(org, id, row, settlement, nil)
		if err == nil {
			err = garbage.add(s, row)
		}
		if err == nil && settlement != nil {
			n.Settled++
			err = garbage.add(s, settlement)
		}
		n.Records++
		rows = append(rows, r)
		return false, err
	})
	return rows, n, err
}

// RemoveRecords implements storage.Retention. It holds the mutex writes all the time, and the mutex
// commits only while it writes. Therefore decisions do not wait longer for it than for one another.
func (s *Store) RemoveRecords(
	ctx context.Context, org string, before time.Time, most storage.Expired,
) (removed storage.Expired, err error) {
	var none storage.Expired
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil {
		return none, err
	}
	if most.Records <= 0 {
		return none, fmt.Errorf("removing %d records", most.Records)
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	if err := s.health.writable(); err != nil {
		return none, err
	}
	tip, err := s.Tip(ctx)
	entered := s.entered.Load() // read before the flush, because a later settlement may not be in Pebble
	if err == nil {
		err = s.index.Flush() // then all keys to be removed are in Pebble
	}
	if err != nil {
		return none, err
	}
	b := &batch{b: s.db.NewBatch(), chain: tip.ID}
	if removed, err = s.removeOldest(ctx, b, org, before, most); removed.Records == 0 || err != nil {
		return none, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	if s.entered.Load() != entered { // the new entries may be settlements of these rows
		b.reset()
		if err := s.index.Flush(); err != nil {
			return none, err
		}
		if removed, err = s.removeOldest(ctx, b, org, before, most); removed.Records == 0 || err != nil {
			return none, err
		}
	}
	if err := s.finish(b); err != nil {
		return none, err
	}
	s.rewriteLater()
	return removed, nil
}

// removeOldest adds the removal of org's oldest rows to b and returns their number.
func (s *Store) removeOldest(
	ctx context.Context, b *batch, org string, before time.Time, most storage.Expired,
) (storage.Expired, error) {
	garbage := make(garbage)
	rows, n, err := s.expired(ctx, org, before, most, garbage)
	if err == nil {
		err = s.addGarbage(b, garbage)
	}
	if len(rows) == 0 || err != nil {
		return storage.Expired{}, err
	}
	return n, b.remove(org, rows)
}

// remove deletes rows and keeps their leaves with their intents. org must have no other rows
// between the first and the last of rows.
func (b *batch) remove(org string, rows []*storage.Record) error {
	for _, r := range rows {
		id := uuid.MustParse(r.DecisionID)
		v := id[:]
		leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
		if err != nil {
			return fmt.Errorf("%w: the receipt of decision %s: %w", errCorrupt, id, err)
		}
		v = b.appendLeaf(v, leaf)
		if s := r.Settlement; s != nil {
			if leaf, err = s.Receipt.Leaf(receipt.EntryLeaf(r.SettlementEntry().Body)); err != nil {
				return fmt.Errorf("%w: the settlement of decision %s: %w", errCorrupt, id, err)
			}
			v = b.appendLeaf(v, leaf)
		}
		b.set(orgKey(kindIntent, org).text(r.IntentKey()), v)
		b.count(r, -1)
	}
	first, last := uuid.MustParse(rows[0].DecisionID), uuid.MustParse(rows[len(rows)-1].DecisionID)
	b.deleteIDs(orgKey(kindRecord, org), first, last)
	for d := engine.Allow; d <= engine.Deny; d++ {
		b.deleteIDs(byDecisionKey(org, d), first, last)
	}
	return nil
}

// appendLeaf appends the leaf l. Its chain may be b's chain or another one.
func (b *batch) appendLeaf(v []byte, l receipt.Leaf) []byte {
	if l.Chain != b.chain {
		return appendForeignLeaf(v, l, false)
	}
	return appendLeaf(v, l)
}

// deleteIDs deletes the keys that begin with prefix followed by an id from first to last.
func (b *batch) deleteIDs(prefix key, first, last uuid.UUID) {
	b.deleteRange(key(bytes.Clone(prefix)).id(first), key(bytes.Clone(prefix)).id(last).end())
}

// removed returns a record of i that says only that the decision was removed: see
// storage.Record.Removed.
func (i intent) removed(id uuid.UUID) *storage.Record {
	intentID, approvalID := storage.CutIntentKey(i.id)
	return &storage.Record{OrganizationID: i.org, IntentID: intentID, ApprovalID: approvalID, DecisionID: id.String()}
}

// Organizations implements storage.Retention. It seeks from one organization to the next. No
// iterator is open while f runs.
func (s *Store) Organizations(ctx context.Context, f func(org string) error) error {
	lower, upper := key{byte(kindRecord)}, key{byte(kindRecord) + 1}
	for {
		org, found := "", false
		err := s.index.Scan(ctx, lower, upper, func(k, _ []byte) (stop bool, err error) {
			of, _, err := splitOrg(k[1:])
			org, found = string(of), true
			return true, err
		})
		if err != nil || !found {
			return err
		}
		if err := f(org); err != nil {
			return err
		}
		lower = orgKey(kindRecord, org).end()
	}
}
