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
	// streamWait is how long the server waits for an event before it answers, and
	// streamPatience how long that may take: a server that is frozen never answers,
	// while the set has another primary long since.
	streamWait     = 250 * time.Millisecond
	streamPatience = 1500 * time.Millisecond
)

// streamEvent is of the stream: a change, or a beat.
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

// streamed selects what listen wants to hear.
var streamed = mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
	bson.D{{Key: "ns.coll", Value: changesName}, {Key: "operationType", Value: "insert"}},
	bson.D{{Key: "ns.coll", Value: replicasName}, {Key: "operationType", Value: "update"},
		{Key: "updateDescription.updatedFields.beat", Value: bson.D{{Key: "$exists", Value: true}}}},
}}}}}}

// listen hears what other handles change until ctx ends. A stream that fails is
// followed by another, before which all that was missed is read: no stream needs
// to be resumed where another was cut.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.hear(ctx); ctx.Err() == nil {
			s.metrics.replaced.Inc()
			s.health.report(streaming, err)
		}
		pause(ctx, 6)
	}
}

// hear opens a stream and tells what comes through it, until it fails.
func (s *Store) hear(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stream, err := s.db.Watch(opening, streamed, options.ChangeStream().SetMaxAwaitTime(streamWait))
	if err != nil {
		return err
	}
	defer stream.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing more is wanted of it
	err = s.catchUpBefore(opening)
	s.health.report(streaming, err)
	for err == nil {
		err = s.next(ctx, stream)
	}
	return err
}

// catchUpBefore tells what was committed before the stream that is open began. It begins
// after all that the primary has, of which a majority may not have the last yet: that
// is neither in the stream nor in a plain read, so this waits until a majority has it.
func (s *Store) catchUpBefore(ctx context.Context) error {
	session, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return s.watchers.catchUp(mongo.NewSessionContext(ctx, session), s)
}

// next tells what comes next, if anything does.
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
	case revision <= w.heard: // it was this handle's own, or read
		return nil
	case revision > w.heard+1:
		return w.catchUp(ctx, s)
	default:
		w.hear(s, revision, e.Change.changes())
		return nil
	}
}
