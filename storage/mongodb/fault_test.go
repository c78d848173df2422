package mongodb

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
	"writ.example/writ/storage/storagetest/protocol"
)

// failCommits makes the server fail the commits of an application until mend is called.
func failCommits(t *testing.T, app string, how bson.E) (mend func()) {
	mode := failing(t, sharedSet(t), app, bson.A{"commitTransaction"}, how.Key, how.Value)
	return func() { mode("off") }
}

func sealNothing(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
	return storage.Batch{}, receipt.SignedHead{}, nil
}

// TestAppend_OfUnknownOutcome checks an Append that returns ErrUnknown. When the batch is appended
// again, the store either finds the first batch or has made sure that the first Append can no
// longer store it.
func TestAppend_OfUnknownOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		how    bson.E
		stored bool
	}{
		"lost":      {bson.E{Key: "closeConnection", Value: true}, false},
		"persisted": {bson.E{Key: "writeConcernError", Value: doc("code", 64, "errmsg", "no majority in time")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newDatabase(t, sharedSet(t))
			app := o.Database + "-" + name
			o.URI += "&appName=" + app
			o.URI += "&timeoutMS=1000"
			s, w := trace(t).of(openTest(t, o)), storagetest.NewWriter()
			first := w.Record("org")
			mustCommit(t, w, s, first)
			if n, err := storagetest.Grant(t.Context(), s, "org", 202611, 2, 10); n != 1 || err != nil {
				t.Fatalf("Grant = %d, %v, want the one place that is left", n, err)
			}
			mend := failCommits(t, app, test.how)
			doubtful := w.Record("org")
			if _, err := w.Commit(t.Context(), s, doubtful); !errors.Is(err, storage.ErrUnknown) {
				t.Fatalf("Append whose commit fails = %v, want %v", err, storage.ErrUnknown)
			}
			mend()
			existing, err := s.Append(t.Context(), storage.Batch{Records: []*storage.Record{doubtful}}, sealNothing)
			must(t, err)
			if earlier := existing.Records[0]; (earlier != nil) != test.stored || earlier != nil && earlier.Receipt.Sig != doubtful.Receipt.Sig {
				t.Errorf("existing = %v, want it %t", earlier, test.stored)
			}
			want := int64(1)
			if test.stored {
				want = 2
			}
			if n, err := s.Metered(t.Context(), "org", 202611); n != want || err != nil {
				t.Errorf("Metered = %d, %v, want %d", n, err, want)
			}
			if err := storagetest.Return(t.Context(), s, "org", 202611, 1); (err == nil) == test.stored {
				t.Errorf("Return of the place = %v", err)
			}
			if !test.stored {
				mustCommit(t, w, s, doubtful)
			}
			storagetest.Check(t, s, w.Keys(t), "org")
		})
	}
}

// TestMeters_CountBehindTheHeads checks that meters include the decisions under heads that are not
// yet counted. Two handles append more batches than one transaction counts. Then one handle stops
// its heartbeats. The other handle must give it up and count its heads.
func TestMeters_CountBehindTheHeads(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	tr := trace(t)
	a, b := tr.of(openTest(t, o)), tr.of(openTest(t, o))
	w := storagetest.NewWriter()
	const batches = 2*countEvery + 7
	for range batches {
		for _, s := range []*recorded{a, b} {
			mustCommit(t, w, s, w.Record("org"), w.Record("other"))
		}
	}
	want := func(s *recorded) {
		t.Helper()
		for _, org := range []string{"org", "other"} {
			if n, err := s.Metered(t.Context(), org, 202611); n != 2*batches || err != nil {
				t.Errorf("Metered(%q) = %d, %v, want %d", org, n, err, 2*batches)
			}
		}
	}
	want(a)
	giveUpNow(t, b.Store, a.Store)
	want(b)
	if c, err := b.counted(t.Context(), a.slot.chain); c.N != batches || err != nil {
		t.Errorf("%d heads of the dead handle are counted, %v, want %d", c.N, err, batches)
	}
	if n, err := storagetest.Grant(t.Context(), b, "org", 202611, 2*batches+1, 10); n != 1 || err != nil {
		t.Errorf("Grant = %d, %v, want 1", n, err)
	}
}

// TestAppend_OfADeadHandleIsInNobodysWay checks an intent that a dead handle has written in a
// transaction without an end. Another handle must be able to decide this intent.
func TestAppend_OfADeadHandleIsInNobodysWay(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	dead := o
	app := o.Database + "-dead"
	dead.URI += "&appName=" + app
	dead.URI += "&timeoutMS=1000"
	tr := trace(t)
	a, b := tr.of(openTest(t, dead)), tr.of(openTest(t, o))
	a.stop()
	a.done.Wait()
	w := storagetest.NewWriter()
	failCommits(t, app, bson.E{Key: "closeConnection", Value: true})
	r := w.Record("org")
	if _, err := w.Commit(t.Context(), a, r); !errors.Is(err, storage.ErrUnknown) {
		t.Fatalf("Append whose commit fails = %v, want %v", err, storage.ErrUnknown)
	}
	again := w.Again(r)
	if existing, err := w.Commit(t.Context(), b, again); err != nil || existing[0] != nil {
		t.Errorf("Append beside a dead handle = %v, %v", existing, err)
	}
	if got, err := b.Decided(t.Context(), "org", r.IntentID, ""); err != nil || got.DecisionID != again.DecisionID {
		t.Errorf("Decided = %v, %v", got, err)
	}
}

// TestBarrier_GivesUpWhoIsSilent checks that a silent handle commits nothing after Barrier has
// returned. Such a handle may be frozen and continue later with outdated caches.
func TestBarrier_GivesUpWhoIsSilent(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	tr := trace(t)
	s, frozen, w := tr.of(openTest(t, o)), tr.of(openTest(t, o)), storagetest.NewWriter()
	for !s.maySettle() {
		time.Sleep(beatEvery)
	}
	frozen.silence(t)
	_, err := s.Update(t.Context(), "org", putRule)
	must(t, err)
	if err := s.Barrier(t.Context()); err != nil {
		t.Fatalf("Barrier = %v", err)
	}
	frozen.handle.Note(protocol.SlotLost)
	late := w.Record("org")
	if _, err := w.Commit(t.Context(), frozen, late); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("Append by who was frozen = %v, want %v", err, storage.ErrConflict)
	}
	if _, err := s.Decided(t.Context(), "org", late.IntentID, ""); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Decided = %v, want %v", err, storage.ErrNotFound)
	}
}
