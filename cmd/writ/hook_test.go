package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
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
