package system

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSlowClients opens hundreds of connections that make the server wait in every possible way.
// Meanwhile a normal client sends requests. The server must close each slow connection, even while
// bytes arrive. No request of the normal client may fail.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits for the server's timeouts of 10 s")
	}
	p, _, operator := deployed(t, "--rate-limit-address", "off", manyEvaluations(t))

	attack := attackers{t: t, addr: strings.TrimPrefix(p.url, "http://")}
	attack.open(100, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	attack.open(100, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{")
	attack.open(50, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n")
	attack.open(50, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\nExpect: 100-continue\r\n\r\n")
	attack.open(50, strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 300))
	attack.open(50, "")
	over := make(chan struct{})
	go func() {
		attack.running.Wait()
		close(over)
	}()

	honest := newSender(t, operator, 4)
	answered, deadline := 0, time.After(2*patience)
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-deadline:
			t.Fatalf("%d slow connections are still open after %v", attack.left.Load(), 2*patience)
		default:
		}
		honest.decide(t, p.url, newIntent("bot", "deploy", "prod/web"))
		answered++
	}
	t.Logf("%d honest requests were answered during the attack", answered)
	if status, _ := get(t, p.url+"/health"); status != http.StatusOK {
		t.Errorf("GET /health = %d, want 200", status)
	}
	p.stop(t)
}

// attackers are connections that send slowly and read nothing.
type attackers struct {
	t       *testing.T
	addr    string
	running sync.WaitGroup
	left    atomic.Int64
}

// open opens n connections. Each connection sends opening, and then single bytes until the server
// closes the connection.
func (a *attackers) open(n int, opening string) {
	for range n {
		c, err := net.Dial("tcp", a.addr)
		must(a.t, err)
		a.t.Cleanup(func() { c.Close() })
		must(a.t, c.(*net.TCPConn).SetReadBuffer(4<<10))
		if _, err := io.WriteString(c, opening); err != nil {
			a.t.Fatal(fmt.Errorf("opening an attack: %w", err))
		}
		a.left.Add(1)
		a.running.Go(func() {
			defer a.left.Add(-1)
			for {
				time.Sleep(100 * time.Millisecond)
				if _, err := io.WriteString(c, "a"); err != nil {
					return
				}
			}
		})
	}
}
