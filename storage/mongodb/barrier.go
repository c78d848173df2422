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

// Acknowledgements need no majority. A handle writes them to the primary alone, and reads them
// there.
var (
	local     = &writeconcern.WriteConcern{W: 1}
	localRead = readconcern.Local()
)

// acknowledgeOwn is how long a handle waits before it acknowledges its own update. Other handles
// rarely wait for this acknowledgement. Writing it at once would delay handles that wait for other
// acknowledgements.
const acknowledgeOwn = 10 * time.Millisecond

// wake makes acknowledge write the last revision that this handle has heard of.
func (l *slot) wake() {
	select {
	case l.news <- struct{}{}:
	default: // acknowledge is already awake
	}
}

// acknowledge writes the last revision that this handle has heard of, for handles that wait in
// Barrier. If the write fails, the acknowledgement may be lost.
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

// returned records that this handle has read its own beat in the change stream.
func (l *slot) returned(beat string) {
	holder, age, _ := strings.Cut(beat, "/")
	if n, err := strconv.ParseInt(age, 10, 64); holder == l.holder && err == nil {
		l.proven.Store(n)
	}
}

// FreshFor implements storage.Documents. It returns the age of this handle's newest beat that was
// read in the change stream. Every commit before this beat comes before it in the stream.
func (s *Store) FreshFor() time.Duration { return s.ago(&s.slot.proven) }

// Barrier implements storage.Documents. It waits for each handle that has not acknowledged the last
// revision. When such a handle's slot expires, Barrier gives the handle up and no longer waits for
// it. A handle that was only frozen can then commit no decisions from its stale caches.
func (s *Store) Barrier(ctx context.Context) error {
	if err := s.check(ctx, ""); err != nil {
		return err
	}
	// If this handle made the last update, the last revision is already known. Therefore the late
	// slots are read while the revision is read.
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
		if !pause(ctx, min(try/4, 4)) { // most handles acknowledge within a millisecond
			return fmt.Errorf("waiting for other replicas: %w", ctx.Err())
		}
	}
}

// lateRow is a slot that Barrier waits for. Its holder has not acknowledged the revision. Or its
// holder was given up, and a transaction of it may still be open.
type lateRow struct {
	Silent bool `bson:"silent"` // the slot has expired, or its holder was given up
}

// silent is an expression that is true if a slot has expired or its holder was given up.
var silent = doc("$or", bson.A{expired, doc("$eq", bson.A{"$" + slotHolder, ""})})

type answer struct {
	late []lateRow
	err  error
}

// behind returns the slots of those other handles that have not acknowledged a revision.
func (s *Store) behind(ctx context.Context, revision uint64) (a answer) {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	a.late, a.err = find[lateRow](ctx, slots, doc(
		"_id", doc("$ne", s.slot.id), slotHeard, doc("$lt", number(revision)),
		"$or", bson.A{doc(slotHolder, doc("$ne", "")), doc(slotDead, doc("$ne", ""))},
	), options.Find().SetProjection(doc("_id", 0, "silent", silent)))
	return a
}
