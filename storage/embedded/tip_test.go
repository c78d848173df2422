package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage/storagetest"
)

func TestTip_Text(t *testing.T) {
	want := tip{Head: 203, Frame: 210, Change: 9}
	want.Hash[31] = 0xfe
	text := string(want.text())
	if got, err := parseTip([]byte(text)); got != want || err != nil {
		t.Errorf("parseTip(text) = %+v, %v; want %+v", got, err, want)
	}
	for i := range text {
		for _, bad := range []string{text[:i], text[:i] + "0" + text[i:], text[:i] + string(text[i]^1) + text[i+1:]} {
			if got, err := parseTip([]byte(bad)); err == nil {
				t.Fatalf("parseTip(%q) = %+v, want an error", bad, got)
			}
		}
	}
}

// remove deletes a file or directory, as an accident would.
func remove(t *testing.T, disk vfs.FS, name string) {
	t.Helper()
	must(t, disk.RemoveAll(name))
}

// copyDir copies a directory to another disk. It overwrites files there.
func copyDir(t *testing.T, from, to vfs.FS, name string) {
	t.Helper()
	if _, err := vfs.Clone(from, to, name, name); err != nil {
		t.Fatal(err)
	}
}

// TestTip_Directories removes the whole directory, replaces it by an older copy, or replaces it by
// another store. Open must return an error. AcceptRollback accepts the store only with the sequence
// number of the store's last head.
func TestTip_Directories(t *testing.T) {
	tests := []struct {
		name   string
		harm   func(t *testing.T, disk, older, other *vfs.MemFS)
		want   string
		accept uint64
	}{
		{"the directory is gone", func(t *testing.T, disk, _, _ *vfs.MemFS) { remove(t, disk, "data") },
			"it ends at head 0, and data.tip notes head 2; its documents end at change 0, and data.tip notes change 10", 0},
		{"the directory is empty", func(t *testing.T, disk, _, _ *vfs.MemFS) {
			remove(t, disk, "data")
			must(t, disk.MkdirAll("data", 0o700))
		}, "it ends at head 0, and data.tip notes head 2", 0},
		{"an older copy is put back", func(t *testing.T, disk, older, _ *vfs.MemFS) {
			remove(t, disk, "data")
			copyDir(t, older, disk, "data")
		}, "it ends at head 1, and data.tip notes head 2", 1},
		{"another store is put there", func(t *testing.T, disk, _, other *vfs.MemFS) {
			remove(t, disk, "data")
			copyDir(t, other, disk, "data")
		}, "its head 2 is not the one that was noted", 3},
		{"the tip is gone", func(t *testing.T, disk, _, _ *vfs.MemFS) { remove(t, disk, "data.tip") },
			"data.tip, which notes how far the store has come, is missing", 2},
		{"the tip is empty", func(t *testing.T, disk, _, _ *vfs.MemFS) {
			damage(t, disk, "data.tip", func([]byte) []byte { return nil })
		}, "data.tip, which notes how far the store has come, is damaged", 2},
	}
	for _, closed := range []bool{true, false} {
		disk, older, other := storesToHarm(t, closed)
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				disk := disk.CrashClone(vfs.CrashCloneCfg{})
				test.harm(t, disk, older, other)
				for _, accept := range []*uint64{nil, new(uint64(7))} {
					s, err := openQuietly(Options{FS: disk, AcceptRollback: accept})
					if !errors.Is(err, errRolledBack) || !strings.Contains(err.Error(), test.want) {
						t.Fatalf("Open = %v, %v, want %q", s, err, test.want)
					}
				}
				s, err := openQuietly(Options{FS: disk, AcceptRollback: &test.accept})
				if err != nil {
					t.Fatalf("Open accepting head %d = %v", test.accept, err)
				}
				closeTest(t, s)
				closeTest(t, openTest(t, disk, nil))
			})
		}
	}
}

// storesToHarm returns three disks. disk has a store with two heads. older has a copy of this store
// with one head. other has an unrelated store with three heads.
func storesToHarm(t *testing.T, closed bool) (disk, older, other *vfs.MemFS) {
	t.Helper()
	end := func(disk *vfs.MemFS, s *Store) *vfs.MemFS {
		if closed {
			closeTest(t, s)
		} else {
			s.recordTip()
		}
		return disk.CrashClone(vfs.CrashCloneCfg{})
	}
	w := storagetest.NewWriter()
	disk = vfs.NewCrashableMem()
	s := openTest(t, disk, nil)
	fill(t, s, w, 1)
	older = end(disk, s)
	if closed {
		s = openTest(t, disk, nil)
	}
	fill(t, s, w, 2)
	disk = end(disk, s)
	other = vfs.NewCrashableMem()
	s = openTest(t, other, nil)
	for n := range int64(3) {
		fill(t, s, w, n+1)
	}
	return disk, older, end(other, s)
}

