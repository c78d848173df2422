package mongodb

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ/storage"
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
	if age, ok := l.ageOf(beat); ok {
		l.proven.Store(age)
	}
}

// FreshFor implements storage.Documents. It returns the age of this handle's newest beat that was
// read in the change stream. Every commit before this beat comes before it in the stream.
func (s *Store) FreshFor() time.Duration { return s.ago(&s.slot.proven) }

// Barrier implements storage.Documents. It waits for each handle that has not acknowledged the last
// revision. When such a handle's slot expires, Barrier gives the handle up and no longer waits for
// it. A handle that was only frozen can then commit no decisions from its stale caches.
//
// A handle that has acknowledged more than the last revision is one that has used the database before
// a restore. Until its next beat it would still decide from what was before, so Barrier refuses.
func (s *Store) Barrier(ctx context.Context) error {
	if err := s.check(ctx, ""); err != nil {
		return err
	}
	// If this handle made the last update, the last revision is already known. Therefore the late
	// slots are read while the revision is read.
	known := s.slot.heard.Load()
	first := make(chan answer, 1)
	go func() { first <- s.others(ctx, known) }()
	s.watchers.mu.Lock()
	err := s.watchers.catchUp(ctx, s)
	revision := s.watchers.heard
	s.watchers.mu.Unlock()
	if err != nil {
		return failed(ctx, "waiting for other replicas", err)
	}
	a := <-first
	counted := false // the counter was read after the slots, and no handle has heard of more
	for try := 0; ; try++ {
		if try > 0 || revision != known {
			a = s.others(ctx, revision)
		}
		err := a.err
		if err == nil && (!counted || a.most > revision) {
			if err = s.reaches(ctx, max(a.most, revision)); err == nil {
				counted = true
			}
		}
		if err == nil && a.late == 0 {
			return s.available()
		}
		if err == nil && a.live == 0 && s.maySettle() {
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

// reachTries is how often Barrier reads a counter that is smaller than a handle has heard. A new primary
// reaches the last commits of the previous one within some milliseconds.
const reachTries = 50

// reaches returns an error if the counter of revisions is smaller than a revision.
func (s *Store) reaches(ctx context.Context, revision uint64) error {
	for try := 0; ; try++ {
		last, err := s.revision(ctx)
		switch {
		case err != nil || last >= revision:
			return err
		case try == reachTries || !pause(ctx, 6):
			return fmt.Errorf("%w: the last revision is %d, and a replica has heard of %d: the database was restored "+
				"while replicas used it", storage.ErrUnavailable, last, revision)
		}
	}
}

// otherRow is a slot of another handle.
type otherRow struct {
	Holder string `bson:"holder"`
	Heard  int64  `bson:"heard"`
	Silent bool   `bson:"silent"` // the slot has expired, or its holder was given up
}

// silent is an expression that is true if a slot has expired or its holder was given up.
var silent = doc("$or", bson.A{expired, doc("$eq", bson.A{"$" + slotHolder, ""})})

// answer is what the slots of other handles say.
type answer struct {
	// late is how many handles have not acknowledged a revision. A handle that was given up is one of them
	// while a transaction of it may still be open. live are the late ones that are not silent.
	late, live int
	// most is the largest revision that a handle has acknowledged which is not silent.
	most uint64
	err  error
}

// others reads the slots of the other handles.
func (s *Store) others(ctx context.Context, revision uint64) (a answer) {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	rows, err := find[otherRow](ctx, slots, doc(
		"_id", doc("$ne", s.slot.id),
		"$or", bson.A{doc(slotHolder, doc("$ne", "")), doc(slotDead, doc("$ne", ""))},
	), options.Find().SetProjection(doc("_id", 0, slotHolder, 1, slotHeard, 1, "silent", silent)))
	for _, row := range rows {
		heard := uint64(max(row.Heard, 0))
		if !row.Silent {
			a.most = max(a.most, heard)
		}
		if heard >= revision && (heard == revision || !row.Silent) {
			continue
		}
		if a.late++; !row.Silent {
			a.live++
		}
	}
	a.err = err
	return a
}
