package mongodb

import (
	"context"
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// A head lists its decisions by meter, and has their counts. Later each head is counted once, in the order
// of the chain. The last counted head of each chain is stored. A meter's total is the counted
// decisions plus the decisions of later heads.

const (
	// countEvery is the number of uncounted heads at which a handle counts them. A read of a meter
	// reads up to about this number of heads of each chain.
	countEvery = 64
	// countMost is the largest number of heads that one transaction counts.
	countMost = 256
)

// countedBegins begins the keys of these counters.
const countedBegins = "counted:"

// countedKey returns the key of the counter for the last counted head of a chain.
func countedKey(chain [16]byte) string { return countedBegins + hex.EncodeToString(chain[:]) }

// countSoon records that a head was added. If countEvery heads are uncounted, it starts to count
// them in the background. log.mu is held.
func (s *Store) countSoon() {
	if s.log.uncounted++; s.log.uncounted < countEvery {
		return
	}
	s.log.uncounted = 0
	s.done.Go(func() {
		ctx, cancel := context.WithTimeout(s.background, s.timeout)
		defer cancel()
		if err := s.countChain(ctx, s.slot.chain, false); s.background.Err() == nil {
			s.health.report(counting, err)
		}
	})
}

// countChain counts the uncounted heads of a chain. If all is set, it also moves all counts of its records to rows.
// Concurrent calls run one after the other.
func (s *Store) countChain(ctx context.Context, chain [16]byte, all bool) error {
	for more := true; more; {
		err := s.transaction(ctx, &s.counts, func(ctx context.Context) (err error) {
			more, err = s.countHeads(ctx, chain, all)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) countHeads(ctx context.Context, chain [16]byte, all bool) (more bool, err error) {
	counter, err := s.counted(ctx, chain)
	if err != nil {
		return false, err
	}
	heads, err := find[headRow](ctx, s.heads(), headsFrom(chain, counter.N+1), options.Find().
		SetSort(doc("_id", 1)).SetLimit(countMost).SetProjection(doc(headSigned, 0, headDecided, 0)))
	if err != nil || len(heads)+len(counter.Counts) == 0 {
		return false, err
	}
	taken, counts, more, err := s.countRecords(ctx, chain, counter.Counts, heads, all)
	if err != nil {
		return false, err
	}
	more = more || len(heads) == countMost
	heads = heads[:taken]
	type part struct {
		meter
		holder string
	}
	parts := make(map[part]int64)
	for _, h := range heads {
		for _, t := range h.Meters {
			parts[part{t.Meter, h.Holder}] += t.N
		}
	}
	writes := make([]mongo.WriteModel, 0, len(parts))
	for p, n := range parts {
		writes = append(writes, mongo.NewUpdateOneModel().SetFilter(doc("_id", p.key())).SetUpdate(mongo.Pipeline{
			set(quotaCounted, expr("$add", "$"+quotaCounted, n), quotaGiven, byHolder.less(p.holder, n)),
		}))
	}
	if len(writes) > 0 {
		if _, err := s.quotaRows().BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false)); err != nil {
			return false, err
		}
	}
	if taken > 0 {
		counter.N = heads[taken-1].ID.Seq
	}
	_, err = s.db.Collection(countersName).UpdateOne(ctx, doc("_id", countedKey(chain)),
		set(counterN, counter.N, counterCounts, counts), options.UpdateOne().SetUpsert(true))
	return more, err
}

// counted returns the counter of the counted heads of a chain.
func (s *database) counted(ctx context.Context, chain [16]byte) (counter counterRow, err error) {
	err = s.db.Collection(countersName).FindOne(ctx, doc("_id", countedKey(chain))).Decode(&counter)
	return counter, ifAny(err)
}

// pending returns the number of uncounted decisions of each organization in month. It reads the
// state that ctx reads.
func (s *Store) pending(ctx context.Context, month storage.Month) (map[string]int64, error) {
	pending := make(map[string]int64)
	err := s.eachUncounted(ctx, headMeters, func(h *headRow) error {
		for _, t := range h.Meters {
			if t.Meter.Month == month {
				pending[t.Meter.Org] += t.N
			}
		}
		return nil
	})
	return pending, err
}

// eachUncounted calls f for each uncounted head of every chain, with one field, which is headMeters or headCounts. It
// passes the counts of the chains' counters as if they were of a head. It asks three times, however many chains
// there are.
func (s *Store) eachUncounted(ctx context.Context, field string, f func(*headRow) error) error {
	chains, err := s.slotChains(ctx)
	if err != nil || len(chains) == 0 {
		return err
	}
	keys := make([]string, len(chains))
	for i, chain := range chains {
		keys[i] = countedKey(chain)
	}
	of := doc(counterN, 1)
	if field == headCounts {
		of = append(of, doc(counterCounts, 1)...)
	}
	rows, err := find[counterRow](ctx, s.db.Collection(countersName), anyOf("_id", keys),
		options.Find().SetProjection(of))
	if err != nil {
		return err
	}
	counted := make(map[string]int64, len(rows))
	for _, row := range rows {
		counted[row.ID] = row.N
		if len(row.Counts) > 0 {
			if err := f(&headRow{Counts: row.Counts}); err != nil {
				return err
			}
		}
	}
	later := make(bson.A, len(chains))
	for i, chain := range chains {
		later[i] = headsFrom(chain, counted[keys[i]]+1)
	}
	heads, err := find[headRow](ctx, s.heads(), doc("$or", later), options.Find().SetProjection(doc(field, 1)))
	for i := range heads {
		if err := f(&heads[i]); err != nil {
			return err
		}
	}
	return err
}

// metered calls f with the uncounted decisions of each organization in month. f's context reads the
// same state.
func (s *Store) metered(
	ctx context.Context, org string, month storage.Month, f func(ctx context.Context, pending map[string]int64) error,
) error {
	return s.latest(ctx, org, "reading meters", func(ctx context.Context) error {
		pending, err := s.pending(ctx, month)
		if err != nil {
			return err
		}
		return f(ctx, pending)
	})
}

// Metered implements storage.Quotas.
func (s *Store) Metered(ctx context.Context, org string, month storage.Month) (n int64, err error) {
	err = s.metered(ctx, org, month, func(ctx context.Context, pending map[string]int64) error {
		var row quotaRow
		err := s.quotaRows().FindOne(ctx, doc("_id", meter{org, month}.key())).Decode(&row)
		n = row.N + pending[org]
		return ifAny(err)
	})
	return n, err
}

// Meters implements storage.Quotas. Every organization with a decision has a row in quotas,
// even if the decision is not counted yet.
func (s *Store) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	return s.metered(ctx, "", month, func(ctx context.Context, pending map[string]int64) error {
		cursor, err := s.quotaRows().Find(ctx, doc(quotaMonth, month),
			options.Find().SetProjection(doc(quotaGiven, 0)))
		return each(ctx, cursor, err, func(row *quotaRow) (bool, error) {
			n := row.N + pending[row.Meter.Org]
			if n == 0 {
				return true, nil
			}
			return true, f(row.Meter.Org, n)
		})
	})
}
