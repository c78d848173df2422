package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestLines_Read reads bodies to their ends. Each end has its error, and only a whole body ends with io.EOF.
func TestLines_Read(t *testing.T) {
	const chunked = -1
	for name, tc := range map[string]struct {
		length int64
		sent   string
		stays  bool // the client sends no more, but stays
		limits PeerLimits
		lines  []string
		err    error
	}{
		"a length":         {length: 7, sent: "a\r\n\n\nbb", lines: []string{"a", "bb"}, err: io.EOF},
		"chunks":           {length: chunked, sent: "3\r\na\nb\r\n2\r\nb\n\r\n0\r\n\r\n", lines: []string{"a", "bb"}, err: io.EOF},
		"no body":          {err: io.EOF},
		"a cut length":     {length: 8, sent: "a\nbb\n", lines: []string{"a", "bb"}, err: io.ErrUnexpectedEOF},
		"a cut chunk":      {length: chunked, sent: "8\r\na\nbb\n", lines: []string{"a", "bb"}, err: io.ErrUnexpectedEOF},
		"no last chunk":    {length: chunked, sent: "2\r\na\n\r\n", lines: []string{"a"}, err: io.ErrUnexpectedEOF},
		"a long line":      {length: 1 << 20, sent: "a\n" + strings.Repeat("x", 10_001) + "\n", lines: []string{"a"}, err: ErrTooLong},
		"a long last line": {length: 10_001, sent: strings.Repeat("x", 10_001), err: ErrTooLong},
		"a line of CRs":    {length: 20_001, sent: strings.Repeat("\r", 20_000) + "\n", err: ErrTooLong},
		"no text":          {length: 5, sent: "a\n\xff\nb", lines: []string{"a"}, err: ErrNoText},
		"empty lines":      {length: 1000, sent: "a\n" + strings.Repeat("\n", 998), lines: []string{"a"}, err: ErrSignals},
		"a slow line": {length: 9, sent: "a\nb", stays: true, limits: PeerLimits{Message: time.Millisecond},
			lines: []string{"a"}, err: ErrSlow},
		"silence": {length: 9, sent: "a\n", stays: true, limits: PeerLimits{Idle: time.Millisecond}, lines: []string{"a"}, err: ErrSilent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := net.Pipe()
			defer client.Close()
			defer server.Close()
			go func() {
				_, _ = io.WriteString(client, tc.sent) // the server may read a part
				if !tc.stays {
					_ = client.Close()
				}
			}()
			limits := PeerLimits{Bytes: 10_000, Message: time.Minute, Idle: time.Minute}
			l := &Lines{peer: peer{conn: server, PeerLimits: limits}, body: bufio.NewReader(bodyOf(server, tc.length))}
			var got []string
			for {
				line, err := l.Read()
				if err != nil {
					if !errors.Is(err, tc.err) {
						t.Errorf("after %q the error is %v, want %v", got, err, tc.err)
					}
					break
				}
				got = append(got, string(line))
				if len(got) == len(tc.lines) { // the deadline that the test is about
					if tc.limits.Message > 0 {
						l.Message = tc.limits.Message
					}
					if tc.limits.Idle > 0 {
						l.Idle = tc.limits.Idle
					}
				}
			}
			if !slices.Equal(got, tc.lines) {
				t.Errorf("the lines are %q, want %q", got, tc.lines)
			}
		})
	}
}

// TestLines_OnWait checks that lines that have arrived together are read without a call between them, and that there
// is a call before each read of the connection.
func TestLines_OnWait(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	defer server.Close()
	conn := &Conn{Conn: server}
	l := &Lines{
		peer: peer{conn: conn, PeerLimits: PeerLimits{Bytes: 1000, Message: time.Minute, Idle: time.Minute}},
		body: bufio.NewReaderSize(conn, peerBuffer),
	}
	go func() {
		for _, sent := range []string{"a\nb\nc", "\nd\n"} { // each is one read
			if _, err := io.WriteString(client, sent); err != nil {
				t.Error(err)
			}
		}
	}()
	var calls []string
	if !l.OnWait(func() { calls = append(calls, "waits") }) {
		t.Fatal("OnWait = false for a connection of a listener")
	}
	for range 4 {
		line, err := l.Read()
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, string(line))
	}
	if want := []string{"waits", "a", "b", "waits", "c", "d"}; !slices.Equal(calls, want) {
		t.Errorf("the calls and lines are %q, want %q", calls, want)
	}
	if (&Lines{peer: peer{conn: server}}).OnWait(func() {}) {
		t.Error("OnWait = true for another connection")
	}
}

// TestLines_Continue checks that a client that expects the answer 100 gets it on a connection whose last answer was
// long ago, so that the deadline for writing has passed.
func TestLines_Continue(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	defer server.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(server.SetWriteDeadline(time.Unix(1, 0)))
	must(client.SetReadDeadline(time.Now().Add(time.Minute)))
	const head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n"
	var fc fasthttp.RequestCtx
	fc.Init2(server, nil, false)
	must(fc.Request.Header.Read(bufio.NewReader(strings.NewReader(head))))
	go func() {
		OpenLines(&fc, PeerLimits{Write: time.Minute}, func(*Lines) {})
		_ = server.Close()
	}()
	got, err := io.ReadAll(client)
	if want := "HTTP/1.1 100 Continue\r\n\r\n"; string(got) != want || err != nil {
		t.Errorf("the client gets %q, %v, want %q", got, err, want)
	}
}

func TestLines_Framing(t *testing.T) {
	for raw, want := range map[string]struct {
		length  int64
		expects bool
	}{
		"Host: h\r\n":                                      {},
		"content-length: 12\r\nHost: h\r\n":                {length: 12},
		"Host: h\r\nTransfer-Encoding: chunked\r\n":        {length: -1},
		"EXPECT: 100-Continue\r\nContent-Length:7\r\n\r\n": {length: 7, expects: true},
	} {
		if length, expects := framing([]byte(raw)); length != want.length || expects != want.expects {
			t.Errorf("framing(%q) = %d, %t, want %+v", raw, length, expects, want)
		}
	}
}
