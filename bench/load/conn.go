package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
)

// conn is a connection that carries one request at a time.
type conn struct {
	composer
	head     *form  // the header of a request, up to its length
	key      []byte // the API key, as a part of head
	request  []byte // the last request
	begins   int    // where its body begins
	wants    []want // the decisions that its intents must get
	net      net.Conn
	read     *bufio.Reader
	body     []byte // the body of the last answer
	discards bool   // whether bodies are discarded
	deadline time.Time
}

func dial(ctx context.Context, t *Target, sent *atomic.Int64) (*conn, error) {
	c := &conn{composer: newComposer(t, sent)}
	var b bytes.Buffer
	method := http.MethodPost
	if len(c.forms) == 0 {
		method = http.MethodGet
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, t.URL.RequestURI(), t.URL.Host)
	at, size := 0, 0
	if len(t.Callers) > 0 && t.Callers[0].Key != "" {
		b.WriteString("Authorization: Bearer ")
		at, size = b.Len(), len(t.Callers[0].Key)
		b.WriteString(t.Callers[0].Key + "\r\n")
	}
	_ = t.Header.Write(&b) // a buffer takes everything
	if len(c.forms) > 0 {
		b.WriteString("Content-Type: application/json\r\nContent-Length: ")
	}
	c.head = newForm(b.Bytes(), want{})
	c.key = c.head.text[at : at+size]
	return c, c.connect(ctx)
}

// connect opens the connection. If the connection is open, connect closes it first.
func (c *conn) connect(ctx context.Context) (err error) {
	c.close()
	if c.net, err = c.target.connect(ctx); err == nil {
		c.read = bufio.NewReaderSize(c.net, 4<<10)
	}
	return err
}

// connect opens a connection to t, with TLS if the URL says so.
func (t *Target) connect(ctx context.Context) (net.Conn, error) {
	inner, err := t.dial(ctx)
	if err != nil || t.URL.Scheme != "https" {
		return inner, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.TLS != nil {
		config = t.TLS.Clone()
	}
	config.ServerName, config.NextProtos = t.URL.Hostname(), []string{"http/1.1"}
	secure := tls.Client(inner, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return secure, nil
}

func (t *Target) dial(ctx context.Context) (net.Conn, error) {
	port := t.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[t.URL.Scheme]
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(t.URL.Hostname(), port))
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // the error does not matter, because everything has been read
	}
}

// ask sends a request of a random caller, with new intent ids, and reads the answer.
func (c *conn) ask() (answer, error) {
	caller := c.caller(c.target.Callers)
	if caller != nil {
		copy(c.key, caller.Key)
	}
	c.compose(caller)
	a, err := c.exchange(c.request)
	if err == nil && a.status == http.StatusOK {
		err = c.target.check(&a.got, c.body, c.wants)
	}
	if err != nil || a.status != http.StatusOK || !c.target.Approves || a.got.mismatched > 0 {
		return a, err
	}
	return c.approve(caller)
}

// exchange sends a request and reads the answer.
func (c *conn) exchange(request []byte) (answer, error) {
	if !c.deadline.IsZero() {
		_ = c.net.SetDeadline(c.deadline) // the connection is open, so this does not fail
	}
	if _, err := c.net.Write(request); err != nil {
		return answer{}, err
	}
	return c.response()
}

// decisionID matches the member of a result.
var decisionID = regexp.MustCompile(`,"decision_id":"([0-9a-f-]{36})"`)

// approve approves the intent that the last answer holds, and sends it again.
func (c *conn) approve(by *Caller) (answer, error) {
	id := decisionID.FindSubmatch(c.body)
	if id == nil {
		return answer{}, fmt.Errorf("an answer without a decision_id: %.300s", c.body)
	}
	const verdict = `{"status":"approved"}`
	request := fmt.Appendf(nil, "PATCH /v1/approvals/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id[1], c.target.URL.Host, by.Approver,
		len(verdict), verdict)
	again := fmt.Appendf(nil, `{"approval_id":"%s",%s`, id[1], c.request[c.begins+1:])
	a, err := c.exchange(request)
	if err != nil || a.status != http.StatusOK {
		return a, err
	}
	request = fmt.Appendf(append(request[:0], c.head.text...), "%d\r\n\r\n%s", len(again), again)
	if a, err = c.exchange(request); err == nil && a.status == http.StatusOK {
		err = c.target.check(&a.got, c.body, []want{{decision: "allow", name: "an approved intent"}})
	}
	return a, err
}

// compose writes the next request.
func (c *conn) compose(by *Caller) {
	c.fill(c.head, by)
	c.request, c.wants = append(c.request[:0], c.head.text...), c.wants[:0]
	if len(c.forms) == 0 {
		c.request = append(c.request, "\r\n"...)
		return
	}
	c.body, c.wants = c.composer.body(c.body[:0], c.wants, by)
	c.request = strconv.AppendInt(c.request, int64(len(c.body)), 10)
	c.request = append(c.request, "\r\n\r\n"...)
	c.begins = len(c.request)
	c.request = append(c.request, c.body...)
}

// answer is the answer to a request.
type answer struct {
	status     int
	size       int           // the size of the body
	retryAfter time.Duration // 0 if the answer has none
	body       []byte        // valid until the next answer
	got        tally
}

// response reads a response.
func (c *conn) response() (a answer, err error) {
	line, err := c.read.ReadSlice('\n')
	if err != nil {
		return answer{}, err
	}
	if len(line) < 12 {
		return answer{}, fmt.Errorf("status line %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return answer{}, err
	}
	if a.size, a.retryAfter, err = c.header(); err != nil {
		return answer{}, err
	}
	if a.size < 0 {
		err = c.chunks()
	} else {
		err = c.take(a.size)
	}
	if err != nil {
		return answer{}, err
	}
	a.size, a.body = len(c.body), c.body
	return a, nil
}

// take reads the next size bytes as the body.
func (c *conn) take(size int) error {
	c.body = c.body[:0]
	return c.more(size)
}

// more reads the next size bytes and appends them to the body.
func (c *conn) more(size int) error {
	if c.discards {
		_, err := c.read.Discard(size)
		return err
	}
	at := len(c.body)
	c.body = append(c.body, make([]byte, size)...)
	_, err := io.ReadFull(c.read, c.body[at:])
	return err
}

// chunks reads a body that is sent in chunks.
func (c *conn) chunks() error {
	for c.body = c.body[:0]; ; {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		if err := c.more(int(size)); err != nil {
			return err
		}
		if _, err := c.read.Discard(len("\r\n")); err != nil || size == 0 {
			return err
		}
	}
}

// header reads the rest of a response's header. For a body in chunks, size is -1.
func (c *conn) header() (size int, retryAfter time.Duration, err error) {
	size, chunked := -1, false
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if size, err = strconv.Atoi(string(value)); err != nil {
				return 0, 0, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Retry-After")):
			seconds, err := strconv.Atoi(string(value))
			if err != nil {
				return 0, 0, err
			}
			retryAfter = time.Duration(seconds) * time.Second
		}
	}
	if size < 0 && !chunked {
		return 0, 0, errors.New("response without Content-Length")
	}
	return size, retryAfter, nil
}
