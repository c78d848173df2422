//go:build linux

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ.example/writ/bench/load"
)

// TestMain lets the test binary act as a server that is started by a launcher, and as an MCP server.
func TestMain(m *testing.M) {
	if addr := os.Getenv("BENCH_TEST_SERVER"); addr != "" {
		serveUntilKilled(addr)
	}
	if os.Getenv("BENCH_TEST_MCP") != "" {
		serveMCP()
	}
	os.Exit(m.Run())
}

// TestServe_ALaunchersServer checks a peer that is a launcher, as Cerbos from npm is: the launcher
// starts the server and waits for it. The processor time of the server is found, and stop ends
// both.
func TestServe_ALaunchersServer(t *testing.T) {
	launcher := filepath.Join(t.TempDir(), "launcher")
	// A shell would become its last command, so that is not the server.
	must(t, os.WriteFile(launcher, []byte("#!/bin/sh\nBENCH_TEST_SERVER=$1 "+os.Args[0]+" &\nwait\nexit 0\n"), 0o700))
	s, err := Peers{}.serve(t.Context(), &Subject{About: About{Name: "launched"}, target: &load.Target{URL: &url.URL{}}}, "policy", nil,
		func(addr, _ string) []string { return []string{launcher, addr} })
	must(t, err)
	if len(s.group) != 1 {
		t.Errorf("the processes beside the launcher are %v, want the server", s.group)
	}
	before, err := s.spent(t.Context())
	must(t, err)
	for range 200 {
		if !answers(t.Context(), s.target.URL.Host) {
			t.Fatal("the server does not answer")
		}
	}
	if after, err := s.spent(t.Context()); err != nil || after <= before {
		t.Errorf("200 requests took %v of the processor, %v", after-before, err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	select {
	case err := <-stopped:
		must(t, err)
	case <-time.After(stopPatience / 2):
		t.Fatal("stop waits for a server that it has not told to stop")
	}
	if answers(context.Background(), s.target.URL.Host) {
		t.Error("the server answers after stop")
	}
}

// TestStop_KillsWhatIgnoresIt checks that stop ends a server that ignores SIGTERM.
func TestStop_KillsWhatIgnoresIt(t *testing.T) {
	launcher := filepath.Join(t.TempDir(), "launcher")
	must(t, os.WriteFile(launcher, []byte("#!/bin/sh\ntrap '' TERM\nBENCH_TEST_SERVER=$1 "+os.Args[0]+"\nsleep 60\n"), 0o700))
	addr, err := freeAddress()
	must(t, err)
	p, err := startProcess(t.Context(), addr, nil, nil, launcher, addr)
	must(t, err)
	if err := p.stopWithin(100 * time.Millisecond); err == nil || errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop = %v, want that the server did not end by itself", err)
	}
	if answers(context.Background(), addr) {
		t.Error("the server answers after stop")
	}
}

// serveUntilKilled serves at addr and does not return.
func serveUntilKilled(addr string) {
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, http.NotFoundHandler())) //nolint:gosec // a test's server
	os.Exit(1)
}
