package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// conn is a connection with a request. Each new request is written over the last one.
type conn struct {
	target   *Target
	request  []byte
	ids      [][]byte // the intent ids, as parts of request
	policies [][]byte // the policy ids, as parts of request
	key      []byte   // the API key, as a part of request
	numbers  [][]byte // the numbers, as parts of request
	sent     *atomic.Int64
	random   *rand.ChaCha8
	net      net.Conn
	read     *bufio.Reader
	body     []byte // the body of the last answer
	discards bool   // whether bodies are discarded
	deadline time.Time
}

func dial(ctx context.Context, t *Target) (*conn, error) {
	c := &conn{target: t, sent: new(atomic.Int64)}
	var b bytes.Buffer
	method := http.MethodPost
	if t.Body == nil {
		method = http.MethodGet
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, t.URL.RequestURI(), t.URL.Host)
	at, size := 0, 0
	if len(t.Callers) > 0 && t.Callers[0].Key != "" {
		b.WriteString("Authorization: Bearer ")
		at, size = b.Len(), len(t.Callers[0].Key)
		b.WriteString(t.Callers[0].Key + "\r\n")
	}
	if t.Body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(t.Body))
	}
	fmt.Fprintf(&b, "\r\n%s", t.Body)
	c.request = b.Bytes()
	c.key = c.request[at : at+size]
	c.ids, c.policies = within(c.request, IntentID), within(c.request, PolicyID)
	c.numbers = within(c.request, strconv.Itoa(Number))
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], rand.Uint64())
	}
	c.random = rand.NewChaCha8(seed)
	return c, c.connect(ctx)
}

// connect opens the connection. If the connection is open, connect closes it first.
func (c *conn) connect(ctx context.Context) (err error) {
	c.close()
	host := c.target.URL.Host
	if c.target.URL.Port() == "" {
		host = net.JoinHostPort(c.target.URL.Hostname(), "80")
	}
	if c.net, err = (&net.Dialer{}).DialContext(ctx, "tcp", host); err == nil {
		c.read = bufio.NewReaderSize(c.net, 4<<10)
	}
	return err
}

// within returns the parts of request that hold text.
func within(request []byte, text string) (places [][]byte) {
	for rest := request; ; {
		i := bytes.Index(rest, []byte(text))
		if i < 0 {
			return places
		}
		places = append(places, rest[i:i+len(text)])
		rest = rest[i+len(text):]
	}
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // the error does not matter, because everything has been read
	}
}

// ask sends a request of a random caller, with new intent ids, and reads the answer.
func (c *conn) ask() (answer, error) {
	if n := len(c.target.Callers); n > 0 {
		caller := &c.target.Callers[0]
		if n > 1 {
			caller = &c.target.Callers[c.random.Uint64()%uint64(n)]
		}
		copy(c.key, caller.Key)
		for _, id := range c.policies {
			copy(id, caller.PolicyID)
		}
	}
	for _, id := range c.ids {
		writeUUID(id, c.random)
	}
	if len(c.numbers) > 0 {
		n := strconv.FormatInt(c.sent.Add(1)+Number, 10)
		for _, number := range c.numbers {
			copy(number, n)
		}
	}
	if !c.deadline.IsZero() {
		_ = c.net.SetDeadline(c.deadline) // the connection is open, so this does not fail
	}
	if _, err := c.net.Write(c.request); err != nil {
		return answer{}, err
	}
	return c.response()
}

// writeUUID writes a random UUID of version 4.
func writeUUID(to []byte, random *rand.ChaCha8) {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:8], random.Uint64())
	binary.LittleEndian.PutUint64(u[8:], random.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	hex.Encode(to[0:8], u[0:4])
	hex.Encode(to[9:13], u[4:6])
	hex.Encode(to[14:18], u[6:8])
	hex.Encode(to[19:23], u[8:10])
	hex.Encode(to[24:36], u[10:16])
}

// answer is the answer to a request.
type answer struct {
	status     int
	size       int           // the size of the body
	retryAfter time.Duration // 0 if the answer has none
	body       []byte        // valid until the next answer
}

// response reads a response. It checks that the response allows what the target requires.
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
	if t := c.target; a.status == 200 && t.Allowed != "" {
		if n := bytes.Count(c.body, []byte(t.Allowed)); n != t.Intents {
			return answer{}, fmt.Errorf("%d of %d intents were allowed: %.300s", n, t.Intents, c.body)
		}
	}
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
