package mongodb

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// streamWait is how long the server waits for an event before it answers. An own beat comes earlier.
	// streamPatience is how long the answer may take. A frozen server never answers, even if the set already
	// has another primary. Therefore the second bound is needed.
	streamWait     = beatEvery * 3 / 2
	streamPatience = 1500 * time.Millisecond
)

type streamEvent struct {
	NS struct {
		Coll string `bson:"coll"`
	} `bson:"ns"`
	Change  *changeRow `bson:"fullDocument"`
	Updated struct {
		Fields struct {
			Beat string `bson:"beat"`
		} `bson:"updatedFields"`
	} `bson:"updateDescription"`
}

// streamed passes the changes of all handles and the beats of this handle. The beats of others prove nothing:
// a stream that is late brings them too.
func (l *slot) streamed() mongo.Pipeline {
	return mongo.Pipeline{doc("$match", doc("$or", bson.A{
		doc("ns.coll", changesName, "operationType", "insert"),
		doc("ns.coll", replicasName, "operationType", "update", "documentKey._id", l.id,
			"updateDescription.updatedFields."+slotBeat, doc("$exists", true)),
	}))}
}

// listen receives the changes of other handles until ctx ends. If a stream fails, it opens a new
// stream and reads the changes in between. It never resumes a stream. It ends if the database was restored.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil && s.slot.foreign.Load() == nil {
		if err := s.hear(ctx); ctx.Err() == nil {
			s.metrics.replaced.Inc()
			s.health.report(streaming, err)
		}
		pause(ctx, 6)
	}
}

// hear opens a stream and tells the watchers its changes until the stream fails.
func (s *Store) hear(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stream, err := s.db.Watch(opening, s.slot.streamed(), options.ChangeStream().SetMaxAwaitTime(streamWait))
	if err != nil {
		return err
	}
	defer stream.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the stream has failed
	err = s.catchUpBefore(opening)
	s.health.report(streaming, err)
	for err == nil {
		err = s.next(ctx, stream)
	}
	return err
}

// catchUpBefore tells the watchers the changes committed before the stream began. The stream begins
// after the primary's last operation. If a majority does not have this operation yet, neither the
// stream nor a plain read returns it. So catchUpBefore waits until a majority has it.
func (s *Store) catchUpBefore(ctx context.Context) error {
	at, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.readAt(ctx, at, func(ctx context.Context) error {
		s.watchers.mu.Lock()
		defer s.watchers.mu.Unlock()
		return s.watchers.catchUp(ctx, s)
	})
}

// next waits for the next event and handles it. There may be none.
func (s *Store) next(ctx context.Context, stream *mongo.ChangeStream) error {
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	if !stream.TryNext(ctx) {
		if err := stream.Err(); err != nil || stream.ID() != 0 {
			return err
		}
		return errors.New("the server ended it")
	}
	var e streamEvent
	if err := stream.Decode(&e); err != nil {
		return err
	}
	if e.NS.Coll == replicasName {
		s.slot.returned(e.Updated.Fields.Beat)
		return nil
	}
	if e.Change == nil {
		return errors.New("an insert without its document")
	}
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	switch revision := uint64(e.Change.Revision); {
	case revision <= w.heard: // this handle made the change, or catchUp has told it
		if w.other(e.Change) {
			return s.abandon(restored("revision %d came again with another row", revision))
		}
		return nil
	case revision > w.heard+1:
		return w.catchUp(ctx, s)
	default:
		w.hear(s, e.Change.heard(), e.Change.changes())
		return nil
	}
}
