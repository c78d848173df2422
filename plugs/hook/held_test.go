package hook_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
)

func (s *server) set(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// again is the same call with another id, as when the model makes it again.
func again(id string) string { return strings.Replace(calls[toolcall.Claude], "t1", id, 1) }

// TestHeld_RunsOnce holds that an approval lets one call run, by the body that was held.
func TestHeld_RunsOnce(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	for _, id := range []string{"t1", "t2"} {
		if got := run(h, again(id)); got.code != 2 || !strings.Contains(got.err, "held, approval "+decisionID) {
			t.Fatalf("before the verdict: %+v", got)
		}
	}
	if len(s.intents) != 1 {
		t.Errorf("%d intents were held, want 1: the call that waits", len(s.intents))
	}
	s.set("approved")
	if got := run(h, strings.Replace(again("t3"), "ls", "ls -l", 1)); got.code != 2 {
		t.Errorf("another command: %+v", got)
	}
	if got := run(h, again("t4")); got.code != 0 || got.out != "{}\n" {
		t.Errorf("after the verdict: %+v", got)
	}
	sent := s.redeemed[0]
	delete(sent, "approval_id")
	if diff := cmp.Diff(s.intents[0], sent); diff != "" {
		t.Errorf("what is redeemed is not what was held (-held +redeemed):\n%s", diff)
	}
	if got := run(h, again("t5")); got.code != 2 {
		t.Errorf("a second call: %+v", got)
	}
	if got := run(h, again("t1")); got.code != 2 {
		t.Errorf("the first call again: %+v", got)
	}
	if len(s.redeemed) > 2 {
		t.Errorf("%d redemptions", len(s.redeemed))
	}
}

// TestHeld_Race checks that one of several processes runs the call.
func TestHeld_Race(t *testing.T) {
	for range 20 {
		s := newServer(t, holds)
		h := newHook(t, toolcall.Claude, s.URL)
		run(h, again("t0"))
		s.set("approved")
		var ran sync.Map
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if run(h, again("t"+string(rune('1'+i)))).code == 0 {
					ran.Store(i, true)
				}
			})
		}
		wg.Wait()
		n := 0
		ran.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Fatalf("%d calls ran under one approval, want 1", n)
		}
	}
}

// TestHeld_Replayed holds that a redemption which another process made runs nothing.
func TestHeld_Replayed(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	run(h, again("t1"))
	s.set("approved")
	s.redeemed = append(s.redeemed, nil)
	if got := run(h, again("t2")); got.code != 2 || !strings.Contains(got.err, "used this approval") {
		t.Errorf("a replayed redemption: %+v", got)
	}
}

// TestHeld_Unavailable holds that an approval is not lost if its redemption fails.
func TestHeld_Unavailable(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	run(h, again("t1"))
	s.set("approved")
	s.redeem = func(w http.ResponseWriter, _ *http.Request) {
		s.redeemed = nil // it was not decided
		w.WriteHeader(http.StatusInternalServerError)
	}
	if got := run(h, again("t2")); got.code != 2 {
		t.Errorf("a redemption that fails: %+v", got)
	}
	if got := run(h, again("t3")); got.code != 0 {
		t.Errorf("the next one: %+v", got)
	}
}

// TestHeld_Verdicts holds what an approval that ended lets run: nothing.
func TestHeld_Verdicts(t *testing.T) {
	for _, status := range []string{"rejected", "expired", "revoked", "used", "unheard-of"} {
		s := newServer(t, holds)
		h := newHook(t, toolcall.Claude, s.URL)
		run(h, again("t1"))
		s.set(status)
		for _, id := range []string{"t1", "t2", "t2", "t3"} {
			if got := run(h, again(id)); got.code != 2 || got.err == "" {
				t.Errorf("%s, call %s: %+v", status, id, got)
			}
		}
	}
}

// TestHeld_Wait holds that the hook waits for the verdict.
func TestHeld_Wait(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	h.Held = hook.HeldWait
	if got := run(h, again("t1")); got.code != 2 || !strings.Contains(got.err, "held, approval") {
		t.Errorf("without a verdict: %+v", got)
	}
	for len(s.polled) > 0 {
		<-s.polled
	}
	h.Wait = time.Minute
	done := make(chan ran)
	go func() { done <- run(h, again("t2")) }()
	<-s.polled
	s.set("approved")
	if got := <-done; got.code != 0 {
		t.Errorf("with a verdict: %+v", got)
	}
}

