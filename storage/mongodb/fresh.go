package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// What was heard is no promise: it is written to and read from the primary alone.
var (
	local     = &writeconcern.WriteConcern{W: 1}
	localRead = readconcern.Local()
)

// heardUpTo notes that watchers were told of all up to a revision.
func (l *slot) heardUpTo(revision uint64) {
	l.heard.Store(revision)
	select {
	case l.news <- struct{}{}:
	default: // it is being looked at
	}
}

// acknowledge writes what was heard, for those who wait for it. Nothing depends on
// its being there after a fault.
func (s *Store) acknowledge(ctx context.Context) {
	slots := s.db.Collection(replicasName, options.Collection().SetWriteConcern(local))
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.slot.news:
		}
		_, err := slots.UpdateOne(ctx, s.slot.mine(),
			bson.D{{Key: "$max", Value: bson.D{{Key: "heard", Value: number(s.slot.heard.Load())}}}})
		if err != nil && pause(ctx, 6) {
			s.slot.heardUpTo(s.slot.heard.Load())
		}
	}
}

// returned notes that a beat has come back through the stream.
func (l *slot) returned(beat string) {
	holder, age, _ := strings.Cut(beat, "/")
	if n, err := strconv.ParseInt(age, 10, 64); holder == l.holder && err == nil {
		l.proven.Store(n)
	}
}

// FreshFor implements storage.Documents: the age of the newest beat of this handle
// that it has heard itself. All that was committed before the beat was written is
// before it in the stream.
func (s *Store) FreshFor() time.Duration {
	return time.Since(s.began) - time.Duration(s.slot.proven.Load())
}

// Barrier implements storage.Documents. A handle is live until its slot expires.
func (s *Store) Barrier(ctx context.Context) error {
	s.watchers.mu.Lock()
	err := s.watchers.catchUp(ctx, s)
	revision := s.watchers.heard
	s.watchers.mu.Unlock()
	if err != nil {
		return failed(ctx, "waiting for other replicas", err)
	}
	behind := bson.D{
		{Key: "_id", Value: bson.D{{Key: "$ne", Value: s.slot.id}}}, {Key: "heard", Value: bson.D{{Key: "$lt", Value: number(revision)}}},
		{Key: "$expr", Value: bson.D{{Key: "$gte", Value: bson.A{"$until", "$$NOW"}}}}, {Key: "holder", Value: bson.D{{Key: "$ne", Value: ""}}},
	}
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	for {
		var row slotRow
		err := slots.FindOne(ctx, behind).Decode(&row)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		if err != nil && !mongo.IsTimeout(err) {
			return failed(ctx, "waiting for other replicas", err)
		}
		if !pause(ctx, 1) {
			return fmt.Errorf("waiting for the replica of slot %d: %w", row.ID, ctx.Err())
		}
	}
}
