package system

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// watched is a process of writ test --watch.
type watched struct {
	lines chan string
	cmd   *exec.Cmd
}

// watchSuites starts writ test --watch in a directory, with further arguments.
func watchSuites(t *testing.T, dir string, args ...string) *watched {
	t.Helper()
	w := &watched{lines: make(chan string, 1000), cmd: command(t, append([]string{"test", "--watch"}, args...)...)}
	w.cmd.Dir = dir
	r, out := io.Pipe()
	w.cmd.Stdout, w.cmd.Stderr = out, out
	must(t, w.cmd.Start())
	go func() {
		defer close(w.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			w.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { out.Close() })
	return w
}

// until waits for a line that matches. It returns the line and all lines before it.
func (w *watched) until(t *testing.T, pattern string) string {
	t.Helper()
	var all []string
	late := time.After(patience)
	for {
		select {
		case line, ok := <-w.lines:
			if all = append(all, line); ok && !regexp.MustCompile(pattern).MatchString(line) {
				continue
			}
			return strings.Join(all, "\n")
		case <-late:
			t.Fatalf("no line matches %s:\n%s", pattern, strings.Join(all, "\n"))
		}
	}
}

// TestWatch_RunsWhatAChangeTouches changes files. The watch must run exactly the suites that use
// these files.
func TestWatch_RunsWhatAChangeTouches(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		next := filepath.Join(dir, name+"~")
		must(t, os.WriteFile(next, []byte(text), 0o666))
		if err := os.Rename(next, filepath.Join(dir, name)); err != nil { // editors save files by renaming
			t.Fatal(err)
		}
	}
	const policy = `{"policy_id": "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", "version": 1, "organization_id": "o", "agent_id": "*",
"allowed_action_types": ["a"], "status": "active", "updated_at": "2026-11-01T09:00:00Z"}`
	const suite = `{policy: NAME.json, now: 2026-11-02T10:00:00Z, intents: {i: {agent_id: a, action_type: a, resource: r}}, tests: [{name: t, intent: i, want: allow}]}`
	for _, name := range []string{"one", "two"} {
		write(name+".json", policy)
		write(name+"_test.yaml", strings.ReplaceAll(suite, "NAME", name))
	}
	w := watchSuites(t, dir)
	waiting := `waiting for changes$`
	if got := w.until(t, waiting); strings.Count(got, "1 of 1 hold") != 2 {
		t.Fatalf("both suites should hold:\n%s", got)
	}

	write("two.json", strings.Replace(policy, `["a"]`, `["b"]`, 1))
	got := w.until(t, waiting)
	if !strings.Contains(got, "two_test.yaml: 0 of 1 hold") || strings.Contains(got, "one_test.yaml") {
		t.Errorf("two.json was changed, so that two_test.yaml alone should run and fail:\n%s", got)
	}
	t.Logf("after a change: %s", got[strings.LastIndex(got, "\n")+1:])

	write("two.json", strings.Replace(policy, `"version": 1`, `"version": "1"`, 1))
	if got := w.until(t, `^ *\^$`); !strings.Contains(got, "two.json:1:") {
		t.Errorf("two.json is invalid:\n%s", got)
	}
	write("two.json", policy)
	w.until(t, `two_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)

	write("one_test.yaml", strings.ReplaceAll(strings.Replace(suite, "allow", "deny", 1), "NAME", "one"))
	w.until(t, `one_test.yaml: 0 of 1 hold`)
	w.until(t, waiting)
	write("new_test.yaml", strings.ReplaceAll(suite, "NAME", "one"))
	w.until(t, `new_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)

	const module = "package team\n\nmatch if input.intent.action_type == \"z\"\n"
	write("team.rego", module)
	write("rules.yaml", "{name: n, condition: {rego: {file: team.rego}}, action: {decision: deny}}")
	write("rego_test.yaml", strings.Replace(strings.ReplaceAll(suite, "NAME", "one"), "{policy", "{rules: [rules.yaml], policy", 1))
	w.until(t, `rego_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)
	write("team.rego", strings.Replace(module, `"z"`, `"a"`, 1))
	w.until(t, `rego_test.yaml: 0 of 1 hold`)
	w.until(t, waiting)
	write("team.rego", strings.Replace(module, "==", "=== ", 1))
	w.until(t, `team.rego:3:`)
	write("team.rego", module)
	w.until(t, `rego_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)

	// The library is in a directory that is not searched for suites.
	lib, err := filepath.Rel(dir, t.TempDir())
	must(t, err)
	const library = "package lib.net\n\ninside(host) if host == \"x\"\n"
	must(t, os.MkdirAll(filepath.Join(dir, lib, "net"), 0o777))
	write(lib+"/net/net.rego", library)
	write("imports.yaml", "{name: n, condition: {rego: data.lib.net.inside(input.intent.resource)}, action: {decision: deny}}")
	write("lib_test.yaml", strings.Replace(strings.ReplaceAll(suite, "NAME", "one"), "{policy",
		"{libraries: "+lib+", rules: [imports.yaml], policy", 1))
	w.until(t, `lib_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)
	write(lib+"/net/net.rego", strings.Replace(library, `"x"`, `"r"`, 1))
	w.until(t, `lib_test.yaml: 0 of 1 hold`)
	w.until(t, waiting)
	write(lib+"/net/net.rego", strings.Replace(library, "==", "=== ", 1))
	w.until(t, `net.rego:3:`)
	write(lib+"/net/net.rego", library)
	w.until(t, `lib_test.yaml: 1 of 1 hold`)
	w.until(t, waiting)
	write(lib+"/net/more.rego", "package lib.net\n\ninside(host) if host == \"r\"\n") // a new file
	w.until(t, `lib_test.yaml: 0 of 1 hold`)
	w.until(t, waiting)

	// --libraries is the directory of the suites that name none.
	write(lib+"/net/more.rego", "package lib.net\n")
	w.until(t, waiting)
	write("flag_test.yaml", strings.Replace(strings.ReplaceAll(suite, "NAME", "one"), "{policy", "{rules: [imports.yaml], policy", 1))
	flag := watchSuites(t, dir, "--libraries", lib, "flag_test.yaml", "one_test.yaml")
	flag.until(t, waiting)
	write(lib+"/net/more.rego", "package lib.net\n\ninside(host) if host == \"r\"\n")
	if got := flag.until(t, waiting); !strings.Contains(got, "flag_test.yaml: 0 of 1 hold") || strings.Contains(got, "two_test.yaml") {
		t.Errorf("the library of --libraries was changed, so that flag_test.yaml should fail:\n%s", got)
	}
	write(lib+"/net/more.rego", "package lib.net\n\ninside(\n")
	flag.until(t, `more.rego:4:`)
	flag.until(t, waiting)
	must(t, os.Remove(filepath.Join(dir, lib, "net", "more.rego")))
	flag.until(t, `flag_test.yaml: 1 of 1 hold`)

	for _, w := range []*watched{w, flag} {
		must(t, w.cmd.Process.Signal(os.Interrupt))
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("after an interrupt: %v, want exit code 0", err)
		}
	}
}
