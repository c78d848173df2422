package mongodb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
)

// quotaRow is the meter of an organization in a month: the number of counted decisions,
// and the places of each handle. A handle's places are the held ones and those used for
// decisions that are not counted yet. The sum of all is the number of decisions and held
// places: a decision uses a place, and counting only moves it.
type quotaRow struct {
	Key   []byte      `bson:"_id"` // text(org) month
	Org   string      `bson:"o"`
	Month int32       `bson:"m"`
	N     int64       `bson:"n"`
	Given []placesRow `bson:"g"`
	// Last is how many places the last Grant gave, or lapsed.
	Last int64 `bson:"last,omitempty"`
}

type placesRow struct {
	Holder string `bson:"h"`
	N      int64  `bson:"n"`
}

// share is the divisor of the remaining places for one Grant, so that other handles get
// some.
const share = 8

type meter struct {
	org   string
	month storage.Month
}

func (m meter) key() []byte {
	return binary.BigEndian.AppendUint32(storage.Text(m.org), uint32(m.month)) //nolint:gosec // a year and a month
}

// tick is a batch's increase of a meter, and how many held places it uses.
type tick struct {
	meter
	n, used int64
}

func ticksOf(records []*storage.Record) (ticks []tick) {
	index := make(map[meter]int, 1)
	for _, r := range records {
		if !r.Metered() {
			continue
		}
		m := meter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}
		i, ok := index[m]
		if !ok {
			i, index[m] = len(ticks), len(ticks)
			ticks = append(ticks, tick{meter: m})
		}
		ticks[i].n++
	}
	return ticks
}

// quotas are the places that this handle holds.
type quotas struct {
	mu   sync.Mutex
	held map[meter]int64
	// owed are places that were returned while there was no majority. They go back after
	// the first beat that succeeds.
	owed map[meter]int64
}

// owe records places to give back.
func (q *quotas) owe(m meter, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owed == nil {
		q.owed = make(map[meter]int64)
	}
	q.owed[m] += n
}

// nextOwed removes and returns one meter with owed places, if any.
func (q *quotas) nextOwed() (m meter, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for m, n = range q.owed {
		delete(q.owed, m)
		break
	}
	return m, n
}

// add changes the number of held places. It reports false if too few are held.
func (q *quotas) add(m meter, n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held == nil {
		q.held = make(map[meter]int64)
	}
	held := q.held[m] + n
	switch {
	case held < 0:
		return false
	case held == 0:
		delete(q.held, m)
	default:
		q.held[m] = held
	}
	return true
}

// use takes held places for t, as many as are left.
func (q *quotas) use(t *tick) {
	q.mu.Lock()
	t.used = min(t.n, q.held[t.meter])
	q.mu.Unlock()
	if !q.add(t.meter, -t.used) {
		t.used = 0 // the places were returned in between
	}
}

func (q *quotas) unuse(ticks []tick) {
	for i := range ticks {
		q.add(ticks[i].meter, ticks[i].used)
		ticks[i].used = 0
	}
}

func (s *Store) quotaRows() *mongo.Collection { return s.db.Collection(quotasName) }

// usePlaces uses places for a batch that is being written: held ones first. It adds the
// missing ones to the meters.
func (s *Store) usePlaces(ctx context.Context, ticks []tick) error {
	for i := range ticks {
		t := &ticks[i]
		if s.quotas.use(t); t.used == t.n {
			continue
		}
		_, err := s.quotaRows().UpdateOne(ctx, bson.D{{Key: "_id", Value: t.key()}}, mongo.Pipeline{
			{{Key: "$set", Value: bson.D{{Key: "o", Value: literal(t.org)}, {Key: "m", Value: int32(t.month)}, //nolint:gosec // a year and a month
				{Key: "n", Value: orElse("$n", int64(0))}, {Key: "g", Value: orElse("$g", bson.A{})}}}},
			{{Key: "$set", Value: bson.D{{Key: "g", Value: given(s.slot.holder, t.n-t.used)}}}},
		}, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return err
		}
	}
	return nil
}

func literal(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }

func orElse(field string, v any) bson.D { return bson.D{{Key: "$ifNull", Value: bson.A{field, v}}} }

// moved is g with n more places of a holder, if g has the holder, and without holders
// that then have none.
func moved(holder string, n any) bson.D {
	isHolder := bson.D{{Key: "$eq", Value: bson.A{"$$this.h", holder}}}
	more := bson.D{{Key: "$add", Value: bson.A{"$$this.n", n}}}
	all := bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: "$g"}, {Key: "in", Value: bson.D{{Key: "$cond", Value: bson.A{
		isHolder, bson.D{{Key: "h", Value: holder}, {Key: "n", Value: more}}, "$$this",
	}}}}}}}
	return bson.D{{Key: "$filter", Value: bson.D{
		{Key: "input", Value: all}, {Key: "cond", Value: bson.D{{Key: "$ne", Value: bson.A{"$$this.n", int64(0)}}}},
	}}}
}

