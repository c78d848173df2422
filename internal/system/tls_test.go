package system

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/tlsfiles/tlstest"
)

// overTLS returns a sender that trusts an authority.
func overTLS(t *testing.T, token string, by *tlstest.Authority, own ...tls.Certificate) sender {
	s := newSender(t, token, 4)
	s.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: by.Pool, Certificates: own}
	return s
}

// TestTLS serves both addresses by certificates that are replaced while it serves.
func TestTLS(t *testing.T) {
	first, second := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	soon := time.Now().Add(time.Hour)
	cert, key := first.Certificate(soon)
	data, token := newData(t)
	p := start(t, data, "--tls-cert", cert, "--tls-key", key, "--demo")
	if !strings.HasPrefix(p.url, "https://127.0.0.1:") || !strings.HasPrefix(p.admin, "https://127.0.0.1:") {
		t.Fatalf("it serves on %s and %s, want https", p.url, p.admin)
	}
	client{overTLS(t, token, first), p.url}.do(t, http.MethodGet, "/v1/policies", nil, http.StatusOK, nil)
	if got, err := overTLS(t, "", first).send(http.MethodGet, p.admin+"/readyz", nil); err != nil || got.status != http.StatusOK {
		t.Errorf("readyz = %d, %v", got.status, err)
	}
	for _, base := range []string{p.url, p.admin} {
		status, body := get(t, strings.Replace(base, "https:", "http:", 1)+"/health")
		if status != http.StatusBadRequest || !strings.Contains(body, "https://") {
			t.Errorf("GET over plain HTTP = %d %q, want a 400 that names https", status, body)
		}
	}
	// The command line trusts whom --ca names.
	if out, stderr, code := output(t, command(t, "status", "--url", p.url, "--api-key", token, "--ca", first.File)); code != exitOK {
		t.Errorf("writ status --ca exits %d: %s%s", code, out, stderr)
	}
	_, said, _ := output(t, command(t, "status", "--url", "http://"+hostOf(p.url), "--api-key", token))
	if !strings.Contains(said, "speaks https") {
		t.Errorf("writ status over plain HTTP says %s, want that the server speaks https", said)
	}

	// A connection that is open goes on, and later ones get the new certificate.
	open := overTLS(t, token, first)
	ask := func(s sender) error {
		got, err := s.send(http.MethodGet, p.url+"/health", nil)
		if err == nil && got.status != http.StatusOK {
			t.Errorf("health = %d", got.status)
		}
		return err
	}
	must(t, ask(open))
	broken, whole := []byte("no certificate"), [2]string{}
	whole[0], whole[1] = second.Certificate(soon)
	must(t, os.WriteFile(cert, broken, 0o600))
	p.hangUp(t, "nothing was changed")
	if err := ask(overTLS(t, token, first)); err != nil {
		t.Errorf("after a broken file: %v", err)
	}
	for i, file := range []string{cert, key} {
		text, err := os.ReadFile(whole[i])
		must(t, err)
		must(t, os.WriteFile(file, text, 0o600))
	}
	p.hangUp(t, "the settings were read again: ")
	for _, s := range []sender{open, overTLS(t, token, second)} {
		if err := ask(s); err != nil {
			t.Errorf("after the new certificate: %v", err)
		}
	}
	if err := ask(overTLS(t, token, first)); err == nil {
		t.Error("a new connection still gets the old certificate")
	}
	p.stop(t)
}

