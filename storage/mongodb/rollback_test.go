package mongodb

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/storagetest"
)

// TestAppend_OfABatchThatIsRolledBack checks that no batch follows a head that was rolled back. The
// outcome of a batch is unknown, because the secondaries lag during its commit. The next Append
// finds the batch on the primary. Then the primary dies, and the batch is lost. The next batch must
// not follow the lost head. The history must be complete, whatever the timing.
func TestAppend_OfABatchThatIsRolledBack(t *testing.T) {
	set := sharedThree(t)
	s, w := trace(t).of(openTest(t, newDatabase(t, set))), storagetest.NewWriter()
	mustCommit(t, w, s, w.Record("org"))
	if n, err := storagetest.Grant(t.Context(), s, "org", 202611, 2, 10); n != 1 || err != nil {
		t.Fatalf("Grant = %d, %v, want the one place that is left", n, err)
	}
	primary, err := set.Primary(t.Context())
	must(t, err)
	lag := lagging(t, set)
	lag("alwaysOn")
	time.Sleep(200 * time.Millisecond) // the secondaries get the data of their last request
	doubtful := w.Record("org")
	short, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	_, err = w.Commit(short, s, doubtful)
	t.Logf("Append while the secondaries lag = %v", err)
	done := make(chan error)
	go func() {
		_, err := w.Commit(t.Context(), s, doubtful)
		done <- err
	}()
	time.Sleep(400 * time.Millisecond) // the Append now waits for a majority
	must(t, set.Kill(primary))
	lag("off")
	if err := <-done; err != nil {
		t.Errorf("Append of the same batch = %v", err)
	}
	must(t, set.Restart(primary))
	if _, err := w.Commit(t.Context(), s, w.Record("org")); err != nil {
		t.Errorf("Append after it = %v", err)
	}
	storagetest.Check(t, s, w.Keys(t), "org")
	if err := storagetest.Return(t.Context(), s, "org", 202611, 1); err == nil {
		t.Error("Return of a place that is used = nil, want an error")
	}
	if n, err := storagetest.Grant(t.Context(), s, "org", 202611, 4, 10); n != 1 || err != nil {
		t.Errorf("Grant = %d, %v, want the one place that is left", n, err)
	}
}

// TestWatch_OfAChangeThatAMajorityHasLate checks that a handle receives a change that reaches a
// majority late. The primary has the change before the handle's stream is opened. A majority has
// the change only afterwards. There are no other changes.
func TestWatch_OfAChangeThatAMajorityHasLate(t *testing.T) {
	set := sharedThree(t)
	o := newDatabase(t, set)
	deaf := o
	deaf.URI += "&appName=deaf"
	a, b := openTest(t, o), openTest(t, deaf)
	update := func() error {
		_, err := a.Update(t.Context(), "org", putRule)
		return err
	}
	heard := watchRevisions(t, b)
	must(t, update())
	lag := lagging(t, set)
	lag("alwaysOn")
	time.Sleep(200 * time.Millisecond) // the secondaries get the data of their last request
	done := make(chan error, 1)
	go func() { done <- update() }()
	time.Sleep(100 * time.Millisecond) // the primary has the change
	failing(t, set, "deaf", bson.A{"getMore"}, "errorCode", historyLost)(doc("times", 1))
	time.Sleep(400 * time.Millisecond) // the new stream is open
	lag("off")
	must(t, <-done)
	await(t, "the change, or that everything may have changed", func() bool {
		all := heard.list()
		return slices.Contains(all, 2) || slices.Contains(all, 0)
	})
}

// TestSlot_OutlivesAMajorityThatIsLate checks a majority that is missing for longer than a lease.
// Then the heartbeat of one handle succeeds before all other heartbeats. This handle must not give
// up any other handle.
func TestSlot_OutlivesAMajorityThatIsLate(t *testing.T) {
	set := sharedThree(t)
	o := newDatabase(t, set)
	slow := o
	slow.URI += "&appName=slow"
	lost := make(chan error, 2)
	o.Lost = func(err error) { lost <- err }
	slow.Lost = o.Lost
	tr := trace(t)
	first, second, w := tr.of(openTest(t, o)), tr.of(openTest(t, slow)), storagetest.NewWriter()
	for !first.maySettle() || !second.maySettle() {
		time.Sleep(beatEvery)
	}
	failing(t, set, "slow", bson.A{"update"}, "blockConnection", true, "blockTimeMS", 300) // they come after the others
	lag := lagging(t, set)
	lag("alwaysOn")
	time.Sleep(lease + beatEvery)
	lag("off")
	for _, s := range []*recorded{first, second} {
		if err := s.Barrier(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := w.Commit(t.Context(), s, w.Record("org")); err != nil {
			t.Errorf("Append after the majority was late = %v", err)
		}
	}
	select {
	case err := <-lost:
		t.Errorf("a live handle was given up: %v", err)
	case <-time.After(2 * lease):
	}
}

// lagging returns a function that stops or resumes the replication of a set's secondaries.
func lagging(t *testing.T, set *mongotest.Set) (mode func(string)) {
	t.Helper()
	primary, err := set.Primary(t.Context())
	must(t, err)
	return func(mode string) {
		for i := range 3 {
			if i == primary {
				continue
			}
			stop := doc("configureFailPoint", "stopReplProducer", "mode", mode)
			must(t, set.AdminOf(t.Context(), i, stop))
		}
	}
}
