package system

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/examples"
)

// lastChunk is the end of a complete response in chunks (RFC 9112, section 7.1).
const lastChunk = "\r\n0\r\n\r\n"

// TestExport_ShowsThatItIsCutShort checks the bytes of an export on the wire. In every way that the
// server can end, a reader must see whether the export is complete.
func TestExport_ShowsThatItIsCutShort(t *testing.T) {
	const rows = 1000 // 8 KiB each: more than the kernel buffers
	data, token := newData(t)
	flags := []string{exportingPlan(t), "--rate-limit-credential=off"}
	p := start(t, data, flags...)
	register(t, p.url, token)
	fillHistory(t, p.url, token, rows)

	whole := rest(beginExport(t, p.url, token))
	if n := bytes.Count(whole, []byte("\r\n01")); !bytes.HasSuffix(whole, []byte(lastChunk)) || n < rows {
		t.Errorf("an export = %d bytes with about %d rows that end in %q, want %d rows and %q", len(whole), n, tail(whole), rows, lastChunk)
	}

	stopped := beginExport(t, p.url, token) // a client that continues to read gets the whole export
	p.terminate(t)
	if got := rest(stopped); !bytes.HasSuffix(got, []byte(lastChunk)) {
		t.Errorf("an export while the server stops = %d bytes that end in %q, want %q", len(got), tail(got), lastChunk)
	}
	p.ended(t)

	for name, end := range map[string]func(p *process){
		"kill -9":                             func(p *process) { p.kill(t) },
		"SIGTERM while the client reads none": func(p *process) { p.terminate(t); <-p.done },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, data, append(flags, "--drain-timeout=200ms")...)
			cut := beginExport(t, p.url, token)
			end(p)
			got := rest(cut)
			if len(got) == 0 || len(got) >= len(whole) || bytes.HasSuffix(got, []byte(lastChunk)) {
				t.Errorf("%d of %d bytes, which end in %q, want a part without a last chunk", len(got), len(whole), tail(got))
			}
			res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
			must(t, err)
			if _, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("reading the response = %v, want %v", err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// fillHistory sends n intents that are decided. Each intent has the maximum number of long metadata
// keys.
func fillHistory(t *testing.T, url, token string, n int) {
	t.Helper()
	const senders = 8
	metadata := make(map[string]string)
	for i := range 64 {
		metadata[fmt.Sprintf("%02d-%s", i, strings.Repeat("k", 120))] = ""
	}
	s := newSender(t, token, senders)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range n / senders {
				in := newIntent("bot", "deploy", "k8s/staging/web")
				var body map[string]any
				err := json.Unmarshal(in.body, &body)
				if err == nil {
					body["intent"].(map[string]any)["metadata"] = metadata
					in.body, err = json.Marshal(body)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := s.evaluate(url, in); err != nil || got.status != http.StatusOK {
					t.Errorf("evaluate = %d %s, %v", got.status, got.body, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// beginExport requests an export over a connection with a small buffer. It returns after the first
// bytes.
func beginExport(t *testing.T, url, token string) unreadConn {
	t.Helper()
	small := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(err, set)
	}}
	c, err := small.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(c, "GET /v1/authorizations/export HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
		examples.Organization, token)
	must(t, err)
	begun := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, begun); err != nil || string(begun) != "HTTP/1.1 200" {
		t.Fatalf("the export begins with %q, %v, want a 200", begun, err)
	}
	return unreadConn{c, begun}
}

// unreadConn is a connection of which only the bytes in begun were read.
type unreadConn struct {
	net.Conn
	begun []byte
}

// rest reads until the connection ends, normally or not, and returns the read bytes.
func rest(c unreadConn) []byte {
	got, _ := io.ReadAll(c) // a reset ends the connection too
	return append(c.begun, got...)
}

func tail(b []byte) []byte { return b[max(0, len(b)-16):] }