// TestHeld_Files holds that nobody else reads what is held, and that it goes after a day.
func TestHeld_Files(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	run(h, again("t1"))
	info, err := os.Stat(h.State)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the state is %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(h.State)
	if err != nil || len(entries) != 3 {
		t.Fatalf("the state has %v, %v", entries, err)
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the mode of %s is %v, %v", e.Name(), info.Mode(), err)
		}
		if err := os.Chtimes(filepath.Join(h.State, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	run(h, strings.Replace(again("t2"), "ls", "pwd", 1))
	left, err := os.ReadDir(h.State)
	if err != nil || len(left) != 3 {
		t.Errorf("a day later the state has %v, %v", left, err)
	}
}

// TestRecord holds what is recorded of calls that were made.
func TestRecord(t *testing.T) {
	for harness, call := range calls {
		for name, answer := range map[string]http.HandlerFunc{"allow": allows, "held": holds} {
			s := newServer(t, answer)
			h := newHook(t, harness, s.URL)
			if name == "held" {
				if harness == toolcall.Codex {
					continue
				}
				h.Held = hook.HeldAsk
			}
			if got := run(h, call); got.code != 0 {
				t.Fatalf("%s: %+v", harness, got)
			}
			made := strings.NewReplacer("PreToolUse", "PostToolUse", "BeforeTool", "AfterTool", "beforeShell", "afterShell").Replace(call)
			var out, errw bytes.Buffer
			if code := h.Run(context.Background(), hook.Record, strings.NewReader(made), &out, &errw); code != 0 || out.String() != "{}\n" {
				t.Errorf("%s: recording: exit code %d, %q", harness, code, errw.String())
			}
			want := map[string]any{"decision_id": decisionID, "outcome": "executed"}
			if name == "held" {
				want["external_ref"] = "allowed by the local user of " + string(harness)
			}
			if diff := cmp.Diff([]map[string]any{want}, s.records); diff != "" {
				t.Errorf("%s, %s: records (-want +got):\n%s", harness, name, diff)
			}
			other := strings.Replace(made, "ls", "pwd", 1)
			other = strings.Replace(other, "t1", "t2", 1)
			if code := h.Run(context.Background(), hook.Record, strings.NewReader(other), &out, &errw); code != 2 {
				t.Errorf("%s: recording a call that was not decided: exit code %d", harness, code)
			}
		}
	}
}

// TestHeld_Damaged holds that nothing but a held call in the place of one lets the call run, hangs or breaks.
func TestHeld_Damaged(t *testing.T) {
	s := newServer(t, holds)
	h := newHook(t, toolcall.Claude, s.URL)
	if got := run(h, again("t1")); got.code != 2 {
		t.Fatalf("a held call: %+v", got)
	}
	found, err := filepath.Glob(filepath.Join(h.State, "held-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("found %q, %v", found, err)
	}
	whole, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) func(string) error {
		return func(name string) error { return os.WriteFile(name, []byte(s), 0o600) }
	}
	for what, put := range map[string]func(name string) error{
		"a directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"a pipe":      func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a device":    func(name string) error { return os.Symlink("/dev/zero", name) },
		"cut":         text(string(whole[:len(whole)/2])),
		"empty":       text(""), "null": text("null"), "held null": text(`{"held":[null]}`), "held nothing": text(`{"held":[]}`),
		"held none": text(`{"held":[{}]}`), "another id": text(strings.ReplaceAll(string(whole), decisionID, redeemedID)),
	} {
		if err := errors.Join(os.Remove(found[0]), put(found[0])); err != nil {
			t.Fatal(err)
		}
		if got := run(h, again("t2")); got.code != 2 || got.out != "" || got.err == "" || strings.Contains(got.err, "defect") {
			t.Errorf("%s in the place of a held call: %+v", what, got)
		}
	}
	if len(s.redeemed) > 0 {
		t.Errorf("redeemed %v", s.redeemed)
	}
}
