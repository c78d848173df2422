package embedded

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func allowing(w *storagetest.Writer, org string) *storage.Record {
	return w.Record(org, func(r *storage.Record) { r.Decision = engine.Allow })
}

// TestJournal_HasWhatWasAllowed checks Allowed and Since: the rows that allow and their settlements, as they were at
// a position.
func TestJournal_HasWhatWasAllowed(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	var rows []*storage.Record
	for range allowedAtOnce + 10 {
		rows = append(rows, allowing(w, "a"))
	}
	commit(t, s, w, append(rows, allowing(w, "b"), w.Record("a", func(r *storage.Record) { r.Decision = engine.Deny }))...)
	position := func() uint64 {
		at, err := s.Position(t.Context())
		must(t, err)
		return at
	}
	first := position()
	execute(t, s, w, rows[3])
	second := position()
	commit(t, s, w, allowing(w, "a"))
	for _, tt := range []struct {
		upTo          uint64
		rows, settled int
	}{{first, len(rows), 0}, {second, len(rows), 1}, {position(), len(rows) + 1, 1}} {
		var got, settled, yields int
		must(t, s.Allowed(t.Context(), "a", rows[0].DecidedAt, tt.upTo, func() { yields++ }, func(r *storage.Record) error {
			got++
			if r.Settlement != nil {
				settled++
			}
			return nil
		}))
		if got != tt.rows || settled != tt.settled || yields == 0 {
			t.Errorf("up to %d: %d rows, %d settled, after %d yields; want %d and %d", tt.upTo, got, settled, yields, tt.rows, tt.settled)
		}
	}
	var events []string
	must(t, s.Since(t.Context(), first, position(), func(org string) bool { return org == "a" }, func(r *storage.Record, settled bool) {
		events = append(events, fmt.Sprint(r.DecisionID == rows[3].DecisionID, settled))
	}))
	if got, want := fmt.Sprint(events), "[true true false false]"; got != want {
		t.Errorf("since the first commit: %s, want %s", got, want)
	}
}

// TestJournal_Derived checks that derived values survive restarts, and that none survives the loss of a write.
func TestJournal_Derived(t *testing.T) {
	disk := vfs.NewMem()
	s := openTest(t, disk, nil)
	for i := range 3 {
		must(t, s.Derive(t.Context(), storage.Derivation{Set: map[string][]byte{"a": {byte(i)}, fmt.Sprint("b", i): nil}}))
	}
	must(t, s.Derive(t.Context(), storage.Derivation{Drop: [][2]string{{"b0", "b2"}}}))
	found := func(s *Store) (all string) {
		for _, k := range []string{"a", "b0", "b1", "b2"} {
			switch v, err := s.Derived([]byte(k)); {
			case err == nil:
				all += fmt.Sprintf("%s%v", k, v)
			case !errors.Is(err, storage.ErrNotFound):
				t.Fatal(err)
			}
		}
		return all
	}
	closeTest(t, s)
	s = openTest(t, disk, nil)
	if got := found(s); got != "a[2]b2[]" {
		t.Errorf("after a restart: %s", got)
	}
	b := s.newBatch()
	b.set(derivedMark(1), nil) // as if the second write were lost, which deleted it
	must(t, s.apply(b))
	closeTest(t, s)
	s = openTest(t, disk, nil)
	if got := found(s); got != "" {
		t.Errorf("after the loss of a write: %s, want nothing", got)
	}
	must(t, s.Derive(t.Context(), storage.Derivation{Set: map[string][]byte{"a": {9}}}))
	closeTest(t, s)
	if got := found(openTest(t, disk, nil)); got != "a[9]" {
		t.Errorf("later: %s", got)
	}
}

// TestJournal_AnImportTakenBackIsAConflict checks that Since does not hide that counted rows are gone.
func TestJournal_AnImportTakenBackIsAConflict(t *testing.T) {
	s := openTest(t, vfs.NewMem(), nil)
	rows, err := s.Position(t.Context())
	must(t, err)
	s.commits.Lock()
	_, err = s.writeImport([][]byte{ofIntent(abandonedItem, "a", "i", [16]byte{1}, nil)})
	s.commits.Unlock()
	must(t, err)
	err = s.Since(t.Context(), rows, rows+1, func(string) bool { return true }, func(*storage.Record, bool) {})
	if !errors.Is(err, storage.ErrConflict) {
		t.Errorf("Since = %v, want a conflict", err)
	}
}

// BenchmarkAllowed measures how fast the rows of a window are read.
func BenchmarkAllowed(b *testing.B) {
	s, w := openTest(b, vfs.NewMem(), nil), storagetest.NewWriter()
	const n = 20_000
	for range n / 50 {
		var rows []*storage.Record
		for range 50 {
			rows = append(rows, allowing(w, "a"))
		}
		commit(b, s, w, rows...)
	}
	at, err := s.Position(b.Context())
	must(b, err)
	for b.Loop() {
		must(b, s.Allowed(b.Context(), "a", time.Time{}, at, func() {}, func(*storage.Record) error { return nil }))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
