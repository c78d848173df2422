package embedded

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/receipt"
)

// Append implements storage.Log.
func (s *Store) Append(
	ctx context.Context, batch storage.Batch, seal storage.Seal,
) (existing storage.Batch, err error) {
	ids, err := batch.Check(checkOrg)
	if err != nil {
		return storage.Batch{}, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := ctx.Err(); err != nil {
		return storage.Batch{}, err
	}
	if err := s.health.writable(); err != nil {
		return storage.Batch{}, err
	}
	existing, fresh, err := s.divide(batch)
	if err != nil || len(fresh.Records)+len(fresh.Entries) == 0 {
		return existing, err
	}
	sealed, head, err := seal(s.tip, fresh)
	if err != nil {
		return storage.Batch{}, err
	}
	if len(sealed.Records)+len(sealed.Entries) == 0 {
		return existing, nil
	}
	if err := s.appendSealed(sealed, ids, head); err != nil {
		return storage.Batch{}, err
	}
	return existing, nil
}

// divide splits batch: existing has the elements that the store already has, fresh has the new
// elements. The caller holds s.commits.
func (s *Store) divide(batch storage.Batch) (existing, fresh storage.Batch, err error) {
	if existing.Records, fresh.Records, err = s.divideRecords(batch.Records); err != nil || len(batch.Entries) == 0 {
		return existing, fresh, err
	}
	existing.Entries, fresh.Entries, err = s.divideEntries(batch.Entries)
	return existing, fresh, err
}

func (s *Store) divideRecords(batch []*storage.Record) (existing, fresh []*storage.Record, err error) {
	name := func(r *storage.Record) intent { return intent{r.OrganizationID, r.IntentKey()} }
	return divide(batch, name, func(_ *storage.Record, name intent) (*storage.Record, error) { return s.decided(name) })
}

// divide splits a batch by the names of its elements. fresh has the elements with new names. For
// every other element, existing has the earlier element with that name. The earlier element is in
// the batch, or stored returns it. stored returns nil for a name that is not stored.
func divide[E any, N comparable](
	batch []*E, name func(*E) N, stored func(*E, N) (*E, error),
) (existing, fresh []*E, err error) {
	n := len(batch)
	both := make([]*E, 2*n)
	existing, fresh = both[:n:n], both[n:n]
	first := make(map[N]*E, n)
	for i, e := range batch {
		of := name(e)
		earlier, ok := first[of]
		if !ok {
			if earlier, err = stored(e, of); err != nil {
				return nil, nil, err
			}
		}
		if existing[i] = earlier; earlier == nil {
			fresh = append(fresh, e)
			earlier = e
		}
		first[of] = earlier
	}
	return existing, fresh, nil
}

// Decided implements storage.Log. It waits for a running append, whose records can be read before
// they are durable. With [Options.WriteBehind] it also returns records that are not durable yet,
// because the callers that appended them have been answered already.
func (s *Store) Decided(ctx context.Context, org, intentID, approvalID string) (*storage.Record, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil {
		return nil, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	r, err := s.decided(intent{org, storage.IntentKey(intentID, approvalID)})
	if r == nil && err == nil {
		err = storage.ErrNotFound
	}
	return r, err
}

// appendSealed writes a sealed batch with its head as one frame, and adds it to the tables and the
// counts. The caller holds s.commits.
func (s *Store) appendSealed(sealed storage.Batch, ids map[*storage.Record]uuid.UUID, head receipt.SignedHead) error {
	if head.Seq != s.tip.Seq+1 || head.Prev != s.tip.Prev || head.Chain != s.tip.ID {
		return fmt.Errorf("%w: head %d does not extend head %d", storage.ErrConflict, head.Seq, s.tip.Seq)
	}
	signed, err := head.MarshalBinary()
	if err != nil {
		return err
	}
	ticks, err := s.ticks(sealed.Records)
	written := false
	defer func() { endTicks(ticks, written) }() // also after a panic, because the ledger continues after one
	if err != nil {
		return err
	}
	number, err := s.write(signed, s.buffers.encode(sealed, ids, &head))
	if err != nil {
		return err
	}
	written = true
	if err := s.addEntries(number, sealed, ids, ticks); err != nil {
		return err // the store has stopped
	}
	if len(sealed.Entries) > 0 {
		s.entered.Add(1)
	}
	s.tip = s.tip.Next(head.Head)
	s.signed(head.Head)
	return nil
}

// addEntries adds what leads to the items of a frame, and counts its records. The caller holds s.commits.
func (s *Store) addEntries(
	number uint64, sealed storage.Batch, ids map[*storage.Record]uuid.UUID, ticks []tick,
) error {
	all := s.buffers.entries[:0]
	x := entries{tables: s.tables, frame: number, add: func(e index.Entry) { all = append(all, e) }}
	for i, r := range sealed.Records {
		x.record(r.OrganizationID, ids[r], r.Decision, r.IntentID, i)
	}
	for i, e := range sealed.Entries {
		i += len(sealed.Records)
		if e.Kind == storage.SettlementEntry {
			id, _ := storage.ParseID(e.Key) // Check has parsed the key already
			x.settled(e.OrganizationID, id, i)
		} else {
			x.entry(e.OrganizationID, e.Kind, e.Key, i)
		}
	}
	s.tables.Add(number, all)
	s.buffers.entries = all
	var err error
	if s.pending.len() >= pendingKeys || s.log.ActiveFirst() == number {
		err = s.keep()
	}
	s.pending.count(number, sealed.Records, ticks)
	return err
}

// Tip implements storage.Log.
func (s *Store) Tip(ctx context.Context) (receipt.Chain, error) {
	if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
		return receipt.Chain{}, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	return s.tip, nil
}

// Heads implements storage.Log. The directory has only one chain.
func (s *Store) Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	return s.headsFrom(ctx, from, math.MaxUint64, func(h *frame) error {
		if h.head.Chain != chain {
			return nil
		}
		return f(h.head)
	})
}

// headsFrom calls f for the frames with heads whose sequences are from from to to.
func (s *Store) headsFrom(ctx context.Context, from, to uint64, f func(h *frame) error) error {
	at, err := s.findHead(from)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	for seq := max(from, 1); ; seq++ {
		if err != nil {
			return &storage.BreakError{Head: seq, Err: err}
		}
		if seq = at.head.Seq; seq > to {
			return nil
		}
		if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
			return err
		}
		if err := f(at); err != nil {
			return err
		}
		for number := at.number; err == nil && (at.number == number || at.imported()); {
			if at.number == s.log.Last() {
				return nil
			}
			at, err = s.frame(at.number + 1)
		}
	}
}

// Chains implements storage.Log.
func (s *Store) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	tip, err := s.Tip(ctx)
	if err != nil || tip.Seq == 0 {
		return err
	}
	return f(tip)
}
