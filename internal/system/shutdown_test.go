package system

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestShutdown_FinishesWhatItAccepted sends SIGTERM while the server has read parts of requests.
// These requests must be answered and be in the history.
func TestShutdown_FinishesWhatItAccepted(t *testing.T) {
	const requests = 8
	p, data, token := deployed(t)

	conns := make([]*halfSent, requests)
	for i := range conns {
		conns[i] = sendHalf(t, p.url, token, newIntent("bot", "deploy", fmt.Sprintf("k8s/staging/%d", i)))
	}
	p.terminate(t)
	waitFor(t, "the server to refuse connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			_ = c.Close() // closing may fail
		}
		return err != nil
	})
	answers := make(map[string]string)
	for _, c := range conns {
		answers[c.in.id] = c.finish(t)
	}
	p.ended(t)

	p = start(t, data)
	rows := history(t, p.url, token)
	p.stop(t)
	if len(rows) != requests {
		t.Errorf("history has %d rows, want %d", len(rows), requests)
	}
	auditAnswers(t, data, answers, rows)
	auditStore(t, data, rows)
}

// TestShutdown_DrainTimeout checks an endless request at the shutdown. It must not delay the exit
// for longer than --drain-timeout.
func TestShutdown_DrainTimeout(t *testing.T) {
	p, _, token := deployed(t, "--drain-timeout", "200ms")
	sendHalf(t, p.url, token, newIntent("bot", "deploy", "k8s/staging/web"))
	p.terminate(t)
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("writ serve = %v, want exit code %d: not all was finished\n%s", p.cmd.ProcessState, exitFailed, p.stderr)
	}
}

// TestShutdown_DoesNotWaitForWhoSentNothing checks that an unused connection does not delay the
// shutdown.
func TestShutdown_DoesNotWaitForWhoSentNothing(t *testing.T) {
	data, token := newData(t)
	p := start(t, data, "--drain-timeout", "5s")
	spare, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	must(t, err)
	defer spare.Close()
	register(t, p.url, token) // over another connection, which is accepted later
	p.stop(t)
}

// halfSent is a request of which only the head and the first half of the body were sent.
type halfSent struct {
	in   intent
	conn net.Conn
}

// sendHalf sends the head of a request and returns once the server has asked for the body. At that
// moment the server has accepted the request.
func sendHalf(t *testing.T, url, token string, in intent) *halfSent {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	c := &halfSent{in: in, conn: conn}
	c.write(t, fmt.Sprintf("POST /v1/policy/evaluate HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", host, token, len(in.body)))
	if status, body := c.read(t); status != http.StatusContinue {
		t.Fatalf("head of a request with Expect: 100-continue = %d %s, want 100", status, body)
	}
	c.write(t, string(in.body[:len(in.body)/2]))
	return c
}

// finish sends the second half of the body and returns the body of the answer.
func (c *halfSent) finish(t *testing.T) string {
	t.Helper()
	c.write(t, string(c.in.body[len(c.in.body)/2:]))
	status, body := c.read(t)
	if status != http.StatusOK {
		t.Errorf("evaluate %s, finished after SIGTERM = %d %s, want 200", c.in.id, status, body)
	}
	return body
}

func (c *halfSent) write(t *testing.T, s string) {
	t.Helper()
	if _, err := io.WriteString(c.conn, s); err != nil {
		t.Fatal(err)
	}
}

func (c *halfSent) read(t *testing.T) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return resp.StatusCode, string(body)
}
