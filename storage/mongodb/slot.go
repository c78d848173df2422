package mongodb

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// lease is how long a handle keeps its slot after a beat. It is longer than what
	// is known may be believed without proof, two seconds: a handle that has lost its
	// slot, so that [Store.Barrier] does not wait for it, reads through by then.
	lease = 2500 * time.Millisecond
	// beatEvery is how often a slot is renewed.
	beatEvery = 500 * time.Millisecond
)

// slotRow is the place of one handle among those that are live: until a time of the
// server's clock, with the chain of heads that its holder writes.
type slotRow struct {
	ID     int64  `bson:"_id"`
	Chain  []byte `bson:"chain"`
	Holder string `bson:"holder"`
	// Beat is the holder and how old the handle was when it wrote this.
	Beat     string          `bson:"beat"`
	Heard    int64           `bson:"heard"`
	Sessions []bson.RawValue `bson:"sessions"` // in which the holder has transactions
}

// slot is the one that a handle holds.
type slot struct {
	mu     sync.Mutex
	id     int64
	chain  [16]byte
	holder string // empty: none is held

	heard atomic.Uint64
	news  chan struct{} // heard has grown
	// proven is how old the handle was when it wrote the last beat that came back to it
	// through the stream of changes.
	proven atomic.Int64
}

// expired selects the slots that anybody may take.
var expired = bson.E{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{"$until", "$$NOW"}}}}

// until is when a slot that is renewed now expires.
var until = bson.E{Key: "until", Value: bson.D{{Key: "$dateAdd", Value: bson.D{
	{Key: "startDate", Value: "$$NOW"}, {Key: "unit", Value: "millisecond"}, {Key: "amount", Value: lease.Milliseconds()},
}}}}

// beat returns what a beat that is written now says.
func (s *Store) beatOf(holder string) string {
	return holder + "/" + strconv.FormatInt(int64(time.Since(s.began)), 10)
}

func (l *slot) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder != ""
}

// take takes a slot that has expired, or makes another. Transactions that its last
// holder may have left open are ended: they would be in the way of others.
func (l *slot) take(ctx context.Context, s *Store) error {
	slots := s.db.Collection(replicasName)
	holder := uuid.NewString()
	session := s.updates.ID().Lookup("id")
	for {
		var row slotRow
		err := slots.FindOneAndUpdate(ctx, bson.D{expired}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
			{Key: "holder", Value: holder}, until, {Key: "beat", Value: s.beatOf(holder)},
			{Key: "heard", Value: int64(0)}, {Key: "sessions", Value: bson.A{session}},
		}}}}, options.FindOneAndUpdate().SetSort(bson.D{{Key: "_id", Value: 1}})).Decode(&row)
		if errors.Is(err, mongo.ErrNoDocuments) {
			if err := s.addSlot(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := s.endSessions(ctx, row.Sessions); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.id, l.holder = row.ID, holder
		copy(l.chain[:], row.Chain)
		l.heardUpTo(l.heard.Load()) // the slot does not say so yet
		return nil
	}
}

// addSlot adds a slot that has expired.
func (s *Store) addSlot(ctx context.Context) error {
	var last slotRow
	slots := s.db.Collection(replicasName)
	err := slots.FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "_id", Value: -1}})).Decode(&last)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return err
	}
	chain := uuid.New()
	_, err = slots.InsertOne(ctx, bson.D{
		{Key: "_id", Value: last.ID + 1}, {Key: "chain", Value: chain[:]}, {Key: "holder", Value: ""}, {Key: "until", Value: time.Unix(0, 0)},
		{Key: "beat", Value: ""}, {Key: "heard", Value: int64(0)}, {Key: "sessions", Value: bson.A{}},
	})
	if mongo.IsDuplicateKeyError(err) {
		err = nil // another handle has added it
	}
	return err
}

// endSessions ends the transactions of sessions.
func (s *Store) endSessions(ctx context.Context, ids []bson.RawValue) error {
	if len(ids) == 0 {
		return nil
	}
	var sessions bson.A
	for _, id := range ids {
		sessions = append(sessions, bson.D{{Key: "id", Value: id}})
	}
	return s.db.RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err()
}

// errLost means that another handle has the slot.
var errLost = errors.New("the slot of this handle was taken over by another")

// renew writes a beat to a majority.
func (l *slot) renew(ctx context.Context, s *Store) error {
	l.mu.Lock()
	id, holder := l.id, l.holder
	l.mu.Unlock()
	r, err := s.db.Collection(replicasName).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "holder", Value: holder}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{until, {Key: "beat", Value: s.beatOf(holder)}}}}})
	if err == nil && r.MatchedCount == 0 {
		err = errLost
	}
	return err
}

// release lets anybody take the slot.
func (l *slot) release(ctx context.Context, s *Store) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := s.db.Collection(replicasName).UpdateOne(ctx, bson.D{{Key: "_id", Value: l.id}, {Key: "holder", Value: l.holder}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "until", Value: time.Unix(0, 0)}, {Key: "sessions", Value: bson.A{}}}}})
	return err
}

// beat renews the slot until ctx ends, takes another where it was lost, and ends
// what the holders of expired ones have left open.
func (s *Store) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, s.timeout)
		err := s.slot.renew(bounded, s)
		if errors.Is(err, errLost) {
			s.health.log.Warn("this replica was silent for too long and lost its slot: it takes another")
			err = s.slot.take(bounded, s)
		}
		if err == nil {
			err = s.endExpired(bounded)
		}
		cancel()
		if ctx.Err() == nil {
			s.health.report(beating, err)
		}
	}
}

// endExpired ends what the holders of expired slots have left open.
func (s *Store) endExpired(ctx context.Context) error {
	slots := s.db.Collection(replicasName)
	var rows []slotRow
	cursor, err := slots.Find(ctx, bson.D{expired, {Key: "sessions.0", Value: bson.D{{Key: "$exists", Value: true}}}})
	if err == nil {
		err = cursor.All(ctx, &rows)
	}
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := s.endSessions(ctx, row.Sessions); err != nil {
			return err
		}
		_, err := slots.UpdateOne(ctx, bson.D{{Key: "_id", Value: row.ID}, {Key: "holder", Value: row.Holder}, expired},
			bson.D{{Key: "$set", Value: bson.D{{Key: "sessions", Value: bson.A{}}}}})
		if err != nil {
			return err
		}
	}
	return nil
}
