package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ.example/writ/storage"
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

// appendSealed writes a sealed batch with its head as one frame, and adds its keys and meters to
// the index. The caller holds s.commits.
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
	s.addKeys(number, sealed, ids, head.Seq, ticks)
	if len(sealed.Entries) > 0 {
		s.entered.Add(1)
	}
	s.tip = s.tip.Next(head.Head)
	s.signed(head.Head)
	return nil
}

// addKeys adds the keys of a frame to the index.
func (s *Store) addKeys(
	number uint64, sealed storage.Batch, ids map[*storage.Record]uuid.UUID, seq uint64, ticks []tick,
) {
	k, hashes := &s.buffers.keys, s.buffers.hashes[:0]
	k.reset(number)
	k.head(seq)
	for i, r := range sealed.Records {
		k.record(r, ids[r], uint32(i))
		k.counts(r)
		hashes = append(hashes, s.intents.Hash(r.OrganizationID, r.IntentID))
	}
	for i, e := range sealed.Entries {
		k.entry(e, place{seq, uint32(len(sealed.Records) + i)})
	}
	for _, t := range ticks {
		k.meter(t.meter, t.stored)
	}
	s.index.Add(number, &k.Keys)
	s.intents.Add(number, hashes)
	s.buffers.hashes = hashes
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
	return s.index.Scan(ctx, headKey(from), key{byte(kindHead) + 1}, func(k, v []byte) (bool, error) {
		h, err := s.readHead(v)
		seq := headSeq(k)
		if err == nil && h.Seq != seq {
			err = fmt.Errorf("head %d is in its place", h.Seq)
		}
		if err != nil {
			return true, &storage.BreakError{Head: seq, Err: err}
		}
		if h.Chain != chain {
			return true, nil
		}
		return false, f(h)
	})
}

// Chains implements storage.Log.
func (s *Store) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	tip, err := s.Tip(ctx)
	if err != nil || tip.Seq == 0 {
		return err
	}
	return f(tip)
}
