//go:build linux

package system

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/freeze"
)

// tenth divides every timeout in an HAProxy configuration by ten, so that tests are short.
func tenth(config string) string {
	return regexp.MustCompile(`(timeout (?:[a-z-]+ )?)(\d+)s\b`).ReplaceAllString(config, "${1}${2}00ms")
}

// TestBalancer_AnswersInProblems causes every error that HAProxy answers itself. Each answer must
// be a problem document. A look-up may wait longer than other requests. An evaluation is sent again
// once if a replica does not answer. Both servers of HAProxy are the same process.
func TestBalancer_AnswersInProblems(t *testing.T) {
	balancer := needDebian(t, "usr/sbin/haproxy", haproxyPackages...)
	writ, _, token := deployed(t)
	said := new(log)
	api, _, _ := startHAProxyWith(t, balancer, writ, writ, said, func(config string) string {
		// HAProxy must not mark a frozen process as down, so that requests still reach that
		// process.
		return strings.Replace(tenth(config), "fall 2", "fall 10000", 1)
	})
	c := newClient(t, api, token)

	held, err := c.evaluate(api, newIntent("other", "deploy", "k8s/staging/web"))
	must(t, err)
	var decision struct {
		ID string `json:"decision_id"`
	}
	must(t, json.Unmarshal([]byte(held.body), &decision))
	// The timeout of 30 s has become 3 s. A wait of 4 s exceeds it.
	c.do(t, http.MethodGet, "/v1/approvals/"+decision.ID+"?wait=4", nil, http.StatusOK, nil)

	problem := func(name string, got answer, err error, want int) {
		t.Helper()
		var p struct {
			Status       int
			Code, Detail string
			OK           *bool
		}
		if err != nil || got.status != want || got.contentType != "application/problem+json" ||
			json.Unmarshal([]byte(got.body), &p) != nil || p.Status != want || p.Code == "" || p.Detail == "" || p.OK == nil || *p.OK {
			t.Errorf("%s = %d %s %s, %v, want a problem document of %d", name, got.status, got.contentType, got.body, err, want)
		}
	}
	conn, err := tls.Dial("tcp", hostOf(api), &tls.Config{RootCAs: balancerCA.Load().pool()})
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: writ\r\nContent-Length: 9\r\n\r\n{")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	problem("half a request", answer{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), body: string(body)},
		errors.Join(err, resp.Body.Close()), http.StatusRequestTimeout)

	freeze.Process(t, writ.cmd.Process)
	in := newIntent("bot", "deploy", "k8s/staging/web")
	got, err := c.evaluate(api, in)
	problem("an evaluation by frozen replicas", got, err, http.StatusGatewayTimeout)
	if got.retryAfter == "" {
		t.Error("the 504 has no Retry-After")
	}
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		got, err := newSender(t, token, 1).send(http.MethodPost, api+"/v1/rules?agent=eve", []byte(`{}`))
		problem("a write that a replica took and did not answer", got, err, http.StatusBadGateway)
	}()
	time.Sleep(200 * time.Millisecond) // gives HAProxy time to forward the write; HAProxy then waits 3 s
	writ.kill(t)
	<-lost
	got, err = c.evaluate(api, in)
	problem("an evaluation without a replica", got, err, http.StatusServiceUnavailable)

	// The line has the format of option httplog. The retries are the last of five counts.
	line := regexp.MustCompile(`(?m)^.* decisions/\S+ \S+ 504 .* \d+/\d+/\d+/\d+/(\S+) .*"POST /v1/policy/evaluate HTTP/1.1"$`)
	waitFor(t, "HAProxy to log the evaluation", func() bool { return line.MatchString(said.String()) })
	if retries := line.FindStringSubmatch(said.String())[1]; retries != "+1" {
		t.Errorf("the evaluation was sent again %s times, want +1: once, to the other server", retries)
	}
	if strings.Contains(said.String(), "eve") {
		t.Errorf("the log has the query of a URL:\n%s", said)
	}
}

