package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"time"
)

// conn is one connection and its request, whose intent ids are patched in place.
type conn struct {
	addr    string
	request []byte
	ids     [][]byte // within request
	keys    []string // of one length
	key     []byte   // within request
	counter uint64
	net     net.Conn
	read    *bufio.Reader
}

func newConn(u *url.URL, keys []string, body []byte, n int) *conn {
	c := &conn{addr: u.Host, keys: keys}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", u.RequestURI(), u.Host)
	at := 0
	if keys[0] != "" {
		b.WriteString("Authorization: Bearer ")
		at = b.Len()
		b.WriteString(keys[0] + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	c.request = b.Bytes()
	c.key = c.request[at : at+len(keys[0])]
	for rest := c.request; ; {
		i := bytes.Index(rest, []byte(intentIDPlaceholder))
		if i < 0 {
			break
		}
		c.ids = append(c.ids, rest[i:i+len(intentIDPlaceholder)])
		rest = rest[i+len(intentIDPlaceholder):]
	}
	// Intent ids are unique across connections and runs: time, connection, counter.
	c.counter = uint64(time.Now().UnixNano())<<16 ^ uint64(n)<<48
	return c
}

func (c *conn) dial(ctx context.Context) (err error) {
	if c.net, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.addr); err == nil {
		c.read = bufio.NewReaderSize(c.net, 4<<10)
	}
	return err
}

func (c *conn) close() { _ = c.net.Close() } // everything that matters has been read

// ask sends a request with an intent id of its own, under any of the keys, and reads
// the answer.
func (c *conn) ask() (answer, error) {
	if len(c.keys) > 1 {
		copy(c.key, c.keys[rand.IntN(len(c.keys))])
	}
	for _, id := range c.ids {
		c.next(id)
	}
	if _, err := c.net.Write(c.request); err != nil {
		return answer{}, err
	}
	return c.response()
}

// next makes id a fresh one.
func (c *conn) next(id []byte) {
	c.counter++
	const hex = "0123456789abcdef"
	for i, shift := len(id)-1, 0; i >= 0 && shift < 64; i-- {
		if id[i] == '-' || i == 14 || i == 19 { // keep version and variant
			continue
		}
		id[i] = hex[c.counter>>shift&15]
		shift += 4
	}
}

// answer is what came back.
type answer struct {
	status     int
	size       int           // of the body
	retryAfter time.Duration // 0 if there was none
}

// response reads one response.
func (c *conn) response() (answer, error) {
	line, err := c.read.ReadSlice('\n')
	if err != nil {
		return answer{}, err
	}
	var a answer
	if len(line) < 12 {
		return answer{}, fmt.Errorf("status line %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return answer{}, err
	}
	if a.size, a.retryAfter, err = c.header(); err != nil {
		return answer{}, err
	}
	if len(c.ids) <= 1 {
		_, err = c.read.Discard(a.size)
		return a, err
	}
	body := make([]byte, a.size)
	if _, err = io.ReadFull(c.read, body); err == nil && a.status == 200 {
		if n := bytes.Count(body, []byte(`"approved":true`)); n != len(c.ids) {
			err = fmt.Errorf("%d of %d intents of a batch were allowed", n, len(c.ids))
		}
	}
	return a, err
}

// header reads the rest of a response's header.
func (c *conn) header() (size int, retryAfter time.Duration, err error) {
	size = -1
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if size, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return 0, 0, err
			}
		}
		if v, ok := bytes.CutPrefix(line, []byte("Retry-After: ")); ok {
			seconds, err := strconv.Atoi(string(bytes.TrimSpace(v)))
			if err != nil {
				return 0, 0, err
			}
			retryAfter = time.Duration(seconds) * time.Second
		}
	}
	if size < 0 {
		return 0, 0, fmt.Errorf("response without Content-Length")
	}
	return size, retryAfter, nil
}
