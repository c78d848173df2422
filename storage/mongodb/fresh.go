package mongodb

import (
	"context"
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
	return s.ago(&s.slot.proven)
}

// Barrier implements storage.Documents. It waits for each handle that has not heard
// until its slot expires. Then the handle is given up: what it decides by what it
// knows can't be committed any more, should it only have been frozen.
func (s *Store) Barrier(ctx context.Context) error {
	if err := s.available(); err != nil {
		return err
	}
	s.watchers.mu.Lock()
	err := s.watchers.catchUp(ctx, s)
	revision := s.watchers.heard
	s.watchers.mu.Unlock()
	if err != nil {
		return failed(ctx, "waiting for other replicas", err)
	}
	for {
		row, err := s.behind(ctx, revision)
		if err == nil && row == nil {
			return nil
		}
		if err == nil && row.Silent {
			err = s.settleSilent(ctx)
		}
		if err != nil && !mongo.IsTimeout(err) {
			return failed(ctx, "waiting for other replicas", err)
		}
		if !pause(ctx, 1) {
			return fmt.Errorf("waiting for other replicas: %w", ctx.Err())
		}
	}
}

// lateRow is a slot whose holder has not heard of a revision.
type lateRow struct {
	ID     int64 `bson:"_id"`
	Silent bool  `bson:"silent"` // it has expired
}

// behind returns a slot whose holder has not heard of a revision, or was given up and
// may have a transaction under way; one that is live before the others.
func (s *Store) behind(ctx context.Context, revision uint64) (*lateRow, error) {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	silent := bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "$lt", Value: bson.A{"$until", "$$NOW"}}}, bson.D{{Key: "$eq", Value: bson.A{"$holder", ""}}},
	}}}
	cursor, err := slots.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{
			{Key: "_id", Value: bson.D{{Key: "$ne", Value: s.slot.id}}}, {Key: "heard", Value: bson.D{{Key: "$lt", Value: number(revision)}}},
			{Key: "$or", Value: bson.A{bson.D{{Key: "holder", Value: bson.D{{Key: "$ne", Value: ""}}}}, bson.D{{Key: "dead", Value: bson.D{{Key: "$ne", Value: ""}}}}}},
		}}},
		{{Key: "$project", Value: bson.D{{Key: "silent", Value: silent}}}},
		{{Key: "$sort", Value: bson.D{{Key: "silent", Value: 1}}}},
		{{Key: "$limit", Value: 1}},
	})
	if err != nil {
		return nil, err
	}
	defer cursor.Close(ctx) //nolint:errcheck // nothing more is wanted of it
	if !cursor.Next(ctx) {
		return nil, cursor.Err()
	}
	row := new(lateRow)
	return row, cursor.Decode(row)
}

// settleSilent gives up who is silent, if this handle may.
func (s *Store) settleSilent(ctx context.Context) error {
	if !s.maySettle() {
		return nil
	}
	return s.bury(ctx)
}
