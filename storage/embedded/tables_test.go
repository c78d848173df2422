package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage/storagetest"
)

// TestTables_BesideCommits checks that each committed record is found exactly once while tables are written
// and counts move to Pebble. Each intent must be decided only once.
func TestTables_BesideCommits(t *testing.T) {
	s, w := openWith(t, Options{FS: vfs.NewMem(), segmentSize: 4000}), storagetest.NewWriter()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := s.keepNow(); err != nil {
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
		t.Errorf("keep = %v", err)
	}
	storagetest.Check(t, s, w.Keys(t), "a")
}
