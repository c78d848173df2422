package system

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// haproxyPackages are the packages of HAProxy and of the libraries that not every system has.
var haproxyPackages = []string{"haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"}

// startHAProxy starts HAProxy with deploy/haproxy/haproxy.cfg in front of two replicas. Only
// the addresses differ.
func startHAProxy(t *testing.T, program debian, writ1, writ2 *process) (api, metrics string, cmd *exec.Cmd) {
	t.Helper()
	return startHAProxyWith(t, program, writ1, writ2, t.Output(), func(config string) string { return config })
}

// startHAProxyWith is like startHAProxy, with a change of the configuration. It writes the log
// of HAProxy to out.
func startHAProxyWith(t *testing.T, program debian, writ1, writ2 *process, out io.Writer, change func(string) string) (api, metrics string, cmd *exec.Cmd) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/haproxy/haproxy.cfg")
	must(t, err)
	api, metrics = freeAddr(t), freeAddr(t)
	port := func(base string) string { return base[strings.LastIndex(base, ":")+1:] }
	errorFiles, err := filepath.Abs("../../deploy/haproxy/errors")
	must(t, err)
	config := strings.NewReplacer(
		"/usr/local/etc/haproxy/errors", errorFiles,
		"bind :3820", "bind "+api, "bind :8405", "bind "+metrics, "check port 3821", "check",
		"writ1:3820", hostOf(writ1.url)+" port "+port(writ1.admin), "writ2:3820", hostOf(writ2.url)+" port "+port(writ2.admin),
	).Replace(change(string(text)))
	name := filepath.Join(t.TempDir(), "haproxy.cfg")
	must(t, os.WriteFile(name, []byte(config), 0o600))
	cmd = program.command(context.Background(), "-f", name)
	startProgram(t, cmd, out)
	waitFor(t, "HAProxy to find a replica ready", func() bool {
		resp, err := http.Get("http://" + api + "/health")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return "http://" + api, metrics, cmd
}

// startProgram starts a program that is killed at the end of the test. Its output goes to out.
func startProgram(t *testing.T, cmd *exec.Cmd, out io.Writer) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = out, out
	must(t, cmd.Start())
	t.Cleanup(func() { killProgram(cmd) })
}

// killProgram ends a program as kill -9 does, unless the program has ended already.
func killProgram(cmd *exec.Cmd) {
	if err := cmd.Process.Kill(); err == nil {
		_ = cmd.Wait() // it was killed
	}
}

// freeAddr returns an address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// hostOf returns the host and port of a URL, in the form in which Prometheus names targets.
func hostOf(base string) string { return strings.TrimPrefix(base, "http://") }
