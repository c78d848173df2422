package mongodb

import (
	"context"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// Records are counted as the meters are. A head has the counts of its batch until a later transaction adds
// them to the rows of its chain: then the head is counted. No two chains share a row, so no handle waits
// for another. Imported and removed records are counted in the same transaction, in the rows of the chain
// of the handle that imports or removes them. The count of an hour is the sum of all rows of the hour and
// of the heads that are not counted.

// hourKey is the identity of an hourCount.
type hourKey struct {
	org, value string
	by         storage.CountedBy
	day        storage.Day
	hour       int32
}

// hourSums adds up hourCounts.
type hourSums map[hourKey]int64

func (s hourSums) counts() []hourCount {
	counts := make([]hourCount, 0, len(s))
	for k, n := range s {
		counts = append(counts, hourCount{countID{Org: k.org, By: int32(k.by), Day: k.day, Value: k.value}, k.hour, n})
	}
	return counts
}

// countsOf returns the counts of records, each record n times.
func countsOf(records []*storage.Record, n int64) []hourCount {
	sums := make(hourSums)
	for _, r := range records {
		r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
			sums[hourKey{r.OrganizationID, value, by, day, int32(hour)}] += n //nolint:gosec // an hour fits
		})
	}
	return sums.counts()
}

// addCounts adds counts to the rows of a chain. ctx is in a transaction.
func (s *Store) addCounts(ctx context.Context, chain [16]byte, counts []hourCount) error {
	if len(counts) == 0 {
		return nil
	}
	writes := make([]mongo.WriteModel, len(counts))
	for i, t := range counts {
		t.ID.Chain = chain[:]
		writes[i] = mongo.NewUpdateOneModel().SetFilter(doc("_id", t.ID)).SetUpsert(true).
			SetUpdate(doc("$inc", doc(countHours+"."+strconv.Itoa(int(t.Hour)), t.N)))
	}
	_, err := s.countRows().BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	return err
}

func (s *database) countRows() *mongo.Collection { return s.db.Collection(countsName) }

// countRecords moves the counts of heads of a chain to its rows. ctx is in a transaction.
func (s *Store) countRecords(ctx context.Context, chain [16]byte, heads []headRow) error {
	sums := make(hourSums)
	for i := range heads {
		for _, t := range heads[i].Counts {
			by := storage.CountedBy(t.ID.By) //nolint:gosec // as countsOf stored it
			sums[hourKey{t.ID.Org, t.ID.Value, by, t.ID.Day, t.Hour}] += t.N
		}
	}
	counts := sums.counts()
	if err := s.addCounts(ctx, chain, counts); err != nil || len(counts) == 0 {
		return err
	}
	counted := doc("_id", doc("$gte", heads[0].ID, "$lte", heads[len(heads)-1].ID), headCounts, doc("$exists", true))
	_, err := s.heads().UpdateMany(ctx, counted, doc("$unset", doc(headCounts, 1)))
	return err
}

// giveBack subtracts removed records from the counts. Then it deletes the rows of the values that have no
// records left on these days, which changes no sum. ctx is in a transaction.
func (s *Store) giveBack(ctx context.Context, gone []*storage.Record) error {
	counts := countsOf(gone, -1)
	if err := s.addCounts(ctx, s.slot.chain, counts); err != nil {
		return err
	}
	type days struct {
		org string
		by  int32
		day storage.Day
	}
	of := make(map[days]bool)
	for _, t := range counts {
		of[days{t.ID.Org, t.ID.By, t.ID.Day}] = true
	}
	for d := range of {
		if err := s.sweepCounts(ctx, d.org, d.by, d.day); err != nil {
			return err
		}
	}
	return nil
}

// sweepCounts deletes the rows of each value whose sums over all chains are 0 on a day.
func (s *Store) sweepCounts(ctx context.Context, org string, by int32, day storage.Day) error {
	rows, err := find[countRow](ctx, s.countRows(), countsWithin(org, by, day, day+1),
		options.Find().SetSort(doc("_id", 1)))
	if err != nil {
		return err
	}
	var empty []countID
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].ID.Value == rows[0].ID.Value {
			n++
		}
		var sums storage.Hours
		for i := range rows[:n] {
			if err := rows[i].add(&sums); err != nil {
				return err
			}
		}
		for i := range rows[:n] {
			if sums == (storage.Hours{}) {
				empty = append(empty, rows[i].ID)
			}
		}
		rows = rows[n:]
	}
	if len(empty) == 0 {
		return nil
	}
	_, err = s.countRows().DeleteMany(ctx, anyOf("_id", empty))
	return err
}

func countsWithin(org string, by int32, from, to storage.Day) bson.D {
	return doc("_id", doc("$gte", doc("o", org, "b", by, "d", from), "$lt", doc("o", org, "b", by, "d", to)))
}

// add adds the counts of r to sums.
func (r *countRow) add(sums *storage.Hours) error {
	for hour, n := range r.Hours {
		i, err := strconv.Atoi(hour)
		if err != nil || i < 0 || i >= len(sums) {
			return fmt.Errorf("%w: a count is of hour %q", errCorrupt, hour)
		}
		sums[i] += n
	}
	return nil
}

// Counts implements storage.Counter.
func (s *Store) Counts(
	ctx context.Context, org string, by storage.CountedBy, from, to storage.Day, f func(storage.Count) error,
) error {
	return s.latest(ctx, org, "reading counts", func(ctx context.Context) error {
		cursor, err := s.countRows().Find(ctx, countsWithin(org, int32(by), from, to))
		err = each(ctx, cursor, err, func(row *countRow) (bool, error) {
			count := storage.Count{Value: row.ID.Value, Day: row.ID.Day}
			if err := row.add(&count.Hours); err != nil {
				return false, err
			}
			return true, f(count)
		})
		if err != nil {
			return err
		}
		return s.eachUncounted(ctx, func(h *headRow) error {
			for _, t := range h.Counts {
				if t.ID.Org != org || t.ID.By != int32(by) || t.ID.Day < from || t.ID.Day >= to {
					continue
				}
				count := storage.Count{Value: t.ID.Value, Day: t.ID.Day}
				count.Hours[t.Hour] = t.N
				if err := f(count); err != nil {
					return refuse(err)
				}
			}
			return nil
		})
	})
}
