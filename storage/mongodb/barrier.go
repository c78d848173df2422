package mongodb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// Acknowledgements need no majority: they are written to and read from the primary
// alone.
var (
	local     = &writeconcern.WriteConcern{W: 1}
	localRead = readconcern.Local()
)

// acknowledgeOwn is how long a handle delays the acknowledgement of its own update. Only
// a handle without later updates waits for that acknowledgement, and writing it delays
// the handles that wait for other acknowledgements.
const acknowledgeOwn = 10 * time.Millisecond

// wake makes acknowledge look at the revision that was heard last.
func (l *slot) wake() {
	select {
	case l.news <- struct{}{}:
	default: // acknowledge is about to look
	}
}

// acknowledge writes the revision that was heard last, for the handles that wait for it.
// A fault may lose the acknowledgement.
func (s *Store) acknowledge(ctx context.Context) {
	slots := s.db.Collection(replicasName, options.Collection().SetWriteConcern(local))
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.slot.news:
		}
		_, err := slots.UpdateOne(ctx, s.slot.mine(),
			doc("$max", doc(slotHeard, number(s.slot.heard.Load()))))
		if err != nil && pause(ctx, 6) {
			s.slot.wake()
		}
	}
}

// returned records that a beat has come back through the stream.
func (l *slot) returned(beat string) {
	holder, age, _ := strings.Cut(beat, "/")
	if n, err := strconv.ParseInt(age, 10, 64); holder == l.holder && err == nil {
		l.proven.Store(n)
	}
}

// FreshFor implements storage.Documents. It returns the age of this handle's newest beat
// that came back through the stream. Every commit before the beat precedes it there.
func (s *Store) FreshFor() time.Duration { return s.ago(&s.slot.proven) }

// Barrier implements storage.Documents. It waits for each handle that has not heard the
// last revision, at most until that handle's slot expires. Then the handle is given up.
// If it was only frozen, it can't commit decisions based on its stale caches.
func (s *Store) Barrier(ctx context.Context) error {
	if err := s.check(ctx, ""); err != nil {
		return err
	}
	// After an own update the last committed revision is known already. The late slots are
	// therefore read while that revision is read.
	known := s.slot.heard.Load()
	first := make(chan answer, 1)
	go func() { first <- s.behind(ctx, known) }()
	s.watchers.mu.Lock()
	err := s.watchers.catchUp(ctx, s)
	revision := s.watchers.heard
	s.watchers.mu.Unlock()
	if err != nil {
		return failed(ctx, "waiting for other replicas", err)
	}
	a := <-first
	for try := 0; ; try++ {
		if try > 0 || revision != known {
			a = s.behind(ctx, revision)
		}
		late, err := a.late, a.err
		if err == nil && len(late) == 0 {
			return nil
		}
		if err == nil && !slices.ContainsFunc(late, func(row lateRow) bool { return !row.Silent }) && s.maySettle() {
			err = s.giveUpSilent(ctx)
		}
		if err != nil && !mongo.IsTimeout(err) {
			return failed(ctx, "waiting for other replicas", err)
		}
		if !pause(ctx, min(try/4, 4)) { // most have heard within a millisecond
			return fmt.Errorf("waiting for other replicas: %w", ctx.Err())
		}
	}
}

// lateRow is a slot whose holder has not heard of a revision, or was given up and may
// have a transaction under way.
type lateRow struct {
	Silent bool `bson:"silent"` // it has expired
}

// silent is true of a slot that has expired or was given up.
var silent = doc("$or", bson.A{expired, doc("$eq", bson.A{"$" + slotHolder, ""})})

// answer is what behind returns.
type answer struct {
	late []lateRow
	err  error
}

// behind returns the slots of other handles that have not acknowledged a revision.
func (s *Store) behind(ctx context.Context, revision uint64) (a answer) {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	a.late, a.err = find[lateRow](ctx, slots, doc(
		"_id", doc("$ne", s.slot.id), slotHeard, doc("$lt", number(revision)),
		"$or", bson.A{doc(slotHolder, doc("$ne", "")), doc(slotDead, doc("$ne", ""))},
	), options.Find().SetProjection(doc("_id", 0, "silent", silent)))
	return a
}
