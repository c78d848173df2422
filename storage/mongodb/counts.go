package mongodb

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// Records are counted as the meters are. A head has the counts of its batch until a later transaction counts the
// head. This adds them to the counts in the counter of the chain, of which most batches have the same. The oldest
// of these are later moved to the rows of the chain, with a write for each. No two chains share a row, so no handle
// waits for another. Imported and removed records are counted in the same transaction, in the rows of the chain
// of the handle that imports or removes them. The count of an hour is the sum of all rows of the hour, of the
// counters and of the heads that are not counted.

const (
	// keptCounts is how many counts the counter of a chain keeps.
	keptCounts = 8192
	// movedCounts is how many counts one transaction moves to rows at most.
	movedCounts = 4096
)

// hourKey is the identity of a count: of the records with a value in an hour.
type hourKey struct {
	org, value string
	by         storage.CountedBy
	day        storage.Day
	hour       int64
}

// row returns the key of the count's row in a chain, and its field in the row.
func (k *hourKey) row(chain [16]byte) (countID, string) {
	return countID{k.org, int32(k.by), k.day, k.value, chain[:]}, countHours + "." + strconv.FormatInt(k.hour, 10)
}

// hourSums has counts.
type hourSums map[hourKey]int64

// countsOf returns the counts of records, each record n times.
func countsOf(records []*storage.Record, n int64) hourSums {
	sums := make(hourSums)
	for _, r := range records {
		r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
			sums[hourKey{r.OrganizationID, value, by, day, int64(hour)}] += n
		})
	}
	return sums
}

// pack returns the packed form of s, as heads and counters have it. It is, for each organization in turn,
//
//	0 text(organization), and for each of its counts: counted-by(1) text(value) day hour n
//
// The numbers are varints, as encoding/binary writes them. A text is its length, as such a number, and its bytes.
func (s hourSums) pack() []byte {
	keys := slices.SortedFunc(maps.Keys(s), func(a, b hourKey) int { return strings.Compare(a.org, b.org) })
	packed, org := []byte{}, ""
	add := func(text string) {
		packed = append(binary.AppendVarint(packed, int64(len(text))), text...)
	}
	for _, k := range keys {
		if k.org != org {
			org, packed = k.org, append(packed, 0)
			add(org)
		}
		packed = append(packed, byte(k.by))
		add(k.value)
		for _, n := range [...]int64{int64(k.day), k.hour, s[k]} {
			packed = binary.AppendVarint(packed, n)
		}
	}
	return packed
}

// unpack calls f with each packed count.
func unpack(packed []byte, f func(hourKey, int64)) error {
	rest, broken := packed, false
	number := func() int64 {
		n, size := binary.Varint(rest)
		if broken = broken || size <= 0; broken {
			return 0
		}
		rest = rest[size:]
		return n
	}
	text := func() (t string) {
		if n := number(); n >= 0 && n <= int64(len(rest)) {
			t, rest = string(rest[:n]), rest[n:]
		} else {
			broken = true
		}
		return t
	}
	for org := ""; len(rest) > 0 && !broken; {
		by := rest[0]
		if rest = rest[1:]; by == 0 {
			org = text()
			continue
		}
		k := hourKey{org: org, by: storage.CountedBy(by), value: text()}
		k.day, k.hour = storage.Day(number()), number() //nolint:gosec // as pack wrote it
		if n := number(); !broken && k.hour >= 0 && k.hour < int64(len(storage.Hours{})) {
			f(k, n)
		} else {
			broken = true
		}
	}
	if broken {
		return fmt.Errorf("%w: packed counts of %d bytes end early or have no hour", errCorrupt, len(packed))
	}
	return nil
}

// add adds packed counts to s.
func (s hourSums) add(packed []byte) error {
	return unpack(packed, func(k hourKey, n int64) { s[k] += n })
}

// takeOldest removes the n oldest counts from s and returns them.
func (s hourSums) takeOldest(n int) hourSums {
	taken := make(hourSums, n)
	if n == 0 {
		return taken
	}
	keys := slices.SortedFunc(maps.Keys(s), func(a, b hourKey) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.hour, b.hour))
	})
	for _, k := range keys[:min(n, len(keys))] {
		taken[k] = s[k]
		delete(s, k)
	}
	return taken
}

// addCounts adds counts to the rows of a chain. ctx is in a transaction.
func (s *Store) addCounts(ctx context.Context, chain [16]byte, counts hourSums) error {
	if len(counts) == 0 {
		return nil
	}
	writes := make([]mongo.WriteModel, 0, len(counts))
	for k, n := range counts {
		id, hour := k.row(chain)
		writes = append(writes, mongo.NewUpdateOneModel().SetFilter(doc("_id", id)).SetUpsert(true).
			SetUpdate(doc("$inc", doc(hour, n))))
	}
	_, err := s.countRows().BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	return err
}

func (s *database) countRows() *mongo.Collection { return s.db.Collection(countsName) }

// countRecords moves the counts of heads of a chain to its counter, and the oldest of both to the rows of the chain
// if they are too many, of an earlier day, or if all is set. It takes the first heads alone if their counts are
// too many for a transaction. It returns how many it took, the packed counts for the counter, and whether it must be
// called again. ctx is in a transaction.
func (s *Store) countRecords(
	ctx context.Context, chain [16]byte, counter []byte, heads []headRow, all bool,
) (taken int, packed []byte, more bool, err error) {
	sums := make(hourSums)
	if err := sums.add(counter); err != nil {
		return 0, nil, false, err
	}
	some := false
	for taken < len(heads) && len(sums) < keptCounts+movedCounts {
		some = some || len(heads[taken].Counts) > 0
		if err := sums.add(heads[taken].Counts); err != nil {
			return 0, nil, false, err
		}
		taken++
	}
	moves := max(0, len(sums)-keptCounts)
	today := storage.DayOf(time.Now())
	for k := range sums {
		if all || k.day < today {
			moves = len(sums)
			break
		}
	}
	more = taken < len(heads) || moves > movedCounts
	if err := s.addCounts(ctx, chain, sums.takeOldest(min(moves, movedCounts))); err != nil || !some {
		return taken, sums.pack(), more, err
	}
	counted := doc("_id", doc("$gte", heads[0].ID, "$lte", heads[taken-1].ID), headCounts, doc("$exists", true))
	_, err = s.heads().UpdateMany(ctx, counted, doc("$unset", doc(headCounts, 1)))
	return taken, sums.pack(), more, err
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
	for k := range counts {
		of[days{k.org, int32(k.by), k.day}] = true
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
		return s.eachUncounted(ctx, headCounts, func(h *headRow) error {
			var refused error
			err := unpack(h.Counts, func(k hourKey, n int64) {
				if refused != nil || k.org != org || k.by != by || k.day < from || k.day >= to {
					return
				}
				count := storage.Count{Value: k.value, Day: k.day}
				count.Hours[k.hour] = n
				refused = refuse(f(count))
			})
			return cmp.Or(refused, err)
		})
	})
}