// given is g with n more places of a holder.
func given(holder string, n any) bson.D {
	added := bson.D{{Key: "$concatArrays", Value: bson.A{"$g", bson.A{bson.D{{Key: "h", Value: holder}, {Key: "n", Value: n}}}}}}
	return bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$in", Value: bson.A{holder, "$g.h"}}}, moved(holder, n), added}}}
}

// taken is the number of decisions and held places of a row.
var taken = bson.D{{Key: "$add", Value: bson.A{"$n", bson.D{{Key: "$sum", Value: "$g.n"}}}}}

// lapsed is the Last of a Grant to a handle whose slot may have expired.
const lapsed = -1

// Grant implements storage.Quotas. A handle gets no places after its slot has expired,
// so that none are added after others have taken its places back. After an error some
// places may be granted but unused until this handle ends. The limit still holds.
func (s *Store) Grant(ctx context.Context, org string, month storage.Month, limit, want int64) (int64, error) {
	if err := errors.Join(checkPlaces(ctx, org, want), s.available()); err != nil || want == 0 || limit <= 0 {
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	m := meter{org, month}
	for made := false; ; {
		n, err := s.grant(bounded, m, limit, want)
		switch {
		case err == nil && n == lapsed:
			if err := s.slot.renew(bounded, s); err != nil {
				return 0, failed(ctx, "asking for places", err)
			}
		case err == nil:
			s.quotas.add(m, n)
			return n, nil
		case !errors.Is(err, mongo.ErrNoDocuments):
			return 0, failed(ctx, "asking for places", err)
		case made: // the row exists, and no place is left
			return 0, nil
		default:
			_, err := s.quotaRows().InsertOne(bounded, quotaRow{Key: m.key(), Org: org, Month: int32(month), Given: []placesRow{}}) //nolint:gosec // a year and a month
			if err != nil && !mongo.IsDuplicateKeyError(err) {
				return 0, failed(ctx, "asking for places", err)
			}
			made = true
		}
	}
}

// grant gives this handle up to want of the remaining places of a meter with a row.
func (s *Store) grant(ctx context.Context, m meter, limit, want int64) (int64, error) {
	left := bson.D{{Key: "$subtract", Value: bson.A{limit, taken}}}
	part := bson.D{{Key: "$max", Value: bson.A{int64(1), bson.D{{Key: "$toLong", Value: bson.D{{Key: "$divide", Value: bson.A{left, share}}}}}}}}
	held := bson.D{{Key: "$lt", Value: bson.A{"$$NOW", time.UnixMilli(s.slot.until.Load())}}}
	last := bson.D{{Key: "$cond", Value: bson.A{held, bson.D{{Key: "$min", Value: bson.A{want, part}}}, int64(lapsed)}}}
	g := bson.D{{Key: "$cond", Value: bson.A{held, given(s.slot.holder, "$last"), "$g"}}}
	var row quotaRow
	err := s.quotaRows().FindOneAndUpdate(ctx,
		bson.D{{Key: "_id", Value: m.key()}, {Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{left, int64(0)}}}}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "last", Value: last}}}}, {{Key: "$set", Value: bson.D{{Key: "g", Value: g}}}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&row)
	return row.Last, err
}

// Return implements storage.Quotas. Without a majority the places go back later, when
// there is one.
func (s *Store) Return(ctx context.Context, org string, month storage.Month, n int64) error {
	if err := checkPlaces(ctx, org, n); err != nil || n == 0 {
		return err
	}
	m := meter{org, month}
	if !s.quotas.add(m, -n) {
		return fmt.Errorf("returning %d places of %q in %d, of which fewer are held", n, org, month)
	}
	if s.available() == nil {
		return failed(ctx, "returning places", s.giveBack(ctx, m, n))
	}
	s.quotas.owe(m, n)
	return nil
}

func (s *Store) giveBack(ctx context.Context, m meter, n int64) error {
	_, err := s.quotaRows().UpdateOne(ctx, bson.D{{Key: "_id", Value: m.key()}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "g", Value: moved(s.slot.holder, -n)}}}}})
	return err
}

// repay gives back owed places. It does not retry an error, which may have given them
// back.
func (s *Store) repay(ctx context.Context) error {
	for {
		m, n := s.quotas.nextOwed()
		if n == 0 {
			return nil
		}
		if err := s.giveBack(ctx, m, n); err != nil {
			return err
		}
	}
}

func checkPlaces(ctx context.Context, org string, places int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if places < 0 || places == math.MaxInt64 {
		return fmt.Errorf("%d places of a meter", places)
	}
	return checkOrg(org)
}

// freePlaces takes back the places of a holder that was given up. All its decisions must
// be counted.
func (s *Store) freePlaces(ctx context.Context, holder string) error {
	_, err := s.quotaRows().UpdateMany(ctx, bson.D{{Key: "g.h", Value: holder}},
		bson.D{{Key: "$pull", Value: bson.D{{Key: "g", Value: bson.D{{Key: "h", Value: holder}}}}}})
	return err
}
