package system

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// haproxyPackages are the packages of HAProxy and of the libraries that not every system has.
var haproxyPackages = []string{"haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"}

// authority is one that signed certificates. Nil has the system's authorities.
type authority struct {
	file  string
	certs *x509.CertPool
}

func (a *authority) pool() *x509.CertPool {
	if a == nil {
		return nil
	}
	return a.certs
}

// balancerCA is the authority of the last HAProxy that was started. Senders trust it.
var balancerCA atomic.Pointer[authority]

// balancerCertificates makes the certificates of HAProxy as deploy/haproxy/certificates does, and returns their
// directory.
func balancerCertificates(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED: there is no openssl to make HAProxy's certificate")
	}
	dir := t.TempDir()
	if out, err := exec.Command("../../deploy/haproxy/certificates", dir, "writ.example.com", "10.0.0.7").CombinedOutput(); err != nil {
		t.Fatalf("deploy/haproxy/certificates = %v\n%s", err, out)
	}
	ca := &authority{filepath.Join(dir, "ca.pem"), x509.NewCertPool()}
	text, err := os.ReadFile(ca.file)
	must(t, err)
	if !ca.certs.AppendCertsFromPEM(text) {
		t.Fatal("ca.pem has no certificate")
	}
	balancerCA.Store(ca)
	return dir
}

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
		"/usr/local/etc/haproxy/errors", errorFiles, "/usr/local/etc/haproxy/tls", balancerCertificates(t),
		"bind :3820", "bind "+api, "bind :8405", "bind "+metrics, "check port 3821", "check",
		"writ1:3820", hostOf(writ1.url)+" port "+port(writ1.admin), "writ2:3820", hostOf(writ2.url)+" port "+port(writ2.admin),
	).Replace(change(string(text)))
	name := filepath.Join(t.TempDir(), "haproxy.cfg")
	must(t, os.WriteFile(name, []byte(config), 0o600))
	cmd = program.command(context.Background(), "-f", name)
	startProgram(t, cmd, out)
	waitFor(t, "HAProxy to find a replica ready", func() bool {
		got, err := newSender(t, "", 1).send(http.MethodGet, "https://"+api+"/health", nil)
		return err == nil && got.status == http.StatusOK
	})
	return "https://" + api, metrics, cmd
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
func hostOf(base string) string {
	_, host, _ := strings.Cut(base, "://")
	return host
}
