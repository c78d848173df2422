package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// intent names what is decided once.
type intent struct{ org, id string }

// Commit implements storage.Decisions.
func (s *Store) Commit(
	ctx context.Context, batch []*storage.Record, seal storage.Seal,
) ([]*storage.Record, error) {
	ids, err := checkBatch(batch)
	if err != nil {
		return nil, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.health.writable(); err != nil {
		return nil, err
	}
	existing, fresh, err := s.divide(batch)
	if err != nil || len(fresh) == 0 {
		return existing, err
	}
	sealed, head, err := seal(fresh)
	if err != nil {
		return nil, err
	}
	if len(sealed) == 0 {
		return existing, nil
	}
	if err := s.commitFresh(sealed, ids, head); err != nil {
		return nil, err
	}
	return existing, nil
}

// checkBatch returns the decision ids of batch, by record.
func checkBatch(batch []*storage.Record) (map[*storage.Record]uuid.UUID, error) {
	ids := make(map[*storage.Record]uuid.UUID, len(batch))
	for _, r := range batch {
		if err := checkOrg(r.OrganizationID); err != nil {
			return nil, err
		}
		id, ok := parseID(r.DecisionID)
		if !ok || id.Version() != 7 {
			return nil, fmt.Errorf("decision id %.64q is not a canonical UUIDv7", r.DecisionID)
		}
		if skew := r.DecidedAt.Sub(idTime(id)).Abs(); skew > storage.MaxSkew {
			return nil, fmt.Errorf("decision id %s carries a time that is %v away from decided_at", id, skew)
		}
		ids[r] = id
	}
	return ids, nil
}

// divide finds which of batch are the first of their intents, and what stands
// in place of the others. commits is held.
func (s *Store) divide(batch []*storage.Record) (existing, fresh []*storage.Record, err error) {
	stored, err := s.intents()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	existing = make([]*storage.Record, len(batch))
	fresh = make([]*storage.Record, 0, len(batch))
	first := make(map[intent]*storage.Record, len(batch))
	for i, r := range batch {
		name := intent{r.OrganizationID, r.IntentID}
		stands, ok := first[name]
		if !ok {
			if stands, err = s.byIntent(stored, name); err != nil {
				return nil, nil, err
			}
		}
		if existing[i] = stands; stands == nil {
			fresh = append(fresh, r)
			stands = r
		}
		first[name] = stands
	}
	return existing, fresh, nil
}

// intents returns an iterator to look intents up with. Most are new, and Get
// would search the last level, which holds nearly all, for each of them: only
// an iterator can be told to ask the last level's filters first.
func (s *Store) intents() (*pebble.Iterator, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		s.health.report(reading, err)
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	return it, nil
}

// byIntent returns the record of an intent, or nil.
func (s *Store) byIntent(stored *pebble.Iterator, i intent) (*storage.Record, error) {
	s.keys = s.keys[:0].org(kindIntent, i.org).text(i.id)
	id, found, err := s.lookUp(stored, s.keys)
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	if !found {
		return nil, nil
	}
	return s.standing(i, id)
}

// standing returns the record of i, whose row is v.
func (s *Store) standing(i intent, v []byte) (*storage.Record, error) {
	id, err := uuid.FromBytes(v)
	if err != nil {
		return nil, fmt.Errorf("%w: the decision of an intent: %w", errCorrupt, err)
	}
	r, err := s.record(i.org, id)
	if errors.Is(err, storage.ErrNotFound) {
		return s.missing(i, id)
	}
	return r, err
}

// Decided implements storage.Decisions. It waits for a commit that is under way,
// whose records can be read before they are durable. Commits that are written
// behind are found as their own callers were answered: before they are.
func (s *Store) Decided(ctx context.Context, org, intentID string) (*storage.Record, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil {
		return nil, err
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	v, err := s.get(orgKey(kindIntent, org).text(intentID))
	if err != nil {
		return nil, err
	}
	return s.standing(intent{org, intentID}, v)
}

// commitFresh writes fresh, its head and its meters in one batch. commits is
// held.
func (s *Store) commitFresh(
	fresh []*storage.Record, ids map[*storage.Record]uuid.UUID, head receipt.SignedHead,
) error {
	if head.Seq != s.tip.Seq+1 || head.Prev != s.tip.Prev || s.tip.Seq > 0 && head.Chain != s.tip.ID {
		return fmt.Errorf("%w: head %d does not extend head %d", storage.ErrConflict, head.Seq, s.tip.Seq)
	}
	signed, err := head.MarshalBinary()
	if err != nil {
		return err
	}
	b := &batch{b: s.db.NewBatchWithSize(1024 * len(fresh))}
	b.set(headKey(head.Seq), signed)
	b.link(headStream, head.Seq)
	for _, r := range fresh {
		s.addRecord(b, r, ids[r])
	}
	meters, err := s.addMeters(b, fresh)
	if err = errors.Join(err, b.err); err != nil {
		return errors.Join(err, b.b.Close())
	}
	if err := s.applyCommit(b.b); err != nil {
		return err
	}
	s.meters.keep(meters)
	s.tip = receipt.Chain{ID: head.Chain}.Next(head.Head)
	return nil
}

// addRecord puts r's row and its indexes into b. commits is held.
func (s *Store) addRecord(b *batch, r *storage.Record, id uuid.UUID) {
	org := r.OrganizationID
	s.row = appendRecord(s.row[:0], r)
	s.keys = s.keys[:0].org(kindRecord, org).id(id)
	b.set(s.keys, s.row)
	s.keys = s.keys[:0].org(kindIntent, org).text(r.IntentID)
	b.set(s.keys, id[:])
	s.keys = s.keys[:0].org(kindByDecision, org).decision(r.Decision).id(id)
	b.set(s.keys, nil)
}

// LastHead implements storage.Decisions.
func (s *Store) LastHead(ctx context.Context) (receipt.SignedHead, error) {
	if err := ctx.Err(); err != nil {
		return receipt.SignedHead{}, err
	}
	return s.lastHead()
}

func (s *Store) lastHead() (h receipt.SignedHead, err error) {
	found := false
	lower := headKey(0)
	err = s.scanBack(context.Background(), lower, key{byte(kindHead) + 1}, func(_, v []byte) (bool, error) {
		found = true
		return true, h.UnmarshalBinary(v)
	})
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	return h, err
}

// Heads implements storage.Decisions.
func (s *Store) Heads(ctx context.Context, from uint64, f func(receipt.SignedHead) error) error {
	return s.scan(ctx, headKey(from), key{byte(kindHead) + 1}, func(_, v []byte) (bool, error) {
		var h receipt.SignedHead
		if err := h.UnmarshalBinary(v); err != nil {
			return true, err
		}
		return false, f(h)
	})
}
