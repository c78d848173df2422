package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// TestDisk_ReserveOfFreeSpace checks that writes are refused while less than the reserve is free.
// Writes are accepted again only when clearly more space is free. Each change to refusing is logged
// once.
func TestDisk_ReserveOfFreeSpace(t *testing.T) {
	fs := vfs.NewMem()
	free := func(n uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40}) }
	free(1 << 40)
	log := new(logged)
	s := openTest(t, fs, log)
	w := storagetest.NewWriter()
	for i, test := range []struct {
		free   uint64
		refuse bool
		logged int
	}{
		{defaultMinFree, false, 0},
		{defaultMinFree - 1, true, 1},
		{0, true, 1},
		{defaultMinFree + 1, true, 1}, // still refused, so that the state does not alternate
		{defaultMinFree + defaultMinFree/4, false, 1},
		{defaultMinFree, false, 1},
		{1, true, 2},
		{1 << 40, false, 2},
	} {
		free(test.free)
		healthy := s.Healthy(t.Context())
		_, commit := w.Commit(t.Context(), s, w.Record("a"))
		rule := registry.New(s).DeleteRule(t.Context(), "a", "none", nil)
		if refuse := !errors.Is(rule, storage.ErrNotFound); (healthy != nil) != test.refuse ||
			(commit != nil) != test.refuse || refuse != test.refuse {
			t.Errorf("step %d, %d bytes free: Healthy = %v, Commit = %v, DeleteRule = %v; want refused %t",
				i, test.free, healthy, commit, rule, test.refuse)
		}
		if n := log.errors(); n != test.logged {
			t.Errorf("step %d: %d lines of errors, want %d", i, n, test.logged)
		}
	}
	free(1 << 40)
	storagetest.Check(t, s, w.Keys(t), "a")
}

// immutableFS refuses to create a file, like a directory without write permission.
type immutableFS struct{ vfs.FS }

func (immutableFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES}
}

