//go:build linux

package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/storage/datadir"
)

// TestFullDisk fills the disk while the real binary decides. From then on writ must refuse, log the
// fault once, and be not ready. Once space is free, writ must decide again and still have all
// acknowledged decisions.
func TestFullDisk(t *testing.T) {
	mount := mountSmall(t, 384<<20) // the store's reserve is 256 MiB
	data := datadir.Dir(filepath.Join(mount, "data"))
	must(t, data.Create())
	token := tokenOf(t, data)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)

	var mu sync.Mutex
	answers := make(map[string]string)
	send := func(s sender) answer {
		in := newIntent("bot", "deploy", "k8s/staging/web")
		got, err := s.evaluate(p.url, in)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Errorf("evaluate: %v", err)
		case got.status == http.StatusOK:
			answers[in.id] = got.body
		default:
			checkRefusal(t, got)
		}
		return got
	}
	release := background(t, 4, token, func(s sender) bool {
		send(s)
		return true
	})
	s := newSender(t, token, 1)
	waitFor(t, "an acknowledged decision", func() bool { return send(s).status == http.StatusOK })
	ballast := filepath.Join(mount, "ballast")
	fill(t, ballast)
	waitFor(t, "a refusal", func() bool { return send(s).status != http.StatusOK })
	for range 50 {
		if got := send(s); got.status == http.StatusOK {
			t.Fatalf("evaluate on a full disk = %d %s, want a refusal", got.status, got.body)
		}
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz on a full disk = %d %s, want 503", status, body)
	}
	if status, body := get(t, p.admin+"/livez"); status != http.StatusOK {
		t.Errorf("/livez on a full disk = %d %s, want 200", status, body)
	}
	release()
	// The tip of the last decisions may be unwritable too, and the position of the decision log, if that is just
	// noted. Each of these faults has its own log line, and so has each refused request.
	var about []string
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.Contains(line, `msg="request`) {
			about = append(about, line)
		}
	}
	log := strings.Join(about, "")
	refused, unnoted := strings.Count(log, "storage in trouble"), strings.Count(log, "how far the store has come cannot be noted")
	unsent := strings.Count(log, "rows cannot be sent to the decision log")
	if n := strings.Count(log, "\n"); refused != 1 || unnoted > 1 || unsent > 1 || n != refused+unnoted+unsent {
		t.Errorf("%d log lines for one full disk, want one, and at most one each about the tip and the decision log:\n%.4000s", n, log)
	}

	must(t, os.Remove(ballast))
	if strings.Contains(p.stderr.String(), "until a restart") {
		t.Log("the store has stopped, as it said: restarting")
		p.kill(t)
		p = start(t, data, plans)
	}
	waitFor(t, "decisions after space was freed", func() bool { return send(s).status == http.StatusOK })
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz with space again = %d %s, want 200", status, body)
	}
	rows := history(t, p.url, token)
	p.stop(t)
	auditAnswers(t, data, answers, rows)
	auditStore(t, data, rows)
	if len(rows) != len(answers) {
		t.Errorf("history has %d rows, want the %d acknowledged: a refusal decides nothing", len(rows), len(answers))
	}
}

// TestFullDisk_Start checks that the real binary does not start on a full disk, with or without
// earlier data. It must name the reason.
func TestFullDisk_Start(t *testing.T) {
	mount := mountSmall(t, 384<<20)
	old := datadir.Dir(filepath.Join(mount, "old"))
	start(t, old).kill(t) // leaves a log for recovery
	fill(t, filepath.Join(mount, "ballast"))
	for _, data := range []datadir.Dir{old, datadir.Dir(filepath.Join(mount, "new"))} {
		p, _ := launch(t, data)
		select {
		case <-p.done:
		case <-time.After(patience):
			t.Fatalf("writ serve on a full disk neither serves nor ends\n%s", p.stderr)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(p.stderr.String(), "the disk is full: ") {
			t.Errorf("writ serve on a full disk = %v, want exit code %d and that the disk is full\n%s", p.cmd.ProcessState, exitFailed, p.stderr)
		}
	}
}

// checkRefusal checks that a refusal is a problem document that approves nothing.
func checkRefusal(t *testing.T, got answer) {
	t.Helper()
	var problem struct {
		OK       *bool `json:"ok"`
		Approved *bool `json:"approved"`
		Status   int   `json:"status"`
	}
	err := json.Unmarshal([]byte(got.body), &problem)
	if err != nil || got.status < 500 || problem.Status != got.status || got.contentType != "application/problem+json" ||
		problem.OK == nil || *problem.OK || problem.Approved != nil {
		t.Errorf("refusal = %d %s %s (%v), want a 5xx problem", got.status, got.contentType, got.body, err)
	}
}

// mountSmall mounts a small file system for the test. It skips the test if the mount fails.
func mountSmall(t *testing.T, size int) string {
	t.Helper()
	dir, err := tryMountSmall(t, size)
	if err != nil {
		t.Skipf("SKIPPED: a full disk needs root, to mount a small file system: %v", err)
	}
	return dir
}

// tryMountSmall mounts a small file system for the test, or returns an error.
func tryMountSmall(t *testing.T, size int) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := mountTmpfs(dir, size); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, nil
}

// mountTmpfs mounts a file system of a size over a directory.
func mountTmpfs(dir string, size int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size))
}

// fill writes a file until no byte is free.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	defer func() { _ = f.Close() }() // the content does not matter
	for chunk := make([]byte, 1<<20); ; {
		n, err := f.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) && n == 0 {
			return
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}
