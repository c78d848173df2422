// Package system tests writ as a whole. It starts real processes of the real binary on real
// stores, behind a real balancer, under a real Prometheus. It kills, freezes and cuts off the
// processes.
//
// The files that are not tests are shared by the tests:
//
//   - system.go builds the binary and runs its verbs: run, command, wantCode.
//   - process.go starts writ serve on free ports: start, launch, newData. It can stop or kill a
//     process, or check that it ended well.
//   - client.go sends requests. A client calls the API. A sender sends intents over its own
//     connections. background and together send at the same time.
//   - cluster.go starts replicas that share a MongoDB replica set.
//   - load.go remembers which intents were sent and answered. load_cluster.go sends intents again
//     to other replicas.
//   - audit.go compares answers with the history, the receipts, the chain and the meter.
//   - programs.go gets programs of Debian, and haproxy.go starts the balancer.
//
// Each test file has one subject.
package system

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for a process.
const patience = time.Minute

// The exit codes of writ.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitInvalid
)

// The program faulty reads these variables, and it panics at this host: see
// cmd/writ/main_test.go.
const (
	clockAhead    = "CLOCK_AHEAD"  // how much its clock is to be ahead
	wrongEngine   = "WRONG_ENGINE" // set: decisions are verified by what denies everything
	panickingHost = "panics.invalid"
)

// built returns the directory of the binaries that tests build. The first call makes it.
var built = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "writ-system-") })

// released builds the binary that is released. faulty builds the test binary of cmd/writ, which is
// the same program with the faults of main_test.go.
var (
	released = sync.OnceValues(func() (string, error) { return build("released", "build", "-ldflags=-w") })
	faulty   = sync.OnceValues(func() (string, error) { return build("faulty", "test", "-c", "-ldflags=-w") })
)

// build builds cmd/writ in the directory dir. The binary is called writ: the test binary acts as
// writ only under that name. If coverage is measured, each process writes its coverage to
// GOCOVERDIR.
func build(dir string, args ...string) (string, error) {
	root, err := built()
	if err != nil {
		return "", err
	}
	writ := filepath.Join(root, dir, "writ")
	args = append(args, "-buildvcs=false", "-o", writ)
	if testing.CoverMode() != "" {
		args = append(args, "-cover", "-coverpkg=writ/...")
	}
	if out, err := exec.Command("go", append(args, "writ.example/writ/cmd/writ")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building writ: %w\n%s", err, out)
	}
	return writ, nil
}

// Main runs the tests and removes the binaries that they have built. Tests wait more than they compute, so three of
// them that are parallel run at once.
func Main(m *testing.M) {
	flag.Parse()
	code := 1
	if err := flag.Set("test.parallel", strconv.Itoa(max(3, runtime.GOMAXPROCS(0)))); err == nil {
		code = m.Run()
	}
	if dir, err := built(); err == nil {
		err = os.RemoveAll(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// command returns a command for a verb of the real binary. The command ends with the test.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	writ, err := released()
	must(t, err)
	return exec.CommandContext(t.Context(), writ, args...)
}

// output runs a command and returns its output and exit code.
func output(t testing.TB, cmd *exec.Cmd) (out, stderr string, code int) {
	t.Helper()
	var stdout, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return stdout.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// run runs a verb and returns its exit code and output.
func run(t testing.TB, args ...string) (code int, said string) {
	t.Helper()
	out, stderr, code := output(t, command(t, args...))
	return code, out + stderr
}

// wantCode runs a verb and returns its output. It fails the test unless the verb ends with the
// wanted exit code.
func wantCode(t testing.TB, want int, args ...string) string {
	t.Helper()
	code, said := run(t, args...)
	if code != want {
		t.Fatalf("writ %s = exit code %d, want %d\n%s", args, code, want, said)
	}
	return said
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
