package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// wake makes acknowledge write the last time up to which the watchers were told.
func (l *slot) wake() {
	select {
	case l.news <- struct{}{}:
	default: // acknowledge is already awake
	}
}

// acknowledge writes the time up to which the watchers were told, for handles that wait in
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
		_, err := slots.UpdateOne(ctx, append(s.slot.mine(), doc(slotTold, doc("$lt", last.at))...),
			set(slotTold, last.at, slotLast, last.stored()))
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

// Barrier implements storage.Documents. The time of the last own row is that of its event in the stream.
// Barrier waits for each handle that has not acknowledged this time. If an update has no row, its time is not
// known. Then Barrier writes a mark, unless a later own row has come. What the update has found may also be what a
// restore has brought back, and no row tells this. So Barrier then waits until a beat has compared the database.
//
// When a handle is silent, Barrier gives it up, and waits until no transaction of
// it can be committed. A handle that was only frozen can then commit no decisions from its stale caches.
//
// A handle may have acknowledged a row of changes that the database does not have, because the database was
// restored. Until its next beat this handle would still decide from the state before. So Barrier refuses.
// A restore can also bring slots back in which a live handle is missing. So Barrier goes by slots only if
// the own slot among them has the last own beat. Otherwise it waits until a beat has found what has happened.
func (s *Store) Barrier(ctx context.Context) error {
	if err := s.check(ctx, ""); err != nil {
		return err
	}
	const waiting = "waiting for other replicas"
	w := &s.watchers
	covers := w.unheard.Load()
	var err error
	if w.marked.Load() < covers {
		err = s.mark(ctx)
	}
	if err == nil && w.compared.Load() < covers {
		err = s.renew(ctx)
	}
	if err != nil {
		return failed(ctx, waiting, err)
	}
	at := w.own.Load()
	if at == nil {
		at = &never
	}
	for try := 0; ; try++ {
		a := s.others(ctx, *at)
		err := a.err
		if err == nil && a.late == 0 && !a.old {
			if err = s.holds(ctx, a.heard); err == nil {
				return s.available()
			}
		}
		if err == nil && a.live == 0 && !a.old {
			err = s.giveUpSilent(ctx)
		}
		if reason := s.available(); reason != nil {
			return failed(ctx, waiting, reason)
		}
		if err != nil && !mongo.IsTimeout(err) && !errors.Is(err, errOpen) {
			return failed(ctx, waiting, err)
		}
		if !pause(ctx, min(try/4, 4)) { // most handles acknowledge within a millisecond
			return fmt.Errorf("%s: %w", waiting, ctx.Err())
		}
	}
}

// never is a time before all events. The server replaces a time of zero by its own.
var never = bson.Timestamp{I: 1}

// reachTries is how often Barrier reads a counter that is smaller than a handle has heard. A new primary
// reaches the last commits of the previous one within some milliseconds.
const reachTries = 50

// holds returns an error if the database does not have one of the rows of changes that other handles have
// acknowledged. Rows may have been trimmed. The database has the row that this handle has heard last.
func (s *Store) holds(ctx context.Context, heard []lastRow) error {
	own := s.slot.last.Load()
	heard = slices.DeleteFunc(heard, func(row lastRow) bool { return row.Key == own.key && string(row.ID) == own.id })
	for _, row := range heard {
		for try := 0; ; try++ {
			last, err := s.revision(ctx, row.Key.Org)
			if err != nil {
				return err
			}
			if last >= row.Key.Revision {
				break
			}
			if try == reachTries || !pause(ctx, 6) {
				return fmt.Errorf("%w: the last revision of organization %q is %d, and a replica has heard of %d: the "+
					"database was restored while replicas used it", storage.ErrUnavailable, row.Key.Org, last,
					row.Key.Revision)
			}
		}
		var is changeRow
		err := s.db.Collection(changesName).FindOne(ctx, doc("_id", row.Key),
			options.FindOne().SetProjection(doc(changeID, 1))).Decode(&is)
		if errors.Is(err, mongo.ErrNoDocuments) {
			continue // it was trimmed
		}
		if err == nil && !bytes.Equal(is.ID, row.ID) {
			err = fmt.Errorf("%w: a replica has heard of revision %d of organization %q with another row: the "+
				"database was restored while replicas used it", storage.ErrUnavailable, row.Key.Revision, row.Key.Org)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer is what the slots of other handles say.
type answer struct {
	// late is how many handles are silent or have not acknowledged a time. A handle that was given up is
	// one of them while a transaction of it may still be open. live are the late ones that are not silent.
	late, live int
	// old says that the slots were read without the last own beat: they are of a database before a restore, or
	// of a primary that was deposed.
	old bool
	// heard are the rows that the others have acknowledged, as far as they are not late.
	heard []lastRow
	err   error
}

// others reads the slots of the other handles, together with the own one.
func (s *Store) others(ctx context.Context, at bson.Timestamp) (a answer) {
	l, slots := &s.slot, s.db.Collection(replicasName, options.Collection().SetReadConcern(localRead))
	last := l.confirmed.Load()
	rows, err := find[slotRow](ctx, slots,
		doc("$or", bson.A{doc("_id", l.id), doc(slotHolder, doc("$ne", "")), doc(slotDead, doc("$ne", ""))}),
		options.Find().SetProjection(doc(slotHolder, 1, slotBeat, 1, slotTold, 1, slotLast, 1)))
	a.old = true
	for _, row := range rows {
		switch {
		case row.ID == l.id:
			age, own := l.ageOf(row.Beat)
			a.old = !own || age < last
		case s.silent(&row):
			a.late++
		case row.Told.Before(at):
			a.late++
			a.live++
		case row.Last != nil && row.Last.Key.Revision > 0:
			a.heard = append(a.heard, *row.Last)
		}
	}
	a.err = err
	return a
}
