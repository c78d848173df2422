package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage/storagetest"
)

// TestFlush_BesideCommits checks that each committed record is found exactly once while keys move
// to Pebble. Each intent must be decided only once.
func TestFlush_BesideCommits(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := s.index.Flush(); err != nil {
				done <- err
				return
			}
		}
	}()
	for n := range 200 {
		r := w.Record("a")
		commit(t, s, w, r)
		existing, err := w.Commit(t.Context(), s, w.Again(r))
		if err != nil || existing[0] == nil || existing[0].DecisionID != r.DecisionID {
			t.Fatalf("Commit of a decided intent = %v, %v, want its record", existing, err)
		}
		if got := listed(t, s, "a"); len(got) != n+1 {
			t.Fatalf("ListRecords = %d records, want %d", len(got), n+1)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("flush = %v", err)
	}
	storagetest.Check(t, s, w.Keys(t), "a")
}
