package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return openTest(t, vfs.NewMem(), nil) })
	storagetest.RunDocuments(t, func(t *testing.T) storage.Documents {
		return storagetest.Twice{Documents: openTest(t, vfs.NewMem(), nil)}
	})
}

// openTest opens a store and closes it at the end of the test. With a nil log, log lines are
// discarded.
func openTest(t testing.TB, fs vfs.FS, log *logged) *Store {
	t.Helper()
	return openWith(t, Options{FS: fs, Log: log.logger()})
}

// openWith opens a store with the options o. If o has no log, log lines are discarded.
func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := openQuietly(o)
	must(t, err)
	t.Cleanup(func() { closeTest(t, s) })
	return s
}

func openQuietly(o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = (*logged)(nil).logger()
	}
	return Open("data", o)
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// commit stores records whose intents must be new.
func commit(t testing.TB, s *Store, w *storagetest.Writer, records ...*storage.Record) {
	t.Helper()
	_, err := w.Commit(t.Context(), s, records...)
	must(t, err)
}

// execute stores the settlement "executed" of a row.
func execute(t *testing.T, s *Store, w *storagetest.Writer, row *storage.Record) {
	t.Helper()
	_, err := w.Settle(t.Context(), s, row, storage.Settlement{Outcome: storage.Executed, RecordedAt: row.DecidedAt})
	must(t, err)
}

// listed returns the rows of an organization, newest first.
func listed(t *testing.T, s *Store, org string) []*storage.Record {
	t.Helper()
	rows, _, err := s.ListRecords(t.Context(), org, storage.Filter{}, storage.Page{Limit: 500})
	must(t, err)
	return rows
}

// removeRows removes the n oldest rows of an organization, with their settlements.
func removeRows(t *testing.T, s *Store, org string, before time.Time, n int) {
	t.Helper()
	if got, err := s.RemoveRecords(t.Context(), org, before, storage.Expired{Records: n, Settled: n}); got.Records != n || err != nil {
		t.Fatalf("RemoveRecords = %+v, %v, want %d", got, err, n)
	}
}

// readClosed opens a closed store read-only and calls f with it.
func readClosed(t *testing.T, disk vfs.FS, f func(r *ReadOnly)) {
	t.Helper()
	r, err := OpenReadOnly("data", Options{FS: disk})
	must(t, err)
	f(r)
	must(t, r.Close())
}

// failing returns fs with faults: an operation for which fails returns true returns errDisk.
func failing(fs vfs.FS, fails func(errorfs.Op) bool) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails(op) {
			return errDisk
		}
		return nil
	}))
}

// closeTest closes s unless s is already closed.
func closeTest(t testing.TB, s *Store) {
	t.Helper()
	select {
	case <-s.closing:
	default:
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
}

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) logger() *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(l, nil))
}

// errors returns the number of lines with level ERROR.
func (l *logged) errors() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), "level=ERROR")
}

func TestOpen_LockedDirectory(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{FS: fs})
			must(t, err)
			_, err = Open(dir, Options{FS: fs})
			if err == nil || !strings.Contains(err.Error(), "another writ is using this directory: "+dir) {
				t.Errorf("Open of a directory in use = %v, want it to say so and name the directory", err)
			}
			must(t, s.Close())
			again, err := Open(dir, Options{FS: fs})
			if err != nil {
				t.Fatalf("Open after Close = %v", err)
			}
			closeTest(t, again)
		})
	}
}

func TestOpen_DirectoryThatCannotBe(t *testing.T) {
	_, err := Open("/dev/null/data", Options{})
	if err == nil || strings.Contains(err.Error(), "another writ") {
		t.Errorf("Open below a file = %v, want an error about the directory", err)
	}
}

// TestOpen_Format checks that Open refuses a directory of another format. The error names the
// format, and nothing is changed.
func TestOpen_Format(t *testing.T) {
	for _, test := range []struct{ name, key, value, want string }{
		{"newer", "\x00writ", "14", `its format is "14", and this writ reads format 13 only: start the writ that wrote the directory`},
		{"damaged", "\x00writ", "x", `its format is "x"`},
		{"the first", "\x00writ", "1", `its format is "1", and this writ reads format 13 only`},
		{"before rows had the agent's key", "\x00writ", "7", `its format is "7"`},
		{"before rows had findings", "\x00writ", "8", `its format is "8", and this writ reads format 13 only: start the writ that wrote the directory, or export`},
		{"before rows were counted", "\x00writ", "9", `its format is "9", and this writ reads format 13 only: start the writ that wrote the directory, or export`},
		{"with a key for each intent", "\x00writ", "10", `its format is "10", and this writ reads format 13 only`},
		{"not writ's", "key", "value", "not writ's"},
		{"with digests as text", "\x00writ", "12", `its format is "12", and this writ reads format 13 only`},
		{"with keys for rows", "\x00writ", "11", `its format is "11", and this writ reads format 13 only`},
		{"known, with no tip beside it", "\x00writ", "13", "data.tip, which notes how far the store has come, is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := vfs.NewMem()
			db, err := pebble.Open("data", &pebble.Options{FS: fs, Logger: pebbleLogger{&health{log: (*logged)(nil).logger()}}})
			must(t, err)
			must(t, errors.Join(db.Set([]byte(test.key), []byte(test.value), pebble.Sync), db.Close()))
			before := contents(t, fs)
			if _, err := Open("data", Options{FS: fs}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want %q", err, test.want)
			}
			if !strings.Contains(test.want, "its format") {
				return
			}
			if diff := cmp.Diff(before, contents(t, fs)); diff != "" {
				t.Errorf("the directory has changed:\n%s", diff)
			}
			if _, err := OpenReadOnly("data", Options{FS: fs}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("OpenReadOnly = %v, want %q", err, test.want)
			}
		})
	}
}

func TestOpen_FreshChainHasRandomID(t *testing.T) {
	ids := make(map[[16]byte]bool)
	for range 3 {
		s := openTest(t, vfs.NewMem(), nil)
		tip, err := s.Tip(t.Context())
		if err != nil || tip.Seq != 0 || tip.Prev != [32]byte{} {
			t.Errorf("Tip = %+v, %v, want that of no head", tip, err)
		}
		ids[tip.ID] = true
		closeTest(t, s)
	}
	if len(ids) != 3 || ids[[16]byte{}] {
		t.Errorf("chain ids of three fresh stores = %v, want three random ones", ids)
	}
}

// keepNow moves what is pending to Pebble.
func (s *Store) keepNow() error {
	s.commits.Lock()
	defer s.commits.Unlock()
	return s.keep()
}
