package mongodb

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// openMortal opens a handle that tells why it was lost.
func openMortal(t *testing.T, o Options) (*Store, <-chan error) {
	t.Helper()
	lost := make(chan error, 1)
	o.Lost = func(err error) { lost <- err }
	return openTest(t, o), lost
}

// refusesAll checks that a handle which knew another database does nothing more.
func refusesAll(t *testing.T, s *Store, w *storagetest.Writer) {
	t.Helper()
	_, appended := w.Commit(t.Context(), s, w.Record("org"))
	_, updated := s.Update(t.Context(), "org", putRule)
	viewed := s.View(t.Context(), func(storage.Reader) error { return nil })
	for name, err := range map[string]error{
		"Append": appended, "Update": updated, "View": viewed, "Barrier": s.Barrier(t.Context()), "Healthy": s.Healthy(t.Context()),
	} {
		if !errors.Is(err, errRestored) || !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrConflict) {
			t.Errorf("%s after a restore = %v, want %v", name, err, errRestored)
		}
	}
}

// TestRestore_EndsWhoUsedTheDatabase restores a database, or a part of it, while two handles use it. Each
// handle must notice it, tell its watchers that everything may have changed, and do nothing more.
func TestRestore_EndsWhoUsedTheDatabase(t *testing.T) {
	for name, parts := range map[string][]string{
		"all":              nil,
		"its documents":    {documentsName, indexName, changesName, countersName},
		"its history":      {recordsName, headsName},
		"its replicas":     {replicasName},
		"and it grew on":   nil,
		"lost its counter": {},
	} {
		t.Run(name, func(t *testing.T) {
			o := newDatabase(t, sharedSet(t))
			a, aLost := openMortal(t, o)
			b, bLost := openMortal(t, o)
			w := storagetest.NewWriter()
			step := func() {
				for _, s := range []*Store{a, b} {
					updateRule(t, s)
					mustCommit(t, w, s, w.Record("org"))
				}
			}
			step()
			kept, err := sharedSet(t).BackUp(t.Context(), o.Database)
			must(t, err)
			must(t, errors.Join(a.renew(t.Context()), b.renew(t.Context())))
			step()
			must(t, errors.Join(a.Barrier(t.Context()), b.Barrier(t.Context())))
			heard := watchRevisions(t, b)
			switch name {
			case "lost its counter":
				_, err := a.db.Collection(countersName).DeleteOne(t.Context(), doc("_id", epochCounter))
				must(t, err)
			case "and it grew on":
				a.slot.renewing.Lock() // no beat in between
				b.slot.renewing.Lock()
				unlock := sync.OnceFunc(func() { a.slot.renewing.Unlock(); b.slot.renewing.Unlock() })
				defer unlock()
				must(t, kept.Restore(t.Context()))
				c := openTest(t, o)
				for range 5 {
					updateRule(t, c)
				}
				await(t, "the stream", func() bool { return a.slot.foreign.Load() != nil && b.slot.foreign.Load() != nil })
				unlock()
			default:
				must(t, kept.Restore(t.Context(), parts...))
			}
			for _, lost := range []<-chan error{aLost, bLost} {
				select {
				case err := <-lost:
					if !errors.Is(err, errRestored) {
						t.Errorf("lost = %v, want %v", err, errRestored)
					}
					t.Log(err)
				case <-time.After(time.Minute):
					t.Fatal("a handle has not noticed the restore within a minute")
				}
			}
			for _, s := range []*Store{a, b} {
				refusesAll(t, s, w)
			}
			await(t, "EverythingChanged", func() bool {
				return slices.Contains(heard.list(), 0)
			})
		})
	}
}

// TestRenew_ComparesTheDatabase changes one thing each that a beat compares.
func TestRenew_ComparesTheDatabase(t *testing.T) {
	id := func(s *Store) bson.D { return doc("_id", s.slot.id) }
	head := func(s *Store) bson.D { return doc("_id", headKey(s.slot.chain, 1)) }
	change := func(s *Store) bson.D { return doc("_id", s.slot.last.Load().key) }
	revision := func(*Store) bson.D { return doc("_id", epochCounter) }
	order := func(*Store) bson.D { return doc("_id", orderOf("org")) }
	for name, test := range map[string]struct {
		collection string
		which      func(*Store) bson.D
		update     bson.D // nil deletes
		want       string
	}{
		"the beat":            {replicasName, id, doc("$set", doc(slotBeat, "x/1")), "has another beat"},
		"the slot":            {replicasName, id, nil, "the slot of this replica is gone"},
		"the schema is gone":  {countersName, func(*Store) bson.D { return doc("_id", schemaCounter) }, nil, "the counter of the schema is gone"},
		"the order":           {countersName, order, doc("$inc", doc(counterN, int64(-1))), `the last revision of organization "org" is 0, and this replica has heard of 1`},
		"the order is gone":   {countersName, order, nil, `the last revision of organization "org" is 0, and this replica has heard of 1`},
		"the counter is gone": {countersName, revision, nil, "the counter of revisions is gone"},
		"the epoch":           {countersName, revision, doc("$set", doc(counterEpoch, make([]byte, 16))), "was made again"},
		"the row heard last":  {changesName, change, doc("$set", doc(changeID, make([]byte, 16))), `revision 1 of organization "org" has another row`},
		"the head":            {headsName, head, nil, "head 1 of this replica is gone"},
		"a trimmed row":       {changesName, change, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := openTest(t, newDatabase(t, sharedSet(t))), storagetest.NewWriter()
			updateRule(t, s)
			mustCommit(t, w, s, w.Record("org"))
			must(t, s.renew(t.Context()))
			c := s.db.Collection(test.collection)
			var err error
			if test.update == nil {
				_, err = c.DeleteOne(t.Context(), test.which(s))
			} else {
				_, err = c.UpdateOne(t.Context(), test.which(s), test.update)
			}
			must(t, err)
			err = s.renew(t.Context())
			if test.want == "" {
				must(t, err)
				return
			}
			if !errors.Is(err, errRestored) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("renew = %v, want %q", err, test.want)
			}
		})
	}
}

