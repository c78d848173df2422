package mongodb

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ/storage/mongodb/mongotest"
	"writ/storage/storagetest"
)

// TestAppend_OfABatchThatIsRolledBack: a batch is committed while the secondaries lag,
// which nobody is told; it is found when it is appended again, and then the primary
// dies with it. What is appended next must not follow its head. However long the steps
// take, the history must be whole.
func TestAppend_OfABatchThatIsRolledBack(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: kills the primary of a set of three")
	}
	set := mongotest.For(t, 3)
	s, w := openTest(t, newDatabase(t, set)), storagetest.NewWriter()
	if _, err := w.Commit(t.Context(), s, w.Record("org")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Grant(t.Context(), "org", 202611, 2, 10); n != 1 || err != nil {
		t.Fatalf("Grant = %d, %v, want the one place that is left", n, err)
	}
	primary, err := set.Primary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lag := func(mode string) {
		for i := range 3 {
			if i == primary {
				continue
			}
			stop := bson.D{{Key: "configureFailPoint", Value: "stopReplProducer"}, {Key: "mode", Value: mode}}
			if err := set.AdminOf(t.Context(), i, stop); err != nil {
				t.Fatal(err)
			}
		}
	}
	lag("alwaysOn")
	time.Sleep(200 * time.Millisecond) // what they have asked for arrives
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
	time.Sleep(400 * time.Millisecond) // it waits for a majority
	if err := set.Kill(primary); err != nil {
		t.Fatal(err)
	}
	lag("off")
	if err := <-done; err != nil {
		t.Errorf("Append of the same batch = %v", err)
	}
	if err := set.Restart(primary); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), s, w.Record("org")); err != nil {
		t.Errorf("Append after it = %v", err)
	}
	storagetest.Check(t, s, w.Keys(t), "org")
	if err := s.Return(t.Context(), "org", 202611, 1); err == nil {
		t.Error("Return of a place that is used = nil, want an error")
	}
	if n, err := s.Grant(t.Context(), "org", 202611, 4, 10); n != 1 || err != nil {
		t.Errorf("Grant = %d, %v, want the one place that is left", n, err)
	}
}
