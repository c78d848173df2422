package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
)

const (
	// believed is how long what is known may be believed without proof that nothing
	// was missed.
	believed = 2 * time.Second
	// lease is how long a handle keeps its slot after a beat. It is longer: a handle
	// whose slot has expired, so that [Store.Barrier] does not wait for it, reads
	// through by then.
	lease = believed + 500*time.Millisecond
	// beatEvery is how often a slot is renewed.
	beatEvery = 500 * time.Millisecond
	// beatPatience is how long that may take. Between two beats that come through, each
	// within it, no slot expires: a handle whose own has expired has had a beat fail, and
	// gives up nobody before others could renew theirs.
	beatPatience = lease / 2
)

// slotRow is the place of one handle among those that are live, until a time of the
// server's clock, with the chain of heads that its holder writes. One that nobody
// holds can be taken.
type slotRow struct {
	ID     int64  `bson:"_id"`
	Chain  []byte `bson:"chain"`
	Holder string `bson:"holder"`
	// Dead is a holder that was given up and of which something may be left.
	Dead string `bson:"dead"`
	// Beat is the holder and how old the handle was when it wrote this.
	Beat     string          `bson:"beat"`
	Until    time.Time       `bson:"until"` // when it expires
	Heard    int64           `bson:"heard"`
	Sessions []bson.RawValue `bson:"sessions"` // in which the holder has transactions
}

// slot is the one that a handle holds.
type slot struct {
	// What follows is set once.
	id     int64
	chain  [16]byte
	holder string // empty: none was taken

	heard atomic.Uint64
	news  chan struct{} // heard has grown
	// proven is how old the handle was when it wrote the last beat that came back to it
	// through the stream of changes.
	proven atomic.Int64
	// sound is how old the handle was when its beats began to come through, and beaten
	// when it began the last one that did.
	sound, beaten atomic.Int64
	// until is when the slot expires at the earliest, in milliseconds of the server's
	// clock.
	until atomic.Int64
	// led is how old the handle was when it began the last beat after which nobody
	// held a slot before its own; 0 where there was none.
	led atomic.Int64
}

// expired selects slots whose holders have been silent.
var expired = bson.E{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{"$until", "$$NOW"}}}}

// until is when a slot that is renewed now expires.
var until = bson.E{Key: "until", Value: bson.D{{Key: "$dateAdd", Value: bson.D{
	{Key: "startDate", Value: "$$NOW"}, {Key: "unit", Value: "millisecond"}, {Key: "amount", Value: lease.Milliseconds()},
}}}}

// beatOf returns what a beat of a holder that is written now says.
func (s *Store) beatOf(holder string) string {
	return holder + "/" + strconv.FormatInt(s.age(), 10)
}

// age is how old the handle is, in nanoseconds.
func (s *Store) age() int64 { return int64(time.Since(s.began)) }

// ago returns how long ago the handle had an age.
func (s *Store) ago(age *atomic.Int64) time.Duration { return time.Duration(s.age() - age.Load()) }

func (s *Store) slots() *mongo.Collection { return s.db.Collection(replicasName) }

// take takes a slot that nobody holds, or adds one.
func (l *slot) take(ctx context.Context, s *Store) error {
	holder := uuid.NewString()
	sessions := bson.A{s.updates.ID().Lookup("id"), s.log.session.ID().Lookup("id")}
	for {
		var row slotRow
		err := s.slots().FindOneAndUpdate(ctx, bson.D{{Key: "holder", Value: ""}, {Key: "dead", Value: ""}}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
			{Key: "holder", Value: holder}, until, {Key: "beat", Value: s.beatOf(holder)},
			{Key: "heard", Value: int64(0)}, {Key: "sessions", Value: sessions},
		}}}}, options.FindOneAndUpdate().SetSort(bson.D{{Key: "_id", Value: 1}}).SetReturnDocument(options.After)).Decode(&row)
		if errors.Is(err, mongo.ErrNoDocuments) {
			if err := s.addSlot(ctx); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			l.id, l.holder = row.ID, holder
			copy(l.chain[:], row.Chain)
			l.until.Store(row.Until.UnixMilli())
			l.sound.Store(s.age())
			l.beaten.Store(s.age())
		}
		return err
	}
}

// addSlot adds a slot that nobody holds.
func (s *Store) addSlot(ctx context.Context) error {
	var last slotRow
	err := s.slots().FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "_id", Value: -1}})).Decode(&last)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return err
	}
	chain := uuid.New()
	_, err = s.slots().InsertOne(ctx, bson.D{
		{Key: "_id", Value: last.ID + 1}, {Key: "chain", Value: chain[:]}, {Key: "holder", Value: ""}, {Key: "dead", Value: ""},
		{Key: "until", Value: time.Unix(0, 0)}, {Key: "beat", Value: ""}, {Key: "heard", Value: int64(0)}, {Key: "sessions", Value: bson.A{}},
	})
	if mongo.IsDuplicateKeyError(err) {
		err = nil // another handle has added it
	}
	return err
}

// errLost means that this handle was given up: another may write its chain. It can
// commit nothing any more.
var errLost = fmt.Errorf("%w: %w: this replica was silent for too long and was given up: start it again", storage.ErrUnavailable, storage.ErrConflict)

// renew writes a beat to a majority.
func (l *slot) renew(ctx context.Context, s *Store) error {
	ctx, cancel := context.WithTimeout(ctx, beatPatience)
	defer cancel()
	var row slotRow
	err := s.slots().FindOneAndUpdate(ctx, l.mine(), mongo.Pipeline{{{Key: "$set", Value: bson.D{until, {Key: "beat", Value: s.beatOf(l.holder)}}}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.D{{Key: "until", Value: 1}})).Decode(&row)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return errLost
	}
	if err == nil {
		l.until.Store(row.Until.UnixMilli())
	}
	return err
}

// mine selects the slot while this handle holds it.
func (l *slot) mine() bson.D {
	return bson.D{{Key: "_id", Value: l.id}, {Key: "holder", Value: l.holder}}
}

// maySettle reports whether this handle may give up others for dead who are silent:
// its own beats have come through for as long. Where all were silent, it was the
// replica set that was gone.
func (s *Store) maySettle() bool { return s.ago(&s.slot.sound) > lease }

// Leads implements storage.Documents: the holder of the first slot does, once its
// beats have come through for longer than another that led may still believe it.
func (s *Store) Leads() bool { return s.slot.led.Load() > 0 && s.ago(&s.slot.led) <= believed }

// lead finds out whether this handle leads, after a beat that was begun at an age.
func (l *slot) lead(ctx context.Context, s *Store, began int64) error {
	before := bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: l.id}}}, {Key: "holder", Value: bson.D{{Key: "$ne", Value: ""}}}}
	err := s.slots().FindOne(ctx, before).Err()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		l.led.Store(began)
		return nil
	case err == nil:
		l.led.Store(0)
	}
	return err
}

// beatOnce renews the slot, and does what a handle may that is not silent itself.
func (s *Store) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	began := s.age()
	if err := s.slot.renew(ctx, s); err != nil {
		s.slot.sound.Store(s.age())
		return err
	}
	s.slot.beaten.Store(began)
	if err := s.repay(ctx); err != nil || !s.maySettle() {
		return err
	}
	return errors.Join(s.bury(ctx), s.slot.lead(ctx, s, began))
}

// beat renews the slot until ctx ends, and gives up for dead who is silent.
func (s *Store) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.beatOnce(ctx)
		if ctx.Err() == nil {
			s.health.report(beating, err)
		}
		if errors.Is(err, errLost) {
			s.lost(err)
			return
		}
	}
}