// TestRenew_AfterAnUnknownOutcome checks that a handle whose beats have an unknown outcome keeps its slot,
// whichever of them was written.
func TestRenew_AfterAnUnknownOutcome(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	for range 3 * maxTries {
		s.slot.renewing.Lock()
		beat := s.slot.nextBeat(s.database)
		if len(s.slot.tries)%5 == 0 { // written, and not told
			_, err := s.slots().UpdateOne(t.Context(), s.slot.mine(), set(slotBeat, beat))
			must(t, err)
		}
		s.slot.renewing.Unlock()
	}
	must(t, s.renew(t.Context()))
}

// TestAppend_AfterARestore checks that no head follows a gap. The slot of a restored database has an
// earlier beat, and the handle has not noticed it yet.
func TestAppend_AfterARestore(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s, w := openTest(t, o), storagetest.NewWriter()
	updateRule(t, s)
	kept, err := sharedSet(t).BackUp(t.Context(), o.Database)
	must(t, err)
	must(t, s.renew(t.Context()))
	mustCommit(t, w, s, w.Record("org"))
	s.slot.renewing.Lock()
	defer s.slot.renewing.Unlock()
	must(t, kept.Restore(t.Context()))
	if _, err := w.Commit(t.Context(), s, w.Record("org")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Append after a restore = %v, want %v", err, storage.ErrUnavailable)
	}
	if n, err := s.heads().CountDocuments(t.Context(), headsFrom(s.slot.chain, 0)); n != 0 || err != nil {
		t.Errorf("%d heads, %v, want none", n, err)
	}
}

// TestBarrier_AfterNothingWasWritten restores what a handle has heard of. Then an update of this handle finds that
// nothing is to be written. The counter has the revision again, so no revision tells the restore. Barrier must.
func TestBarrier_AfterNothingWasWritten(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	updateRule(t, s)
	s.silence(t)
	var row slotRow
	must(t, s.slots().FindOne(t.Context(), s.slot.mine()).Decode(&row))
	must(t, s.renew(t.Context()))
	s.background, s.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	s.done.Go(func() { s.listen(s.background) })
	for collection, undo := range map[string][2]bson.D{
		countersName: {doc("_id", orderOf("org")), set(counterN, int64(0))},
		replicasName: {s.slot.mine(), set(slotBeat, row.Beat)},
	} {
		_, err := s.db.Collection(collection).UpdateOne(t.Context(), undo[0], undo[1])
		must(t, err)
	}
	for _, collection := range []string{changesName, documentsName} {
		_, err := s.db.Collection(collection).DeleteMany(t.Context(), doc())
		must(t, err)
	}
	_, err := s.Update(t.Context(), "org", func(storage.Tx) error { return nil })
	must(t, err)
	if err := s.Barrier(t.Context()); !errors.Is(err, errRestored) {
		t.Errorf("Barrier = %v, want %v", err, errRestored)
	}
}

// TestUpdate_AfterALostOrder deletes the counter of an organization while three handles run. Their beats compare that of
// another one, of which they have heard last. The next update must notice it, since its revision was given before.
func TestUpdate_AfterALostOrder(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s, lost := openMortal(t, o)
	openTest(t, o)
	openTest(t, o)
	updateRule(t, s)
	_, err := s.Update(t.Context(), "else", func(tx storage.Tx) error {
		return storage.Rules.Put(tx, "else", &engine.Rule{ID: "r"})
	})
	must(t, err)
	_, err = s.db.Collection(countersName).DeleteOne(t.Context(), doc("_id", orderOf("org")))
	must(t, err)
	must(t, s.renew(t.Context()))
	if _, err := s.Update(t.Context(), "org", putRule); !errors.Is(err, errRestored) {
		t.Errorf("Update after the counter of its organization was lost = %v, want %v", err, errRestored)
	}
	if err := <-lost; !errors.Is(err, errRestored) {
		t.Errorf("lost = %v, want %v", err, errRestored)
	}
}

