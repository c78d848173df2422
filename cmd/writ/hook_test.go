package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHook_Signals holds that a hook which a signal ends while it waits for its decision blocks the call.
func TestHook_Signals(t *testing.T) {
	for _, signal := range deadly {
		asked, release := make(chan struct{}, 10), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			asked <- struct{}{}
			<-release
		}))
		cmd := exec.Command("writ", "hook", "codex", "--url", server.URL, "--policy-id", "0c0ffee0-0000-4000-8000-00000000000a",
			"--state", t.TempDir()+"/state", "--timeout", patience.String())
		cmd.Env = append(os.Environ(), "WRIT_API_KEY=k")
		cmd.Stdin = strings.NewReader(`{"cwd":"/w","tool_name":"Bash","tool_input":{"command":"ls"}}`)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		must(t, cmd.Start())
		<-asked
		must(t, cmd.Process.Signal(signal))
		err := cmd.Wait()
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "writ could not decide") {
			t.Errorf("%v: %v, standard output %q, standard error %q", signal, err, stdout.String(), stderr.String())
		}
		close(release)
		server.Close()
	}
}

// hook runs a hook as a harness does and returns its standard output and standard error.
func (g *gatewayed) hook(input members, flags ...string) (said string) {
	g.t.Helper()
	data, err := json.Marshal(input)
	must(g.t, err)
	cmd := exec.Command("writ", append([]string{"hook", "codex"}, flags...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = g.env, g.project, bytes.NewReader(data)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2 || stdout.Len() > 0 || stderr.Len() == 0) {
		g.t.Fatalf("the hook: %v, standard output %q, standard error %q", err, stdout.String(), stderr.String())
	}
	return stdout.String() + stderr.String()
}

// patch is a call of Codex that patches files.
func (g *gatewayed) patch(id string, files ...string) members {
	text := "*** Begin Patch\n"
	for _, f := range files {
		text += "*** Add File: " + f + "\n+x\n"
	}
	return members{
		"session_id": "s", "hook_event_name": "PreToolUse", "cwd": g.project, "tool_name": "apply_patch", "tool_use_id": id,
		"tool_input": members{"command": text + "*** End Patch\n"},
	}
}

// TestHook_Patch holds that a patch of several files is decided as a whole: all of them may be written, or none.
func TestHook_Patch(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	check := func(want string, input members, flags ...string) string {
		t.Helper()
		said := g.hook(input, flags...)
		if !strings.HasPrefix(said, want) {
			t.Errorf("the hook says %q, want %q", said, want)
		}
		return said
	}
	check("{}\n", g.patch("t1", "a", "b"), "--verify-keys", filepath.Join(g.home, "data", "keys.jwks"))
	check("{}\n", g.patch("t1", "a", "b")) // the same hook again
	made := g.patch("t1", "a", "b")
	made["hook_event_name"] = "PostToolUse"
	check("{}\n", made, "--record")
	check("writ denied this (decision ", g.patch("t2", "a", "b", "denied"))
	check("writ denied this (decision ", g.patch("t3", "held", "denied"))
	said := check("writ: held, approval ", g.patch("t4", "a", "held-x"))
	check(said, g.patch("t5", "a", "held-x"))
	for _, id := range []string{"t6", "t7"} { // both files are held: the rule looks into the patch
		g.approve(said)
		said = g.hook(g.patch(id, "a", "held-x"))
	}
	if said != "{}\n" {
		t.Errorf("after both verdicts the hook says %q", said)
	}
	check("writ: held, approval ", g.patch("t8", "a", "held-x"))
	rows, _ := g.send(http.MethodGet, "/v1/authorizations?decision=allow", nil)["data"].([]any)
	settled := 0
	for _, row := range rows {
		if row.(map[string]any)["settlement"] != nil {
			settled++
		}
	}
	if len(rows) != 4 || settled != 2 {
		t.Errorf("%d allows of which %d are recorded, want 4 and 2: each file of both patches, and of one its record", len(rows), settled)
	}
}

// TestHook_Session holds that the calls of a harness's session are decided in one writ session, which allows nothing
// beyond its actions and is closed at the end.
func TestHook_Session(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	flags := []string{"--session-ttl", "1h", "--session-actions", "shell.exec"}
	shell := func(session, id string) members {
		return members{
			"session_id": session, "hook_event_name": "PreToolUse", "cwd": g.project, "tool_name": "Bash", "tool_use_id": id,
			"tool_input": members{"command": "ls"},
		}
	}
	var wg sync.WaitGroup
	for i := range 8 { // tools that are called at once
		wg.Go(func() {
			if said := g.hook(shell("s", fmt.Sprint("t", i)), flags...); said != "{}\n" {
				t.Errorf("the hook says %q, want an allow", said)
			}
		})
	}
	wg.Wait()
	if got := strings.Fields(g.sessions()); len(got) == 0 || got[0] != "active" || slices.Contains(got[1:], "active") {
		t.Errorf("the sessions are %s, want one that is active", got)
	}
	if said := g.hook(g.patch("p", "a"), flags...); !strings.Contains(said, "session.not_allowed") {
		t.Errorf("an action beyond the session: %q", said)
	}
	if said := g.hook(shell("other", "t1"), flags...); said != "{}\n" {
		t.Errorf("another session: %q", said)
	}
	end := members{"session_id": "s", "hook_event_name": "SessionEnd", "cwd": g.project, "reason": "other"}
	for range 2 {
		if said := g.hook(end, "--end"); said != "{}\n" {
			t.Errorf("at the end the hook says %q", said)
		}
	}
	if got := strings.Count(g.sessions(), "active"); got != 1 {
		t.Errorf("%d sessions are active, want 1: that of the other", got)
	}
	if said := g.hook(shell("s", "t9"), flags...); said != "{}\n" {
		t.Errorf("a session that is resumed: %q", said)
	}
	if said := g.hook(members{"tool_name": "Bash", "cwd": "/", "tool_input": members{"command": "ls"}}, flags...); !strings.Contains(said, "session_id: is missing") {
		t.Errorf("a call of no session: %q", said)
	}
	for _, bad := range [][]string{{"--session-actions", "a"}, {"--session-ttl", "200h"}, {"--session-ttl", "1ms"}, {"--end", "--record"}} {
		if said := g.hook(shell("s", "t10"), bad...); !strings.Contains(said, "--") {
			t.Errorf("%v: %q", bad, said)
		}
	}
}

// TestHook_Attacked holds that a hook which a server would allow blocks nevertheless, with a line on standard error
// and nothing on standard output, if its command line, its variables, its input, its state or its limits are wrong.
func TestHook_Attacked(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	call := `{"session_id":"s","cwd":"/w","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"ls"}}`
	file := filepath.Join(g.home, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	none, held := httptest.NewServer(http.NotFoundHandler()), filepath.Join(g.home, "state")
	none.Close()
	type attack struct {
		script string // $writ and $args are the command line that would be allowed
		env    []string
		input  string
	}
	attacks := []attack{
		{script: "ulimit -f 0; exec $writ $args"}, // a full disk
		{script: "exec $writ $args >/dev/full"},
		{script: "exec $writ $args </"},
		{script: "exec $writ $args <&-"},
		{script: "cd $(mktemp -d) && rmdir $PWD && exec $writ $args --state=here"},
		{script: "exec $writ"}, {script: "exec $writ hook"}, {script: "exec $writ hook emacs"}, {script: "exec $writ hook Claude"},
		{script: "exec $writ $args", input: "ls"}, {script: "exec $writ $args", input: call + call},
		{script: "exec $writ $args", input: strings.Repeat(`{"a":`, 100_000)},
		{script: "exec $writ $args", input: strings.Replace(call, "ls", "\xff", 1)},
		{script: "exec $writ $args", input: strings.Replace(call, `"cwd"`, `"tool_name":"Read","cwd"`, 1)},
	}
	for _, flag := range []string{
		"--nope", "--held=x", "--held=defer", "--held=ask", "--timeout=0", "--timeout=-5s", "--timeout=x", "--timeout=1h", "--wait=0", "extra",
		"--record=x", "--end --record", "--help", "-h", "--version", "--session-ttl=1", "--session-actions=a", "--auto-approve", "--url=", "--policy-id=",
		"--url=ftp://h", "--url=http://u:p@h", "--url=" + none.URL, "--api-key= ", "--api-key-file=/gone --api-key=", "--mapping=/gone", "--verify-keys=/gone",
		"--state=" + file, "--state=" + file + "/x", "--state=/dev/null", "--state=/proc/x",
	} {
		attacks = append(attacks, attack{script: "exec $writ $args " + flag})
	}
	for _, variable := range []string{"WRIT_TIMEOUT=x", "WRIT_HELD=x", "WRIT_HELP=1", "WRIT_END=1", "WRIT_SESSION_TTL=x", "WRIT_API_KEY=", "WRIT_POLICY_ID=", "WRIT_URL="} {
		attacks = append(attacks, attack{script: "exec $writ $args", env: []string{variable}})
	}
	program, err := exec.LookPath("writ")
	must(t, err)
	run := func(a attack) (code int, stdout, stderr string) {
		cmd := exec.Command("sh", "-c", a.script)
		cmd.Env = slices.Concat(g.env, []string{"writ=" + program, "args=hook codex --state=" + held}, a.env)
		cmd.Dir = g.project
		if a.input == "" {
			a.input = call
		}
		cmd.Stdin = strings.NewReader(a.input)
		var out, errw bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errw
		_ = cmd.Run() // the exit code says it
		return cmd.ProcessState.ExitCode(), out.String(), errw.String()
	}
	if code, stdout, stderr := run(attack{script: "exec $writ $args"}); code != 0 || stdout != "{}\n" || stderr != "" {
		t.Fatalf("without an attack: exit code %d, %q, %q", code, stdout, stderr)
	}
	for _, a := range attacks {
		if code, stdout, stderr := run(a); code != 2 || strings.HasPrefix(stdout, "{") || strings.TrimSpace(stderr) == "" {
			t.Errorf("%s %v %.60s: exit code %d, standard output %.100q, standard error %.200q", a.script, a.env, a.input, code, stdout, stderr)
		}
	}
}

// TestHook_OneRuns has many processes ask about the same approved call at once. One of them runs it.
func TestHook_OneRuns(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	call := func(id string) members {
		return members{
			"session_id": "s", "hook_event_name": "PreToolUse", "cwd": g.project, "tool_name": "Bash", "tool_use_id": id,
			"tool_input": members{"command": "held"},
		}
	}
	g.approve(g.hook(call("first")))
	var ran atomic.Int32
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if g.hook(call(fmt.Sprint("t", i))) == "{}\n" {
				ran.Add(1)
			}
		})
	}
	wg.Wait()
	if n := ran.Load(); n != 1 {
		t.Errorf("%d calls ran, want 1", n)
	}
}
