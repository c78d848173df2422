package embedded

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// killed is a store after kill -9: its disk, the recorded tip, and the content at that tip.
type killed struct {
	disk   *vfs.MemFS
	writer *storagetest.Writer
	noted  tip
	want   snapshot
	later  bool // data was written after the recorded tip

	accepted map[string]bool // the refusals that holdAccepted has seen
}

// kill fills a store with tables and a log, and records its tip. It returns a copy of the disk in
// the state after kill -9. If later is true, more data is written after the tip was recorded. If
// logs is true, no tables can be written at the end, so several logs remain.
func kill(t *testing.T, later, logs bool) killed {
	t.Helper()
	disk := vfs.NewCrashableMem()
	var closed atomic.Bool
	gate := make(chan struct{})
	s := openTest(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && filepath.Ext(op.Path) == ".sst" && closed.Load() {
			<-gate
		}
		return nil
	})), nil)
	defer close(gate)
	k := killed{writer: storagetest.NewWriter(), later: later, accepted: make(map[string]bool)}
	for n := range int64(8) {
		fill(t, s, k.writer, n+1)
		k.commitMany(t, s)
		switch {
		case n < 4 || n < 6 && !logs:
			rotate(t, s)
		case n < 6:
			closed.Store(true)
			if _, err := s.db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.recordTip()
	k.noted, k.want = s.end(), look(t, s)
	if later {
		fill(t, s, k.writer, 9)
	}
	k.disk = disk.CrashClone(vfs.CrashCloneCfg{})
	if n := len(filesOf(t, k.disk, ".log")); logs && n < 3 {
		t.Fatalf("%d logs are left, want several", n)
	}
	return k
}

// commitMany commits enough records to fill some blocks of a log. It writes small chunks: if a
// checksum is wrong, Pebble tries to flip each bit of the chunk.
func (k *killed) commitMany(t *testing.T, s *Store) {
	t.Helper()
	for range 60 {
		if _, err := k.writer.Commit(t.Context(), s, k.writer.Record("a")); err != nil {
			t.Fatal(err)
		}
	}
}

// damages has functions that damage a file at a given byte.
var damages = map[string]func(b []byte, at int) []byte{
	"cut":           func(b []byte, at int) []byte { return b[:at] },
	"zeroed":        func(b []byte, at int) []byte { clear(b[at:]); return b },
	"with a hole":   func(b []byte, at int) []byte { clear(b[at:min(at+512, len(b))]); return b },
	"a bit turned":  func(b []byte, at int) []byte { b[at] ^= 4; return b },
	"begun too far": func(b []byte, at int) []byte { return b[at+1:] },
}

// positions returns where to damage a file of n bytes: at the start, in the middle, in the last 64
// KiB and at the end.
func positions(name string, n int) []int {
	at := []int{0, 1, n / 8, n / 4, 3 * n / 8, n / 2, 5 * n / 8, 3 * n / 4, 7 * n / 8, n - 64<<10, n - 32<<10, n - 100, n - 7, n - 1}
	if filepath.Ext(name) == ".sst" { // tables have checksums, and the manifest has the tables' sizes
		at = []int{0, n / 2, n - 1}
	}
	at = slices.DeleteFunc(at, func(i int) bool { return i < 0 || i >= n })
	slices.Sort(at)
	return slices.Compact(at)
}

// These are the outcomes of opening a damaged store.
const (
	opened     = "opened, with all that was noted"
	unreadable = "opened or refused, with an error for what cannot be read"
	rolledBack = "refused, for it has less than was noted"
	lost       = "refused, for nothing names what is there"
)

// hold opens the store on disk and checks the result. It returns the outcome.
func (k *killed) hold(t *testing.T, what string, disk *vfs.MemFS) string {
	t.Helper()
	before := contents(t, disk)
	s, err := openQuietly(Options{FS: disk})
	if err == nil {
		defer closeTest(t, s)
		return k.holdOpened(t, what, s)
	}
	// A compaction or flush may find the damage. In that case Open has already changed the
	// directory.
	if diff := cmp.Diff(before, contents(t, disk)); diff != "" && !strings.Contains(err.Error(), "until it is restarted") {
		t.Errorf("%s: the refusal %v changed the directory", what, err)
	}
	if !strings.Contains(err.Error(), "restore the data directory from a backup") {
		t.Errorf("%s: Open = %v, which does not say what to do", what, err)
	}
	switch {
	case errors.Is(err, errRolledBack):
		k.holdAccepted(t, what, disk, err)
		return rolledBack
	case errors.Is(err, errLost):
		return lost
	}
	return unreadable
}

func (k *killed) holdOpened(t *testing.T, what string, s *Store) string {
	t.Helper()
	if end := s.end(); end.Head < k.noted.Head || end.Change < k.noted.Change {
		t.Errorf("%s: opened at %+v, less than was noted: %+v", what, end, k.noted)
	}
	got, err := lookAt(t.Context(), s)
	if errors.Is(err, storage.ErrUnavailable) {
		return unreadable
	}
	if err != nil {
		t.Errorf("%s: opened: %v", what, err)
	}
	if s.end() == k.noted {
		if diff := cmp.Diff(k.want, got); diff != "" {
			t.Errorf("%s: opened: -noted +got\n%s", what, diff)
		}
		return opened
	}
	if n := len(got.Records); n < len(k.want.Records) || len(got.Policies) < len(k.want.Policies) ||
		len(got.Rules) < len(k.want.Rules) || len(got.Agents) < len(k.want.Agents) || len(got.Tokens) < len(k.want.Tokens) {
		t.Errorf("%s: opened with less than was noted: %+v", what, got)
	}
	return opened
}

var acceptable = regexp.MustCompile(`--accept-rollback (\d+) `)

// holdAccepted opens a store that Open refused with the error why. The error contains a sequence
// number. Open must accept the loss with this number, and with no other number.
func (k *killed) holdAccepted(t *testing.T, what string, disk *vfs.MemFS, why error) {
	t.Helper()
	if k.accepted[why.Error()] {
		return
	}
	k.accepted[why.Error()] = true
	named := acceptable.FindStringSubmatch(why.Error())
	if named == nil {
		t.Errorf("%s: %v names no sequence to accept", what, why)
		return
	}
	seq, err := strconv.ParseUint(named[1], 10, 64)
	must(t, err)
	for _, other := range []uint64{seq - 1, seq + 1} {
		if s, err := openQuietly(Options{FS: disk, AcceptRollback: &other}); !errors.Is(err, errRolledBack) {
			t.Fatalf("%s: Open accepting head %d, and it ends at %d, = %v, %v; want errRolledBack", what, other, seq, s, err)
		}
	}
	log := new(logged)
	s, err := Open("data", Options{FS: disk, Log: log.logger(), AcceptRollback: &seq})
	if err != nil {
		t.Errorf("%s: Open accepting head %d = %v", what, seq, err)
		return
	}
	if log.errors() != 1 || s.tip.Seq != seq {
		t.Errorf("%s: accepted, the store ends at %d, and the log is %q; want %d and an error", what, s.tip.Seq, log.buf.String(), seq)
	}
	w := storagetest.NewWriterFrom(k.writer)
	if _, err := w.Commit(t.Context(), s, w.Record("a")); err != nil && !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%s: Commit to what was accepted = %v", what, err)
	}
	s.recordTip()
	again := disk.CrashClone(vfs.CrashCloneCfg{})
	closeTest(t, s)
	for _, disk := range []vfs.FS{again, disk} { // the disk after the kill, and after a clean Close
		if s, err = openQuietly(Options{FS: disk}); err != nil {
			t.Errorf("%s: Open after it was accepted = %v", what, err)
			continue
		}
		closeTest(t, s)
	}
}

// contents returns the contents of all files in the data directory, and of the recorded tip beside
// the directory.
func contents(t *testing.T, disk vfs.FS) map[string]string {
	t.Helper()
	names, err := disk.List("data")
	must(t, err)
	all := make(map[string]string)
	for _, name := range names {
		all[disk.PathJoin("data", name)] = string(content(t, disk, disk.PathJoin("data", name)))
	}
	if _, err := disk.Stat("data.tip"); err == nil {
		all["data.tip"] = string(content(t, disk, "data.tip"))
	}
	return all
}
