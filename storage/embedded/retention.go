package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// A removal says up to which id the rows of an organization are removed: see view.go. For each row it writes a key of
// kindIntent, which has the leaves of the row. The leaves show that the record of the intent was removed and is not
// lost:
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

// CountExpired implements storage.Retention.
func (s *Store) CountExpired(
	ctx context.Context, org string, before time.Time, max int,
) (n storage.Expired, err error) {
	if err := checkOrg(org); err != nil {
		return n, err
	}
	return n, s.now().rows(ctx, decidedBefore(org, before), func(r *row) (bool, error) {
		if n.Records == max {
			return true, nil
		}
		n.Records++
		if r.settled.frame > 0 {
			n.Settled++
		}
		return false, nil
	})
}

// decidedBefore returns the query for the rows of org that were decided before a time.
func decidedBefore(org string, t time.Time) query {
	q := of(org)
	var some bool
	if q.to, some = before(storage.IDAt(t.Add(-storage.MaxSkew))); !some {
		q.from = uuid.Max
	}
	return q
}

// expired returns the rows to remove. They are rows of a view of org that were decided before a time, at most
// as many as most says. It counts their bytes in garbage.
func (v rowView) expired(
	ctx context.Context, org string, before time.Time, most storage.Expired, garbage garbage,
) (rows []*storage.Record, n storage.Expired, err error) {
	err = v.rows(ctx, decidedBefore(org, before), func(r *row) (bool, error) {
		settled := r.settled.frame > 0
		if n.Records == most.Records || settled && n.Settled == most.Settled {
			return true, nil
		}
		rec, err := v.store.readRow(r, nil)
		if err == nil {
			err = garbage.add(v.store, r)
		}
		if settled {
			n.Settled++
		}
		n.Records++
		rows = append(rows, rec)
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
	tip, view, entered, err := s.viewNow(ctx)
	if err != nil {
		return none, err
	}
	b := &batch{b: s.db.NewBatch(), chain: tip.ID}
	if removed, err = view.removeOldest(ctx, b, org, before, most); removed.Records == 0 || err != nil {
		return none, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	if s.entered.Load() != entered { // the new entries may be settlements of these rows
		b.reset()
		view.upTo = s.log.Last()
		if removed, err = view.removeOldest(ctx, b, org, before, most); removed.Records == 0 || err != nil {
			return none, err
		}
	}
	if err := s.finish(b); err != nil {
		return none, err
	}
	s.rewriteLater()
	return removed, nil
}

// viewNow returns the tip and a view of all frames up to it. entered is the number of appends with entries until then.
func (s *Store) viewNow(ctx context.Context) (tip receipt.Chain, v rowView, entered int64, err error) {
	if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
		return tip, v, 0, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	return s.tip, s.until(s.log.Last()), s.entered.Load(), nil
}

// removeOldest adds the removal of org's oldest rows to b and returns their number. Rows that are newer than the view
// stay.
func (v rowView) removeOldest(
	ctx context.Context, b *batch, org string, before time.Time, most storage.Expired,
) (storage.Expired, error) {
	garbage := make(garbage)
	rows, n, err := v.expired(ctx, org, before, most, garbage)
	if err == nil {
		err = v.store.addGarbage(b, garbage)
	}
	if len(rows) == 0 || err != nil {
		return storage.Expired{}, err
	}
	gone, err := v.removals(org)
	if err != nil {
		return storage.Expired{}, err
	}
	last := uuid.MustParse(rows[len(rows)-1].DecisionID)
	b.set(orgKey(kindRemoved, org), gone.add(removal{last, v.upTo}).append(nil))
	return n, b.remove(org, rows)
}

// remove keeps the leaves of rows with their intents, and subtracts the rows from the counts.
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
	return nil
}

// appendLeaf appends the leaf l. Its chain may be b's chain or another one.
func (b *batch) appendLeaf(v []byte, l receipt.Leaf) []byte {
	if l.Chain != b.chain {
		return appendForeignLeaf(v, l, false)
	}
	return appendLeaf(v, l)
}

// removed returns a record of i that says only that the decision was removed: see
// storage.Record.Removed.
func (i intent) removed(id uuid.UUID) *storage.Record {
	intentID, approvalID := storage.CutIntentKey(i.id)
	return &storage.Record{OrganizationID: i.org, IntentID: intentID, ApprovalID: approvalID, DecisionID: id.String()}
}

// Organizations implements storage.Retention. An organization that has rows has counts of them. No iterator is open
// while f runs.
func (s *Store) Organizations(ctx context.Context, f func(org string) error) error {
	here := make(map[string]bool)
	s.pending.mu.Lock()
	for a := range s.pending.records {
		here[a.org] = true
	}
	s.pending.mu.Unlock()
	tell := func(org string) error {
		found := false
		err := s.now().rows(ctx, of(org), func(*row) (bool, error) { found = true; return true, nil })
		if found && err == nil {
			err = f(org)
		}
		return err
	}
	for lower := (key{byte(kindCount)}); ; {
		org, found := "", false
		err := s.scan(ctx, lower, key{byte(kindCount) + 1}, func(k, _ []byte) (stop bool, err error) {
			of, _, err := splitOrg(k[1:])
			org, found = string(of), true
			return true, err
		})
		if err == nil && found {
			err = tell(org)
		}
		if err != nil {
			return err
		}
		if !found {
			break
		}
		delete(here, org)
		lower = orgKey(kindCount, org).end()
	}
	byKey := func(a, b string) int { return bytes.Compare(orgKey(kindCount, a), orgKey(kindCount, b)) }
	for _, org := range slices.SortedFunc(maps.Keys(here), byKey) {
		if err := tell(org); err != nil {
			return err
		}
	}
	return nil
}