// TestDisk_ReadOnly checks that Open returns an error for a directory without write permission. One
// case has a Pebble log that must be flushed first.
func TestDisk_ReadOnly(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open("db", Options{FS: mem, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	if _, err := storagetest.NewWriter().Commit(t.Context(), s, storagetest.NewWriter().Record("a")); err != nil {
		t.Fatal(err)
	}
	must(t, s.Close())
	_, err = Open("db", Options{FS: immutableFS{mem}, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "cannot be written to") {
		t.Errorf("Open of a read-only directory = %v, want that it cannot be written to", err)
	}
}

const tmpfsBytes = 128 << 20

// mountTmpfs mounts a tiny file system. It skips the test if it cannot mount.
func mountTmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", tmpfsBytes))
	if err != nil {
		t.Skipf("no small file system to fill: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// fillDisk fills the file system of dir until about left bytes are free. It returns the name of the
// filling file.
func fillDisk(t *testing.T, dir string, left int64) (ballast string) {
	t.Helper()
	u, err := vfs.Default.GetDiskUsage(dir)
	must(t, err)
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	err = syscall.Fallocate(int(f.Fd()), 0, 0, int64(u.AvailBytes)-left)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatalf("filling the disk: %v", err)
	}
	return ballast
}

// commitUntilRefused commits records until the store refuses one. It returns the acknowledged
// records and the error.
func commitUntilRefused(t *testing.T, s *Store, w *storagetest.Writer) (acknowledged []*storage.Record, err error) {
	t.Helper()
	for range 10_000 {
		batch := make([]*storage.Record, 8)
		for i := range batch {
			batch[i] = w.Record("a", func(r *storage.Record) { r.Resource = strings.Repeat("long/", 2000) })
		}
		if _, err = w.Commit(t.Context(), s, batch...); err != nil {
			return acknowledged, err
		}
		acknowledged = append(acknowledged, batch...)
	}
	t.Fatal("the store never refused")
	return nil, nil
}

// growingFS is a file system on which Pebble's logs take space only as they grow. Otherwise each new log
// takes 18 MiB at once, and gives them back later. This happens in the background when the index is written,
// and would begin and end the refusal of a nearly full disk by itself.
type growingFS struct{ vfs.FS }

func (fs growingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return growingFile{f}, err
}

func (fs growingFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(old, name, category)
	return growingFile{f}, err
}

// growingFile has no descriptor, without which Pebble reserves no space.
type growingFile struct{ vfs.File }

func (growingFile) Fd() uintptr { return vfs.InvalidFd }

// TestDisk_FillsUp checks that commits are refused while the disk is nearly full. Once space is
// free, commits must succeed without a restart. No acknowledged record may be lost.
func TestDisk_FillsUp(t *testing.T) {
	root := mountTmpfs(t)
	dir := filepath.Join(root, "data")
	log := new(logged)
	s, err := Open(dir, Options{FS: growingFS{vfs.Default}, Log: log.logger(), MinFreeBytes: 16 << 20})
	must(t, err)
	t.Cleanup(func() { closeTest(t, s) })
	ballast := fillDisk(t, root, 24<<20)
	w := storagetest.NewWriter()
	acknowledged, refused := commitUntilRefused(t, s, w)
	if len(acknowledged) == 0 || s.Healthy(t.Context()) == nil || s.health.Stopped() != nil {
		t.Fatalf("filling the disk: %d acknowledged, then %v; want some, then a refusal that passes", len(acknowledged), refused)
	}
	must(t, os.Remove(ballast))
	until(t, func() bool { return s.Healthy(t.Context()) == nil })
	more := w.Record("a")
	if _, err := w.Commit(t.Context(), s, more); err != nil {
		t.Errorf("Commit with space again = %v, want nil", err)
	}
	wantHistory(t, s, w, append(acknowledged, more))
	if n := log.errors(); n != 1 {
		t.Errorf("the full disk was logged %d times, want once:\n%s", n, log.buf.String())
	}
}

// TestDisk_Full fills the disk of a store without a reserve, so that the log of the history cannot be
// written, and the store stops. Or the index, which is written in the background, takes the last bytes first.
// Then the store refuses until the index gives its space back, and may fail to close. After a restart with
// free space the store must have all acknowledged records.
func TestDisk_Full(t *testing.T) {
	root := mountTmpfs(t)
	dir := filepath.Join(root, "data")
	log := new(logged)
	s, err := Open(dir, Options{Log: log.logger(), MinFreeBytes: 1})
	must(t, err)
	ballast := fillDisk(t, root, 6<<20)
	w := storagetest.NewWriter()
	acknowledged, refused := commitUntilRefused(t, s, w)
	if len(acknowledged) == 0 || !errors.Is(refused, storage.ErrUnavailable) {
		t.Errorf("filling the disk: %d acknowledged, then %v; want some, then a refusal", len(acknowledged), refused)
	}
	if n := log.errors(); n == 0 || n > 3 {
		t.Errorf("the full disk was logged %d times, want once for each cause:\n%s", n, log.buf.String())
	}
	t.Logf("%d acknowledged, then: %v", len(acknowledged), refused)
	if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close on a full disk = %v, want nil or that no space is left", err)
	}
	must(t, os.Remove(ballast))
	if s, err = Open(dir, Options{Log: log.logger(), MinFreeBytes: 1}); err != nil {
		t.Fatalf("Open with space again = %v", err)
	}
	defer closeTest(t, s)
	more := w.Record("a")
	if _, err := w.Commit(t.Context(), s, more); err != nil {
		t.Errorf("Commit with space again = %v, want nil", err)
	}
	wantHistory(t, s, w, append(acknowledged, more))
}

// wantHistory checks the invariants of s, and that s has all acknowledged records.
func wantHistory(t *testing.T, s *Store, w *storagetest.Writer, acknowledged []*storage.Record) {
	t.Helper()
	stored := make(map[string]*storage.Record)
	for _, r := range storagetest.Check(t, s, w.Keys(t), "a")["a"] {
		stored[r.DecisionID] = r
	}
	for _, r := range acknowledged {
		if got := stored[r.DecisionID]; got == nil || got.Receipt != r.Receipt {
			t.Errorf("the acknowledged decision %s is lost or another", r.DecisionID)
		}
	}
}
