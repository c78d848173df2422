package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
)

// client calls the API of a writ server with one credential.
type client struct {
	base  string // such as http://127.0.0.1:3820
	token string
	// ifMatch and ifNoneMatch are the headers of those names; empty: none.
	ifMatch, ifNoneMatch string
}

// call sends body as JSON, unless it is nil, and returns the answer, which must
// have the wanted status.
func (c client) call(ctx context.Context, method, path string, body any, want int) ([]byte, error) {
	got, _, err := c.send(ctx, method, path, body, want)
	return got, err
}

// send is call with the answer's headers.
func (c client) send(ctx context.Context, method, path string, body any, want int) ([]byte, http.Header, error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, nil, fmt.Errorf("encoding the request: %w", err)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	if c.ifMatch != "" {
		req.Header.Set("If-Match", c.ifMatch)
	}
	if c.ifNoneMatch != "" {
		req.Header.Set("If-None-Match", c.ifNoneMatch)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode != want {
		return nil, nil, &answerError{
			status: resp.StatusCode, header: resp.Header, body: got,
			text: fmt.Sprintf("%s %s: %s: %s", method, path, resp.Status, got),
		}
	}
	return got, resp.Header, nil
}

// answerError is an answer with another status than the wanted.
type answerError struct {
	text   string
	status int
	header http.Header
	body   []byte
}

func (e *answerError) Error() string { return e.text }

// fetch is call with the answer decoded into v.
func (c client) fetch(ctx context.Context, method, path string, body any, want int, v any) error {
	_, err := c.read(ctx, method, path, body, want, v)
	return err
}

// read is send with the answer decoded into v, unless that is nil.
func (c client) read(ctx context.Context, method, path string, body any, want int, v any) (http.Header, error) {
	got, header, err := c.send(ctx, method, path, body, want)
	if err != nil || v == nil {
		return header, err
	}
	if err := json.Unmarshal(got, v); err != nil {
		return nil, fmt.Errorf("%s %s: decoding the answer: %w", method, path, err)
	}
	return header, nil
}

// object is the body of a request.
type object map[string]any
