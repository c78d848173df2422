package mongodb

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestTransactions_AreOfSessionsThatTheSlotNames checks that a handle's transactions use only the
// sessions that are listed in its slot. When a handle is given up, only the transactions of these
// sessions are ended. The test reads the sessions from the server's profiler.
func TestTransactions_AreOfSessionsThatTheSlotNames(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	ctx := t.Context()
	must(t, s.db.RunCommand(ctx, doc("profile", 2)).Err())
	w := storagetest.NewWriter()
	if _, err := w.Commit(ctx, s, w.Record("org")); err != nil {
		t.Fatal(err)
	}
	for range maxUpdates { // each in another session
		_, err := s.Update(ctx, "org", func(storage.Tx) error { return nil })
		must(t, err)
	}
	must(t, s.countChain(ctx, s.slot.chain, true))
	if _, err := s.RemoveImported(ctx, "org", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RemoveRecords(ctx, "org", time.Now().AddDate(100, 0, 0), storage.Expired{Records: 1, Settled: 1}); err != nil {
		t.Fatal(err)
	}
	must(t, s.db.RunCommand(ctx, doc("profile", 0)).Err())

	type operation struct {
		Command struct {
			Session struct {
				ID bson.RawValue `bson:"id"`
			} `bson:"lsid"`
		} `bson:"command"`
	}
	begun, err := find[operation](ctx, s.db.Collection("system.profile"), doc("command.startTransaction", true))
	must(t, err)
	named, err := find[slotRow](ctx, s.slots(), s.slot.mine())
	if err != nil || len(named) != 1 {
		t.Fatalf("%d slots, %v", len(named), err)
	}
	used := make(map[string]int)
	for _, op := range begun {
		id := op.Command.Session.ID
		used[string(id.Value)]++
		if !slices.ContainsFunc(named[0].Sessions, func(s sessionID) bool { return id.Equal(s.ID) }) {
			t.Errorf("a transaction was begun in session %v, which the slot does not name", id)
		}
	}
	if len(begun) < 5 || len(used) != len(named[0].Sessions) {
		t.Errorf("%d transactions in %d sessions, want 5 or more in %d", len(begun), len(used), len(named[0].Sessions))
	}
}

// TestTransactions_OfTheDeadBlockNobody checks that giving up a handle ends its transactions. The
// handle dies while it counts its decisions. An open transaction would prevent every other handle
// from changing the meter for a minute.
func TestTransactions_OfTheDeadBlockNobody(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	keeper, dead, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	mustCommit(t, w, dead, w.Record("org"))
	begun, ended := make(chan error, 1), make(chan struct{})
	t.Cleanup(func() { close(ended) })
	go dead.transaction(context.WithoutCancel(t.Context()), &dead.counts, func(ctx context.Context) error {
		_, err := dead.countHeads(ctx, dead.slot.chain, false)
		begun <- err
		<-ended
		return context.Canceled
	})
	must(t, <-begun)
	began := time.Now()
	giveUpNow(t, keeper, dead)
	record := w.Record("org")
	n, err := storagetest.Grant(t.Context(), keeper, "org", storage.MonthOf(record.DecidedAt), 100, 10)
	if err != nil || n == 0 {
		t.Errorf("Grant = %d, %v, want places", n, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the meter was blocked for %v", took)
	}
	if got, err := keeper.Metered(t.Context(), "org", storage.MonthOf(record.DecidedAt)); err != nil || got != 1 {
		t.Errorf("Metered = %d, %v, want 1: it is counted once", got, err)
	}
}
