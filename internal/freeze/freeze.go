//go:build unix

// Package freeze lets tests stop the processes that they have started.
package freeze

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// Process stops a child process by SIGSTOP, and returns when none of its threads runs any more. After the
// signal alone the process may still answer.
func Process(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("freezing a process: %v, it ended", err)
	}
}
