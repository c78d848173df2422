//go:build linux

package backup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"writ.example/writ/storage/datadir"
)

// The variables of a child that is killed: what it does, and at which step it is killed.
const (
	childDoes = "WRIT_TEST_BACKUP_CHILD"
	childStep = "WRIT_TEST_BACKUP_STEP"
)

// TestChild makes or restores a backup, and kills itself. It is no test of its own.
func TestChild(t *testing.T) {
	does := os.Getenv(childDoes)
	if does == "" {
		return
	}
	at, err := strconv.Atoi(os.Getenv(childStep))
	must(t, err)
	steps := 0
	step := func() {
		if steps++; steps == at {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
		}
	}
	what, rest, _ := strings.Cut(does, " ")
	from, to, _ := strings.Cut(rest, " ")
	if what == "restore" {
		_, err = Restore(stepping{t.Context(), step}, from, Restored{Data: datadir.Dir(to)})
		must(t, err)
		return
	}
	s := open(t, datadir.Dir(from))
	_, err = Make(stepping{t.Context(), step}, config(steppingSource{s, step}, to), "killed")
	must(t, err)
	must(t, s.Close())
}

// killedAt runs the child until it is killed at a step. It returns false if the child had fewer steps.
func killedAt(t *testing.T, step int, does ...string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childDoes+"="+strings.Join(does, " "), fmt.Sprintf("%s=%d", childStep, step))
	out, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("the child at step %d = %v\n%s", step, err, out)
	return false
}

// otherDisk returns a directory of another file system, where nothing can be linked.
func otherDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "writ-backup-")
	if err != nil {
		t.Skipf("SKIPPED: there is no other file system: %v", err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// TestMake_KilledAtEachStep kills a process with kill -9 at each step of a backup, of links and of copies. No backup is
// there then, and the store opens. The next backup is whole.
func TestMake_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"links", "copies"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			if how == "copies" {
				dir = otherDisk(t)
			}
			dir = filepath.Join(dir, "backups")
			data, records := filled(t, 20)
			s := open(t, data)
			_, err := Make(t.Context(), config(s, dir), "before")
			must(t, err)
			must(t, s.Close())
			steps := 1
			for ; killedAt(t, steps, "make", string(data), dir); steps++ {
				if _, err := os.Lstat(filepath.Join(dir, "killed")); err == nil {
					t.Fatalf("step %d: a backup is there whose process was killed", steps)
				}
				wantRecords(t, data, records)
			}
			if steps < 5 {
				t.Errorf("a backup has %d steps: the test shows nothing", steps)
			}
			wantRestored(t, filepath.Join(dir, "killed"), records) // the child that had fewer steps
			s = open(t, data)
			_, err = Make(t.Context(), config(s, dir), "after")
			must(t, err)
			must(t, s.Close())
			wantRestored(t, filepath.Join(dir, "after"), records)
		})
	}
}

// TestRestore_KilledAtEachStep kills a process with kill -9 at each step of a restore. There is no store then, and the
// next restore is whole.
func TestRestore_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	data, records := filled(t, 20)
	dir := filepath.Join(t.TempDir(), "backups")
	s := open(t, data)
	_, err := Make(t.Context(), config(s, dir), "one")
	must(t, err)
	must(t, s.Close())
	to := datadir.Dir(filepath.Join(t.TempDir(), "restored"))
	steps := 1
	for ; killedAt(t, steps, "restore", filepath.Join(dir, "one"), string(to)); steps++ {
		if _, err := os.Lstat(to.Store()); err == nil {
			t.Fatalf("step %d: there is a store after a restore that was killed", steps)
		}
	}
	if steps < 5 {
		t.Errorf("a restore has %d steps: the test shows nothing", steps)
	}
	wantRecords(t, to, records)
}

// smallDisk mounts a file system of some KiB. It skips the test if it cannot mount.
func smallDisk(t *testing.T, kib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk,mode=0700", kib)); err != nil {
		t.Skipf("SKIPPED: a full disk needs root, to mount a small file system: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	return dir
}

// TestBackup_FullDisk has a backup and a restore meet a full disk, after a different number of bytes each. Each says so
// and leaves nothing. The store goes on, and with room both are whole.
func TestBackup_FullDisk(t *testing.T) {
	t.Parallel()
	data, records := filled(t, 200)
	s := open(t, data)
	whole := filepath.Join(t.TempDir(), "backups")
	m, err := Make(t.Context(), config(s, whole), "whole")
	must(t, err)
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	for part := range int64(4) {
		disk := smallDisk(t, int(size>>10)+256)
		ballast := filepath.Join(disk, "ballast")
		must(t, os.WriteFile(ballast, make([]byte, 256<<10+size*(part+1)/5), 0o600))
		dir, to := filepath.Join(disk, "backups"), datadir.Dir(filepath.Join(disk, "restored"))
		if _, err := Make(t.Context(), config(s, dir), "full"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("part %d: Make on a full disk = %v, want that no space is left", part, err)
		}
		wantNone(t, dir, "full")
		if _, err := Restore(t.Context(), filepath.Join(whole, "whole"), Restored{Data: to}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("part %d: Restore on a full disk = %v, want that no space is left", part, err)
		}
		if left, err := os.ReadDir(string(to)); err != nil || len(left) > 0 {
			t.Errorf("part %d: a restore has left %v, %v", part, left, err)
		}
		must(t, s.Healthy(t.Context()))
		must(t, os.Remove(ballast))
		_, err := Make(t.Context(), config(s, dir), "full")
		must(t, err)
		wantRestored(t, filepath.Join(dir, "full"), records)
	}
	must(t, s.Close())
}
