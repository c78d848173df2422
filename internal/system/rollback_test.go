package system

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage/datadir"
)

// TestRollback checks "Damage does not open as an empty store" with the real binary. The test kills
// the binary once its last head is recorded, and then damages its files. Some damage makes Pebble
// open an empty store without an error. Other damage removes the last frames of the segments. Each
// start must be refused. The refusal must tell the operator how to continue, and that way must
// work.
func TestRollback(t *testing.T) {
	t.Parallel()
	p, data, token := deployed(t)
	evaluate(t, p.url, token, 150)
	p.stop(t) // writes tables
	want := notedHead(t, data) + 50
	p = start(t, data)
	evaluate(t, p.url, token, 50)
	waitFor(t, "the last head to be noted", func() bool { return notedHead(t, data) == want })
	p.kill(t)

	for name, harm := range map[string]func(t *testing.T, store string){
		"the log is cut":                func(t *testing.T, s string) { cut(t, s, "*.segment", 2) },
		"the log is empty":              func(t *testing.T, s string) { cut(t, s, "*.segment", 0) },
		"the log is gone":               func(t *testing.T, s string) { remove(t, one(t, s, "*.segment")) },
		"the manifest has lost its end": func(t *testing.T, s string) { cut(t, s, "MANIFEST-*", 1) },
		"the manifest has half":         func(t *testing.T, s string) { cut(t, s, "MANIFEST-*", 2) },
		"the manifest is empty":         func(t *testing.T, s string) { cut(t, s, "MANIFEST-*", 0) },
		"nothing names the manifest":    func(t *testing.T, s string) { remove(t, one(t, s, "marker.manifest.*")) },
		"the store's directory is gone": remove,
		"the note is gone":              func(t *testing.T, s string) { remove(t, s+".tip") },
		"the note is damaged":           func(t *testing.T, s string) { cut(t, filepath.Dir(s), "store.tip", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := datadir.Dir(filepath.Join(t.TempDir(), "data"))
			must(t, os.CopyFS(string(damaged), os.DirFS(string(data))))
			harm(t, damaged.Store())
			said := refused(t, damaged)
			if !strings.Contains(said, "restore the data directory from a backup") {
				t.Fatalf("writ serve says %s, want what to do", said)
			}
			if seq := regexp.MustCompile(`--accept-rollback (\d+) to go on`).FindStringSubmatch(said); seq != nil {
				refused(t, damaged, "--accept-rollback", "1"+seq[1])
				start(t, damaged, "--accept-rollback", seq[1]).stop(t)
				start(t, damaged).stop(t)
			}
		})
	}
	p = start(t, data) // the files are unchanged since the kill
	if n := len(history(t, p.url, token)); n != 200 {
		t.Errorf("the history has %d decisions, want 200", n)
	}
}

// TestCrash_AtItsFirstStart kills first starts while they make the store, each at the first file of another
// kind. Nothing is acknowledged yet, so the next start must serve.
func TestCrash_AtItsFirstStart(t *testing.T) {
	t.Parallel()
	for range rounds(1, 20) {
		for _, made := range []string{"LOCK", "MANIFEST-*", "*.log", "../store.tip", "*.segment", "*.segment", "*.sst"} {
			data, token := newData(t)
			killed(t, func() bool {
				found, err := filepath.Glob(filepath.Join(data.Store(), made))
				must(t, err)
				return len(found) > 0
			}, "serve", "--data", string(data), "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
			p := start(t, data)
			register(t, p.url, token)
			evaluate(t, p.url, token, 1)
			p.kill(t)
		}
	}
}

// notedHead returns the number of the head in the tip file beside the store.
func notedHead(t *testing.T, data datadir.Dir) int {
	t.Helper()
	text, err := os.ReadFile(data.Store() + ".tip")
	must(t, err)
	seq := regexp.MustCompile(`\nhead (\d+) `).FindSubmatch(text)
	if seq == nil {
		t.Fatalf("store.tip notes no head: %s", text)
	}
	n, err := strconv.Atoi(string(seq[1]))
	must(t, err)
	return n
}

// evaluate sends n intents one after the other.
func evaluate(t *testing.T, url, token string, n int) {
	t.Helper()
	s := newSender(t, token, 1)
	for range n {
		s.decide(t, url, newIntent("bot", "deploy", "k8s/staging"))
	}
}

// refused starts the real binary, checks that the binary does not serve, and returns its log.
func refused(t *testing.T, data datadir.Dir, flags ...string) string {
	t.Helper()
	p, ready := launch(t, data, flags...)
	select {
	case ok := <-ready:
		if ok {
			t.Fatalf("writ serve %q serves, want a refusal\n%s", flags, p.stderr)
		}
	case <-time.After(patience):
		t.Fatalf("writ serve neither serves nor ends after %v\n%s", patience, p.stderr)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("writ serve ends with %d, want %d\n%s", code, exitFailed, p.stderr)
	}
	return p.stderr.String()
}

// one returns the last non-empty file of dir that matches pattern.
func one(t *testing.T, dir, pattern string) (found string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && (info.Size() > 0 || strings.HasPrefix(pattern, "marker")) {
			found = name
		}
	}
	if found == "" {
		t.Fatalf("no %s in %s", pattern, dir)
	}
	return found
}

// cut shortens a file and removes the zeros at its end. With part 2 it keeps half of the file. With
// part 1 it removes the last byte, and with part 0 everything.
func cut(t *testing.T, dir, pattern string, part int) {
	t.Helper()
	name := one(t, dir, pattern)
	text, err := os.ReadFile(name)
	must(t, err)
	text = bytes.TrimRight(text, "\x00") // a segment has preallocated zeros
	size := map[int]int{0: 0, 1: len(text) - 1, 2: len(text) / 2}[part]
	must(t, os.Truncate(name, int64(size)))
}

func remove(t *testing.T, name string) {
	t.Helper()
	must(t, os.RemoveAll(name))
}
