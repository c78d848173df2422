package mongodb

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// lapsed is the value of quotaRow.Last after a Count by a handle whose slot may have expired.
const lapsed = -1

func (m meter) key() []byte {
	return binary.BigEndian.AppendUint32(storage.Text(m.Org), uint32(m.Month)) //nolint:gosec // a year and a month fit
}

// tick says that a batch has n decisions in a meter. used is how many of the handle's places they
// have taken.
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

// quotas has the places that this handle holds.
type quotas struct {
	mu   sync.Mutex
	held map[meter]int64
	// owed are places to give back once a beat succeeds again. The handle could not give them back,
	// because the set had no majority.
	owed map[meter]int64
}

// owe records places to give back later.
func (q *quotas) owe(m meter, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owed == nil {
		q.owed = make(map[meter]int64)
	}
	q.owed[m] += n
}

// nextOwed removes the owed places of one meter and returns them. n is 0 if none are owed.
func (q *quotas) nextOwed() (m meter, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for m, n = range q.owed {
		delete(q.owed, m)
		break
	}
	return m, n
}

// add adds n to the number of held places. n may be negative. If too few places are held, add
// changes nothing and returns false.
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

// use takes held places for t. If fewer than t.n are held, it takes all of them.
func (q *quotas) use(t *tick) {
	q.mu.Lock()
	t.used = min(t.n, q.held[t.meter])
	q.mu.Unlock()
	if !q.add(t.meter, -t.used) {
		t.used = 0 // in between, the places were given back
	}
}

func (q *quotas) unuse(ticks []tick) {
	for i := range ticks {
		q.add(ticks[i].meter, ticks[i].used)
		ticks[i].used = 0
	}
}

func (s *database) quotaRows() *mongo.Collection { return s.db.Collection(quotasName) }

// usePlaces uses places for a batch that is being written. It takes held places first. For missing
// places it raises the meters.
func (s *Store) usePlaces(ctx context.Context, ticks []tick) error {
	for i := range ticks {
		t := &ticks[i]
		if s.quotas.use(t); t.used == t.n {
			continue
		}
		_, err := s.quotaRows().UpdateOne(ctx, doc("_id", t.key()),
			mongo.Pipeline{t.made(), set(quotaGiven, byHolder.more(s.slot.holder, t.n-t.used))},
			options.UpdateOne().SetUpsert(true))
		if err != nil {
			return err
		}
	}
	return nil
}

// made inserts a meter's row if the row is missing.
func (m meter) made() bson.D {
	return set(quotaOrg, literal(m.Org), quotaMonth, m.Month,
		quotaCounted, orElse(quotaCounted, int64(0)), quotaGiven, orElse(quotaGiven, bson.A{}))
}

// Count implements storage.Quotas.
func (s *Store) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if ask.Need < 0 || ask.Want < 0 {
		return storage.Granted{}, fmt.Errorf("%d places, of which %d are needed", ask.Want, ask.Need)
	}
	if w.Month == 0 {
		return s.countWindow(ctx, &w, &ask)
	}
	return s.countMeter(ctx, meter{w.Org, w.Month}, &ask)
}

// countMeter does Count for a meter. A handle whose slot has expired gets no places, because other
// handles may have taken its places back. After an error some granted places may stay unused until
// this handle ends. If the set has no majority, places are given back later.
func (s *Store) countMeter(ctx context.Context, m meter, ask *storage.Ask) (storage.Granted, error) {
	var back int64
	for _, b := range ask.Back {
		back += b.N
	}
	if err := cmp.Or(ctx.Err(), checkOrg(m.Org)); err != nil {
		return storage.Granted{}, err
	}
	if back < 0 || !s.quotas.add(m, -back) {
		return storage.Granted{},
			fmt.Errorf("returning %d places of %q in %d, of which fewer are held", back, m.Org, m.Month)
	}
	if err := s.available(); err != nil {
		s.quotas.owe(m, back)
		if ask.Want == 0 {
			err = nil
		}
		return storage.Granted{}, err
	}
	var row quotaRow
	err := s.do(ctx, m.Org, "asking for places", func(ctx context.Context) (err error) {
		for {
			row, err = s.exchange(ctx, m, back, ask)
			switch {
			case mongo.IsDuplicateKeyError(err): // another handle has inserted the row
			case err != nil || row.Last != lapsed:
				return err
			default:
				back = 0
				if err := s.renew(ctx); err != nil {
					return err
				}
			}
		}
	})
	if err != nil {
		return storage.Granted{}, err
	}
	s.quotas.add(m, row.Last)
	granted := storage.Granted{N: row.Last, At: ask.At, Total: row.N}
	others := int64(0)
	for _, g := range row.Given {
		if granted.Total += g.N; g.Holder != s.slot.holder {
			others += g.N
		}
	}
	if !limited(ask) {
		return granted, nil
	}
	granted.Ample = row.Scarce.IsZero()
	if idle := row.At.Sub(row.Scarce); !granted.Ample && others > 0 && idle < comeBack {
		granted.Wait = min(comeBack-idle, comeBack/8)
	}
	return granted, nil
}

// comeBack is the time within which all handles give their idle places back once they are scarce.
// They ask every second whether places are scarce.
const comeBack = 2 * time.Second

// limited reports whether ask is for places within a limit.
func limited(ask *storage.Ask) bool { return ask.Want > 0 && ask.Limit < storage.NoLimit }