// TestCluster_AFrozenReplicaHoldsNoEvaluation freezes one of two replicas under load. HAProxy must
// send the frozen replica's evaluations to the other replica. Every caller must get a decision.
func TestCluster_AFrozenReplicaHoldsNoEvaluation(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	c := startTopology(t)
	answers := make([]answer, 64)
	ids := make([]intent, len(answers))
	freeze.Process(t, c.writs[0].cmd.Process)
	together(len(answers), func(i int) {
		ids[i] = newIntent("bot", "deploy", "k8s/staging/web")
		got, err := newSender(t, c.token, 1).evaluate(c.api, ids[i])
		if err != nil || got.status != http.StatusOK {
			t.Errorf("evaluate beside a frozen replica = %d %s, %v, want 200", got.status, got.body, err)
		}
		answers[i] = got
	})
	must(t, c.writs[0].cmd.Process.Signal(syscall.SIGCONT))
	byID := make(map[string]string)
	for i, in := range ids {
		byID[in.id] = answers[i].body
	}
	auditAnswers(t, c.data, byID, history(t, c.api, c.token))
}

// TestBalancer_Certificates makes HAProxy's certificates twice, as its operator does a year later, and reads them.
func TestBalancer_Certificates(t *testing.T) {
	dir := balancerCertificates(t)
	authority := readText(t, filepath.Join(dir, "ca.pem"))
	first := readText(t, filepath.Join(dir, "api.pem"))
	if out, err := exec.Command("../../deploy/haproxy/certificates", dir).CombinedOutput(); err != nil {
		t.Fatalf("the second run = %v\n%s", err, out)
	}
	if readText(t, filepath.Join(dir, "ca.pem")) != authority || readText(t, filepath.Join(dir, "api.pem")) == first {
		t.Error("the second run made another authority, or no other certificate")
	}
	for file, names := range map[string][]string{first: {"localhost", "127.0.0.1", "writ.example.com", "10.0.0.7"}, readText(t, filepath.Join(dir, "api.pem")): {"localhost"}} {
		pair, err := tls.X509KeyPair([]byte(file), []byte(file))
		must(t, err)
		for _, name := range names {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: balancerCA.Load().pool()})
			must(t, err)
		}
		if left := time.Until(pair.Leaf.NotAfter); left < 390*24*time.Hour || left > 398*24*time.Hour {
			t.Errorf("the certificate is good for %v, want 397 days", left)
		}
	}
	for _, secret := range []string{"ca.key", "api.pem"} {
		info, err := os.Stat(filepath.Join(dir, secret))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, want one for its owner alone", secret, info.Mode())
		}
	}
}

// TestBalancer_SpeaksHTTPSAlone asks HAProxy from the command line, over HTTP/2, and over plain HTTP.
func TestBalancer_SpeaksHTTPSAlone(t *testing.T) {
	balancer := needDebian(t, "usr/sbin/haproxy", haproxyPackages...)
	writ, _, token := deployed(t)
	api, _, _ := startHAProxyWith(t, balancer, writ, writ, t.Output(), func(config string) string { return config })
	if out, stderr, code := output(t, command(t, "status", "--url", api, "--api-key", token, "--ca", balancerCA.Load().file)); code != exitOK {
		t.Errorf("writ status --ca exits %d: %s%s", code, out, stderr)
	}
	if _, _, code := output(t, command(t, "status", "--url", api, "--api-key", token)); code != exitFailed {
		t.Errorf("writ status without --ca exits %d, want %d", code, exitFailed)
	}
	second := newSender(t, "", 1)
	second.http.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	resp, err := second.http.Get(api + "/health")
	must(t, err)
	must(t, resp.Body.Close())
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Errorf("GET /health = %s %d, want HTTP/2 and 200", resp.Proto, resp.StatusCode)
	}
	plain, err := http.Get(strings.Replace(api, "https:", "http:", 1) + "/health")
	if err == nil {
		must(t, plain.Body.Close())
		if plain.StatusCode < 400 {
			t.Errorf("GET over plain HTTP = %d", plain.StatusCode)
		}
	}
}
