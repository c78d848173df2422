package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ.example/writ/storage"
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
		last := s.slot.last.Load()
		n := number(last.revision)
		_, err := slots.UpdateOne(ctx, append(s.slot.mine(), doc(slotHeard, doc("$lt", n))...),
			set(slotHeard, n, slotRowHeard, []byte(last.id)))
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
// revision. When such a handle is silent, Barrier gives the handle up, and waits until no transaction of
// it can be committed. A handle that was only frozen can then commit no decisions from its stale caches.
//
// A handle may have acknowledged a row of changes that the database does not have, because the database was
// restored. Until its next beat this handle would still decide from the state before. So Barrier refuses.
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
	for try := 0; ; try++ {
		if try > 0 || revision != known {
			a = s.others(ctx, revision)
		}
		err := a.err
		if err == nil && a.late == 0 {
			if err = s.holds(ctx, a.heard); err == nil {
				return s.available()
			}
		}
		if err == nil && a.live == 0 {
			err = s.giveUpSilent(ctx)
		}
		if err != nil && !mongo.IsTimeout(err) && !errors.Is(err, errOpen) {
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

// holds returns an error if the database does not have one of the rows of changes that other handles have
// acknowledged. Rows may have been trimmed. The database has the row that this handle has heard last.
func (s *Store) holds(ctx context.Context, heard []heardRow) error {
	own := *s.slot.last.Load()
	heard = slices.DeleteFunc(heard, func(row heardRow) bool { return row == own })
	if len(heard) == 0 {
		return nil
	}
	var most uint64
	var revisions []int64
	for _, row := range heard {
		most = max(most, row.revision)
		revisions = append(revisions, number(row.revision))
	}
	for try := 0; ; try++ {
		last, err := s.revision(ctx)
		if err != nil {
			return err
		}
		if last >= most {
			break
		}
		if try == reachTries || !pause(ctx, 6) {
			return fmt.Errorf("%w: the last revision is %d, and a replica has heard of %d: the database was restored "+
				"while replicas used it", storage.ErrUnavailable, last, most)
		}
	}
	changes, ids := s.db.Collection(changesName), options.Find().SetProjection(doc(changeID, 1))
	rows, err := find[changeRow](ctx, changes, anyOf("_id", revisions), ids)
	for _, row := range rows {
		is := row.heard()
		for _, was := range heard {
			if err == nil && was.revision == is.revision && was != is {
				err = fmt.Errorf("%w: a replica has heard of revision %d with another row: the database was restored "+
					"while replicas used it", storage.ErrUnavailable, is.revision)
			}
		}
	}
	return err
}

// answer is what the slots of other handles say.
type answer struct {
	// late is how many handles are silent or have not acknowledged a revision. A handle that was given up is
	// one of them while a transaction of it may still be open. live are the late ones that are not silent.
	late, live int
	// heard are the rows that the others have acknowledged, as far as they are not late.
	heard []heardRow
	err   error
}

// others reads the slots of the other handles.
func (s *Store) others(ctx context.Context, revision uint64) (a answer) {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	rows, err := find[slotRow](ctx, slots, s.slot.used(),
		options.Find().SetProjection(doc(slotHolder, 1, slotBeat, 1, slotHeard, 1, slotRowHeard, 1)))
	for _, row := range rows {
		heard := uint64(max(row.Heard, 0))
		switch {
		case s.silent(&row):
			a.late++
		case heard < revision:
			a.late++
			a.live++
		case heard > 0:
			a.heard = append(a.heard, heardRow{heard, string(row.RowHeard)})
		}
	}
	a.err = err
	return a
}