// TestWatch_OfARowByHand inserts a row of changes that no update has made. The handles that hear of it must end.
func TestWatch_OfARowByHand(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, aLost := openMortal(t, o)
	_, bLost := openMortal(t, o)
	revision := updateRule(t, a)
	_, err := a.db.Collection(changesName).InsertOne(t.Context(), newChangeRow("org", revision+1, nil))
	must(t, err)
	for _, lost := range []<-chan error{aLost, bLost} {
		select {
		case err := <-lost:
			if !errors.Is(err, errRestored) {
				t.Errorf("lost = %v, want %v", err, errRestored)
			}
		case <-time.After(time.Minute):
			t.Fatal("a row of changes by hand was not noticed within a minute")
		}
	}
}

// TestBarrier_WhereSlotsAreRestored takes the slots back to a time before a handle was opened, or loses them, as the
// middle of a restore does. This handle still decides and has not heard of a change, and no slot says that it is
// there. Barrier must not go by such slots.
func TestBarrier_WhereSlotsAreRestored(t *testing.T) {
	for name, lost := range map[string]bool{"they are older": false, "they are lost": true} {
		t.Run(name, func(t *testing.T) {
			o := newDatabase(t, sharedSet(t))
			s := openTest(t, o)
			s.silence(t) // no beat notices it first
			var row slotRow
			must(t, s.slots().FindOne(t.Context(), s.slot.mine()).Decode(&row))
			must(t, s.renew(t.Context()))
			s.background, s.stop = context.WithCancel(context.WithoutCancel(t.Context()))
			s.done.Go(func() { s.listen(s.background) })
			other := openTest(t, o)
			other.silence(t)
			updateRule(t, s)
			_, err := s.slots().DeleteOne(t.Context(), other.slot.mine())
			must(t, err)
			if lost {
				_, err = s.slots().DeleteMany(t.Context(), doc())
			} else {
				_, err = s.slots().UpdateOne(t.Context(), s.slot.mine(), set(slotBeat, row.Beat))
			}
			must(t, err)
			done := make(chan error, 1)
			go func() { done <- s.Barrier(t.Context()) }()
			select {
			case err := <-done:
				t.Fatalf("Barrier by slots without a handle that is there = %v", err)
			case <-time.After(20 * acknowledgeOwn):
			}
			if err := s.renew(t.Context()); !errors.Is(err, errRestored) { // the next beat
				t.Errorf("renew = %v, want %v", err, errRestored)
			}
			if err := <-done; !errors.Is(err, errRestored) {
				t.Errorf("Barrier = %v, want %v", err, errRestored)
			}
		})
	}
}

// TestBarrier_RefusesWhereMoreWasHeard checks a slot whose holder has heard of a revision that the
// database does not have. It has used the database before a restore, and may still allow.
func TestBarrier_RefusesWhereMoreWasHeard(t *testing.T) {
	for heard, want := range map[int64]string{
		52: `the last revision of organization "org" is 1, and a replica has heard of 52`,
		1:  `a replica has heard of revision 1 of organization "org" with another row`,
	} {
		s := openTest(t, newDatabase(t, sharedSet(t)))
		old := slotRow{ID: 99, Chain: make([]byte, 16), Holder: "old", Beat: "old/1", Told: bson.Timestamp{T: math.MaxUint32},
			Last: &lastRow{changeKey{"org", heard}, make([]byte, 16)}, Until: time.Now().Add(time.Hour), Sessions: []sessionID{}}
		_, err := s.slots().InsertOne(t.Context(), old)
		must(t, err)
		updateRule(t, s)
		if err = s.Barrier(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("Barrier = %v, want %q", err, want)
		}
	}
}

// TestOpen_BesideAHandleOfBeforeARestore restores a database under a handle that does not notice it, and opens another
// handle. Once this one has answered a Barrier, the old one must decide nothing, whatever it has in its caches: the row
// of its chain does not name it, or its slot was restored too and Barrier has waited until it was given up.
func TestOpen_BesideAHandleOfBeforeARestore(t *testing.T) {
	for name, opened := range map[string]bool{"the backup is of before it was opened": false, "it is in the backup": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newDatabase(t, sharedSet(t))
			w := storagetest.NewWriter()
			first, err := Open(t.Context(), o)
			must(t, err)
			updateRule(t, first)
			mustCommit(t, w, first, w.Record("org"))
			must(t, first.Close())
			backUp := func() func(context.Context, ...string) error {
				kept, err := sharedSet(t).BackUp(t.Context(), o.Database)
				must(t, err)
				return kept.Restore
			}
			restore := backUp()
			old := openTest(t, o)
			old.silence(t)
			if opened {
				restore = backUp()
			}
			must(t, restore(t.Context()))
			s := openTest(t, o)
			updateRule(t, s)
			must(t, s.Barrier(t.Context()))
			old.slot.beaten.Store(old.age()) // it still believes that its beats succeed
			if _, err := w.Commit(t.Context(), old, w.Record("org")); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("Append of the old handle = %v, want %v", err, storage.ErrUnavailable)
			}
			if n, err := s.heads().CountDocuments(t.Context(), doc("_id.s", doc("$gte", 0))); n != 1 || err != nil {
				t.Errorf("%d heads, %v, want the one of the backup", n, err)
			}
			mustCommit(t, w, s, w.Record("org"))
		})
	}
}
