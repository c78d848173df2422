package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"

	"github.com/go-json-experiment/json"
)

// server is what is attacked.
type server struct {
	options
	host string
}

// call is one request of a connection.
type call struct {
	method, path string
	body         []byte
}

// conn is one connection with its credential.
type conn struct {
	host, key string
	net       net.Conn
	read      *bufio.Reader
	buf       bytes.Buffer
}

func (s *server) dial(ctx context.Context, key string) (*conn, error) {
	c := &conn{host: s.host, key: key}
	return c, c.redial(ctx)
}

func (c *conn) redial(ctx context.Context) (err error) {
	c.close()
	if c.net, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.host); err == nil {
		c.read = bufio.NewReaderSize(c.net, 16<<10)
	}
	return err
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // everything that matters has been read
	}
}

// do sends a request and reads the whole answer.
func (c *conn) do(r call) (status int, body []byte, err error) {
	c.buf.Reset()
	fmt.Fprintf(&c.buf, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", r.method, r.path, c.host, c.key)
	if r.body != nil {
		fmt.Fprintf(&c.buf, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(r.body))
	}
	c.buf.WriteString("\r\n")
	c.buf.Write(r.body)
	if _, err := c.net.Write(c.buf.Bytes()); err != nil {
		return 0, nil, err
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 && r.method == http.MethodGet {
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, nil, err
	}
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.text) }

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusBadRequest
}

// operator returns a connection with an operator's token for org.
func (s *server) operator(ctx context.Context, org string) (*conn, error) {
	token, err := exec.CommandContext(ctx, s.writ, "token", "operator", "--org", org, "--data", s.data).Output()
	if err != nil {
		return nil, fmt.Errorf("minting an operator token: %w", err)
	}
	return s.dial(ctx, strings.TrimSpace(string(token)))
}

// post sends a document and decodes the answer, which must be a success.
func (c *conn) post(path string, document, answer any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	status, got, err := c.do(call{http.MethodPost, path, body})
	switch {
	case err != nil:
		return err
	case status/100 != 2:
		return &refusal{status, string(got)}
	case answer == nil:
		return nil
	}
	return json.Unmarshal(got, answer)
}

// mint returns connections of which each has a key with all of scopes.
func (s *server) mint(ctx context.Context, op *conn, n int, scopes ...string) ([]*conn, error) {
	conns := make([]*conn, n)
	for i := range conns {
		var key struct {
			ID    string `json:"id"`
			Token string `json:"token"`
		}
		if err := op.post("/v1/tokens", map[string]any{"name": fmt.Sprintf("key %d", i), "scopes": scopes}, &key); err != nil {
			return nil, err
		}
		var err error
		if conns[i], err = s.dial(ctx, key.Token); err != nil {
			return nil, err
		}
	}
	return conns, nil
}