// TestTLS_UnknownAuthority has each verb that calls a server call one whose authority nobody here trusts. It must name
// the flag that is missing. With another certificate's authority it is the same, and another mistake names no flag.
func TestTLS_UnknownAuthority(t *testing.T) {
	t.Parallel()
	a, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := a.Certificate(time.Now().Add(time.Hour))
	data, token := newData(t)
	p := start(t, data, "--tls-cert", cert, "--tls-key", key, "--backup-dir", t.TempDir())
	const (
		set    = "../../examples"
		intent = set + "/intents/payments/refund-small.json"

		untold, blocked, undecided = 2, 2, 4 // exit codes of their verbs
	)
	api := []string{"--url", p.url, "--api-key", token}
	plug := append([]string{"--policy-id", "018f3e2a-0000-7000-8000-000000000000", "--state", "DIR/state"}, api...)
	with := func(args []string, more ...string) []string { return append(slices.Clone(more), args...) }
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitFailed, with(api, "status")},
		{exitFailed, with(api, "status", "--ca", other.File)},
		{exitFailed, with(api, "usage")},
		{exitFailed, with(api, "pull", "DIR/pulled")},
		{untold, with(api, "diff", set+"/policies")},
		{exitFailed, with(api, "push", set+"/policies")},
		{exitFailed, with(api, "history", "tail")},
		{exitFailed, with(api, "history", "tail", "--follow")},
		{exitFailed, with(api, "history", "show", "018f3e2a-0000-7000-8000-000000000000")},
		{exitFailed, with(api, "approvals", "list")},
		{exitFailed, with(api, "agent", "list")},
		{exitFailed, with(api, "stop")},
		{exitFailed, with(api, "api-key", "list")},
		{exitFailed, with(api, "export", "--org", "acme", "-o", "DIR/export")},
		{exitFailed, with(api, "suite-from-history")},
		{exitFailed, with(api, "doctor")},
		{exitInvalid, with(api, "verify", "--chain", "--keys", data.JWKS())},
		{exitFailed, []string{"verify", "--keys", p.url + "/.well-known/jwks.json", intent}},
		{undecided, with(api, "decide", "--intent", intent)},
		{blocked, with(plug, "hook", "claude")},
		{exitFailed, []string{"console", "--url", p.url, "--addr", "127.0.0.1:0"}},
		{exitFailed, []string{"login", "--url", p.url}},
		{exitFailed, []string{"mcp", "pin", "--server", "s", "--upstream", p.url + "/mcp", "--pin", "DIR/pin"}},
		{exitFailed, []string{"doctor", "--admin-url", p.admin}},
		{exitFailed, []string{"backup", "one", "--admin-url", p.admin}},
		{exitFailed, []string{"debug", "bundle", "--admin-url", p.admin, "-o", "DIR/bundle"}},
	} {
		for i, a := range c.args {
			if strings.HasPrefix(a, "DIR/") {
				c.args[i] = t.TempDir() + strings.TrimPrefix(a, "DIR")
			}
		}
		cmd := command(t, c.args...)
		cmd.Stdin = strings.NewReader(token)
		if c.args[0] == "hook" {
			cmd.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"session_id":"s","cwd":"/"}`)
		}
		out, stderr, code := output(t, cmd)
		if said := out + stderr; code != c.code || strings.Count(said, "certificates by --ca or WRIT_CA") != 1 {
			t.Errorf("writ %v exits %d, want %d, and says\n%s\nwant once that --ca names certificates", c.args, code, c.code, said)
		}
	}
	elsewhere := strings.Replace(p.url, "127.0.0.1", "127.0.0.2", 1)
	_, stderr, _ := output(t, command(t, "status", "--url", elsewhere, "--ca", a.File))
	if strings.Contains(stderr, "--ca") {
		t.Errorf("writ status at an address that the server does not have says %s", stderr)
	}
	p.stop(t)
}

// hangUp sends SIGHUP and waits until the log says text.
func (p *process) hangUp(t *testing.T, text string) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGHUP))
	for deadline := time.Now().Add(patience); !strings.Contains(p.stderr.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q after SIGHUP:\n%s", text, p.stderr)
		}
	}
}

// TestTLS_ClientsWithCertificates serves only clients of an authority, on both addresses. The demo calls the server from
// within.
func TestTLS_ClientsWithCertificates(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Certificate(time.Now().Add(time.Hour))
	data, token := newData(t)
	p := start(t, data, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", theirs.File, "--demo")
	for _, path := range []string{p.url + "/health", p.admin + "/livez"} {
		if got, err := overTLS(t, token, ours, theirs.Pair()).send(http.MethodGet, path, nil); err != nil || got.status != http.StatusOK {
			t.Errorf("GET %s with a certificate = %d, %v", path, got.status, err)
		}
		for _, own := range [][]tls.Certificate{nil, {ours.Pair()}} {
			if got, err := overTLS(t, token, ours, own...).send(http.MethodGet, path, nil); err == nil {
				t.Errorf("GET %s with %d certificates of others = %d", path, len(own), got.status)
			}
		}
	}
	p.stop(t)
}

// TestTLS_BadHandshakes checks that clients that speak nonsense, stop in the middle or send nothing do not disturb others.
func TestTLS_BadHandshakes(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Certificate(time.Now().Add(time.Hour))
	data, token := newData(t)
	p := start(t, data, "--tls-cert", cert, "--tls-key", key)
	for i := range 200 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "https://"))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		switch i % 4 {
		case 0:
			_, _ = io.WriteString(conn, "\x16\x03\x01\x02\x00\x01")
		case 1:
			_, _ = io.WriteString(conn, strings.Repeat("\xff", 1<<14))
		case 2:
			_, _ = io.WriteString(conn, "\x16\x03\x01\xff\xff"+strings.Repeat("a", 100))
			must(t, conn.Close())
		}
	}
	client{overTLS(t, token, a), p.url}.do(t, http.MethodGet, "/v1/policies", nil, http.StatusOK, nil)
	p.stop(t)
}
