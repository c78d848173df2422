package writ_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuild_SaysHowFarItIs runs internal/tools/build with a go command that compiles nothing.
func TestBuild_SaysHowFarItIs(t *testing.T) {
	for _, program := range []string{"sh", "seq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: there is no %s", program)
		}
	}
	fake := filepath.Join(t.TempDir(), "go")
	const text = `#!/bin/sh
case $1 in
list) seq 250 ;;
build) seq 1 201 | sed 's,^,example.com/p,' >&2
    [ -z "$BROKEN" ] || { printf '# example.com/p7\n./x.go:1:2: undefined: y\n' >&2; exit 1; } ;;
esac
`
	if err := os.WriteFile(fake, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	run := func(env string, args ...string) (string, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GO="+fake, env)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("BROKEN=", "internal/tools/build", "out")
	want := "building writ of 250 packages\ncompiling writ: 100 of at most 250 packages\n" +
		"compiling writ: 200 of at most 250 packages\ncompiled 201 packages of 250; the others were there\n"
	if err != nil || out != want {
		t.Errorf("build prints\n%s, %v, want\n%s", out, err, want)
	}
	out, err = run("BROKEN=1", "internal/tools/build", "out")
	if err == nil || !strings.HasSuffix(out, "# example.com/p7\n./x.go:1:2: undefined: y\n") {
		t.Errorf("a broken build prints\n%s, %v, want its errors last, and a failure", out, err)
	}
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("SKIPPED its line on a terminal: there is no script")
	}
	out, err = run("BROKEN=", "script", "-qec", "internal/tools/build out", os.DevNull)
	if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "\rcompiling writ: 201 of at most 250 packages") {
		t.Errorf("build prints on a terminal\n%q, %v, want one line that is written again", out, err)
	}
}