// TestTip_AcceptedInVain checks that a complete store opens even if AcceptRollback is still set.
func TestTip_AcceptedInVain(t *testing.T) {
	disk, log := vfs.NewMem(), new(logged)
	closeTest(t, openTest(t, disk, nil))
	for _, seq := range []uint64{0, 7} {
		s, err := Open("data", Options{FS: disk, Log: log.logger(), AcceptRollback: &seq})
		if err != nil {
			t.Fatalf("Open of a whole store with head %d accepted = %v", seq, err)
		}
		closeTest(t, s)
	}
	if n := strings.Count(log.buf.String(), "--accept-rollback is not needed"); n != 2 {
		t.Errorf("the log says %d times that the flag is not needed, want 2:\n%s", n, log.buf.String())
	}
}

// TestTip_CannotBeNoted checks a store whose tip cannot be recorded. Commits must still succeed.
// The failure is logged once and reported as a trouble. The file keeps the earlier tip.
func TestTip_CannotBeNoted(t *testing.T) {
	var full atomic.Bool
	disk := vfs.NewCrashableMem()
	log := new(logged)
	s := openTest(t, failing(disk, func(op errorfs.Op) bool {
		return full.Load() && strings.HasPrefix(filepath.Base(op.Path), "data.tip") && op.Kind != errorfs.OpFileClose
	}), log)
	w := storagetest.NewWriter()
	commit := func() {
		t.Helper()
		commit(t, s, w, w.Record("a"))
		s.recordTip()
	}
	commit()
	full.Store(true)
	commit()
	commit()
	if got := s.health.trouble(func(t trouble) bool { return t == tipTrouble }); !errors.Is(got, errDisk) || s.Healthy(t.Context()) != nil || log.errors() != 1 {
		t.Errorf("trouble = %v, Healthy = %v, %d errors logged; want the failure, nil and 1", got, s.Healthy(t.Context()), log.errors())
	}
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	if got, err := readTip("data", crashed); got.Head != 1 || err != nil {
		t.Errorf("noted is %+v, %v; want head 1", got, err)
	}
	if s := openTest(t, crashed, nil); s.tip.Seq != 3 {
		t.Errorf("opened at head %d, want 3", s.tip.Seq)
	}
	full.Store(false)
	commit()
	if got, err := readTip("data", disk); got.Head != 4 || err != nil {
		t.Errorf("noted is %+v, %v; want head 4", got, err)
	}
	if got := s.health.trouble(func(t trouble) bool { return t == tipTrouble }); got != nil {
		t.Errorf("trouble = %v after it has passed", got)
	}
}

// TestTip_FullDisk is TestTip_CannotBeNoted on a disk that is really full.
func TestTip_FullDisk(t *testing.T) {
	root := mountTmpfs(t)
	s, err := Open(filepath.Join(root, "data"), Options{Log: (*logged)(nil).logger(), MinFreeBytes: 1})
	must(t, err)
	t.Cleanup(func() { closeTest(t, s) })
	w := storagetest.NewWriter()
	commit(t, s, w, w.Record("a"))
	s.recordTip()
	s.recording.Lock()
	_, err = w.Commit(t.Context(), s, w.Record("a"))
	ballast := fillDisk(t, root, 0)
	s.recording.Unlock()
	must(t, err)
	s.recordTip()
	if got, err := readTip(s.health.dir, vfs.Default); got.Head != 1 || err != nil {
		t.Errorf("noted on a full disk is %+v, %v; want head 1, as before", got, err)
	}
	if s.health.trouble(func(t trouble) bool { return t == tipTrouble }) == nil {
		t.Error("a full disk is no trouble to who notes the tip")
	}
	must(t, os.Remove(ballast))
	s.recordTip()
	if got, err := readTip(s.health.dir, vfs.Default); got.Head != 2 || err != nil {
		t.Errorf("noted with space again is %+v, %v; want head 2", got, err)
	}
}

// TestTip_WrittenBehind checks a store with WriteBehind. All writes up to the recorded tip must be
// durable. If a crash loses later commits, the store must end at the tip or after the tip.
func TestTip_WrittenBehind(t *testing.T) {
	disk := vfs.NewCrashableMem()
	w := storagetest.NewWriter()
	s := openWith(t, Options{FS: disk, WriteBehind: 16})
	for range 200 {
		commit(t, s, w, w.Record("a"))
		s.recordTip()
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		noted, err := readTip("data", crashed)
		if err != nil || noted.Head != s.tip.Seq {
			t.Fatalf("noted is %+v, %v; want head %d", noted, err, s.tip.Seq)
		}
		closeTest(t, openTest(t, crashed, nil))
	}
}

// TestMarks_OneOfEach writes to a store, flushes it and opens it again, several times. Each stream
// must always have exactly one mark.
func TestMarks_OneOfEach(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	for n := range int64(4) {
		s := openTest(t, disk, nil)
		fill(t, s, w, 2*n+1)
		rotate(t, s)
		fill(t, s, w, 2*n+2)
		must(t, errors.Join(s.keepNow(), s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)))
		heads, err := s.marks(headStream)
		if err != nil || len(heads) != 1 || heads[0] != s.kept {
			t.Errorf("marks of heads = %d, %v; want that of %d", heads, err, s.kept)
		}
		changes, err := s.marks(changeStream)
		if err != nil || len(changes) != 1 || changes[0] != s.change || s.change < 10 {
			t.Errorf("marks of changes = %d, %v; want that of %d", changes, err, s.change)
		}
		closeTest(t, s)
	}
}