// Scarce implements storage.Quotas.
func (s *Store) Scarce(ctx context.Context, meters []storage.Window) ([]bool, error) {
	scarce, keys := make([]bool, len(meters)), make([][]byte, len(meters))
	index := make(map[string]int, len(meters))
	for i, w := range meters {
		keys[i] = meter{w.Org, w.Month}.key()
		index[string(keys[i])] = i
	}
	err := s.do(ctx, "", "looking for scarce places", func(ctx context.Context) error {
		rows, err := find[quotaRow](ctx, s.quotaRows(),
			append(anyOf("_id", keys), doc(quotaScarce, doc("$exists", true))...),
			options.Find().SetProjection(doc("_id", 1)))
		for _, row := range rows {
			scarce[index[string(row.Key)]] = true
		}
		return err
	})
	return scarce, err
}

// exchange gives back places of this handle and gets the places that ask wants.
func (s *Store) exchange(ctx context.Context, m meter, back int64, ask *storage.Ask) (row quotaRow, err error) {
	last := any(int64(0))
	if ask.Want > 0 {
		held := expr("$lt", "$$NOW", time.UnixMilli(s.slot.until.Load()))
		last = expr("$cond", held, granting(ask, leftOf(ask), ampleGrant(ask)), int64(lapsed))
	}
	stages := mongo.Pipeline{
		m.made(),
		set(quotaGiven, byHolder.less(s.slot.holder, back)),
		set(quotaLast, last),
		set(quotaGiven, byHolder.more(s.slot.holder, expr("$max", int64(0), "$"+quotaLast))),
	}
	if limited(ask) {
		scarce := expr("$gte", expr("$multiply", int64(ampleParts), placesGiven), leftOf(ask))
		stages = append(stages, set(quotaAt, "$$NOW", quotaScarce,
			expr("$cond", scarce, orElse(quotaScarce, "$$NOW"), "$$REMOVE")))
	}
	err = s.quotaRows().FindOneAndUpdate(ctx, doc("_id", m.key()), stages, after().SetUpsert(true)).Decode(&row)
	return row, err
}

// freeParts divides the free places. A grant above Need is at most one part, so that other handles
// also get places.
const freeParts = 16

// ampleParts divides the free places of a meter. Places are ample while all handles together hold
// less than a part.
const ampleParts = 8

// placesGiven is an expression for the places of all handles in a meter, and leftOf one for the free
// places.
var placesGiven = doc("$sum", "$"+quotaGiven+"."+placesN)

func leftOf(ask *storage.Ask) bson.D {
	return expr("$subtract", ask.Limit, expr("$add", "$"+quotaCounted, placesGiven))
}

func partOf(left any, parts int64) bson.D {
	return doc("$toLong", doc("$floor", expr("$divide", left, parts)))
}

// granting returns the expression for the number of places to grant, above Need at most most. left
// is the expression for the free places.
func granting(ask *storage.Ask, left, most any) bson.D {
	return expr("$cond", expr("$gte", left, ask.Need), expr("$max", ask.Need, expr("$min", ask.Want, most)), int64(0))
}

// ampleGrant returns the expression for the largest grant of a meter above Need. It is half of what
// leaves places ample. If that is less than an eighth of what [freeParts] allows, places will be
// scarce anyway, and a larger grant saves requests.
func ampleGrant(ask *storage.Ask) bson.D {
	left := leftOf(ask)
	part := partOf(left, freeParts)
	ample := partOf(expr("$subtract", left, expr("$multiply", int64(ampleParts), placesGiven)), 2*(ampleParts+1))
	return expr("$cond", expr("$gte", expr("$multiply", int64(8), ample), part), ample, part)
}

// tally describes a list in a row. who is the key field of its entries. An entry has the number of
// places of a handle, or of a part of a window.
type tally struct{ list, who string }

var byHolder, byPart = tally{quotaGiven, placesHolder}, tally{windowParts, partAt}

// of returns the expression for the number of places of an entry.
func (t tally) of(who any) bson.D {
	n := expr("$cond", expr("$eq", "$$this."+t.who, who), "$$this."+placesN, int64(0))
	return doc("$sum", doc("$map", doc("input", "$"+t.list, "in", n)))
}

// more returns the expression for the list after who has got n places. It leaves out entries
// without places.
func (t tally) more(who, n any) bson.D {
	others := doc("$filter", doc("input", "$"+t.list, "cond", expr("$ne", "$$this."+t.who, who)))
	all := expr("$concatArrays", others, bson.A{doc(t.who, who, placesN, expr("$add", t.of(who), n))})
	return doc("$filter", doc("input", all, "cond", expr("$ne", "$$this."+placesN, int64(0))))
}

// less returns the expression for the list after places were given back. An entry with fewer than n
// places gives back all of them.
func (t tally) less(who any, n int64) bson.D {
	return t.more(who, expr("$subtract", int64(0), expr("$min", t.of(who), n)))
}

// repay gives owed places back. It never repeats a failed attempt, because the store may have taken
// these places back.
func (s *Store) repay(ctx context.Context) error {
	for {
		m, n := s.quotas.nextOwed()
		if n == 0 {
			return nil
		}
		if _, err := s.exchange(ctx, m, n, &storage.Ask{}); err != nil {
			return err
		}
	}
}

// freePlaces takes back all places of a holder. All decisions of the holder must be counted.
func (s *Store) freePlaces(ctx context.Context, holder string) error {
	_, err := s.quotaRows().UpdateMany(ctx, doc(quotaGiven+"."+placesHolder, holder),
		doc("$pull", doc(quotaGiven, doc(placesHolder, holder))))
	return err
}
