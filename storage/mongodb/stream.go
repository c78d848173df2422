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
	At bson.Timestamp `bson:"clusterTime"`
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
		append(doc("ns.coll", changesName), anyOf("operationType", bson.A{"insert", "replace"})...),
		doc("ns.coll", replicasName, "operationType", "update", "documentKey._id", l.id,
			"updateDescription.updatedFields."+slotBeat, doc("$exists", true)),
	}))}
}

// historyLost is the server's error code ChangeStreamHistoryLost. With this error the oplog no
// longer has the position of a stream.
const historyLost = 286

// listen receives all changes until ctx ends. If a stream fails, it opens a new stream at the time of the last
// event. It ends if the database was restored.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil && s.slot.foreign.Load() == nil {
		err := s.hear(ctx)
		if hasCode(err, historyLost) {
			s.watchers.mu.Lock()
			s.watchers.lost = true
			s.watchers.mu.Unlock()
		}
		if ctx.Err() == nil {
			s.metrics.replaced.Inc()
			s.health.report(streaming, err)
		}
		pause(ctx, 6)
	}
}

// hear opens a stream and tells the watchers its changes until the stream fails. If the server has no events any
// more of the time up to which they were told, the stream begins now.
func (s *Store) hear(ctx context.Context) (err error) {
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	w := &s.watchers
	w.mu.Lock()
	at, lost := w.at, w.lost
	w.mu.Unlock()
	if lost {
		if at, err = s.now(opening); err != nil {
			return err
		}
	}
	stream, err := s.db.Watch(opening, s.slot.streamed(),
		options.ChangeStream().SetMaxAwaitTime(streamWait).SetStartAtOperationTime(&at))
	if err != nil {
		return err
	}
	defer stream.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the stream has failed
	if lost {
		w.mu.Lock()
		w.missed(s, at)
		w.mu.Unlock()
	}
	s.health.report(streaming, nil)
	for err == nil {
		err = s.next(ctx, stream)
	}
	return err
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
	return s.handle(&e)
}

// handle handles an event. The events of a transaction have the same time.
func (s *Store) handle(e *streamEvent) error {
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.At.After(w.at) {
		return nil // it was handled before the stream was opened
	}
	if e.NS.Coll == replicasName {
		w.at = e.At
		s.slot.returned(e.Updated.Fields.Beat)
		return nil
	}
	if e.Change == nil {
		return errors.New("a row of changes without its document")
	}
	key := e.Change.Key
	if id, again := w.rows[key]; again {
		if e.At.Equal(w.part) && id == string(e.Change.ID) {
			return nil // it was told before the stream was opened, but not all of its transaction
		}
		return s.abandon(restored("revision %d of organization %q came again", key.Revision, key.Org))
	}
	w.hear(s, e.At, e.Change)
	return nil
}
