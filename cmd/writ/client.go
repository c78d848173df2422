package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"writ/authoring/workspace"
)

// client calls the API of a writ server with one credential.
type client struct {
	base  string // such as http://127.0.0.1:3820
	token string
}

// call sends body as JSON, unless it is nil, and returns the answer, which must
// have the wanted status.
func (c client) call(ctx context.Context, method, path string, body any, want int) ([]byte, error) {
	got, _, err := c.send(ctx, workspace.Request{Method: method, Path: path, Body: body, Want: want})
	return got, err
}

// send is call with the answer's headers.
func (c client) send(ctx context.Context, r workspace.Request) ([]byte, http.Header, error) {
	var sent io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, nil, fmt.Errorf("encoding the request: %w", err)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, sent)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	if r.IfMatch != "" {
		req.Header.Set("If-Match", r.IfMatch)
	}
	if r.IfNoneMatch != "" {
		req.Header.Set("If-None-Match", r.IfNoneMatch)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if resp.StatusCode != r.Want {
		return nil, nil, &answerError{
			status: resp.StatusCode, header: resp.Header, body: got,
			text: fmt.Sprintf("%s %s: %s: %s", r.Method, r.Path, resp.Status, got),
		}
	}
	return got, resp.Header, nil
}

type answerError struct {
	text   string
	status int
	header http.Header
	body   []byte
}

func (e *answerError) Error() string { return e.text }

// fetch is call with the answer decoded into v.
func (c client) fetch(ctx context.Context, method, path string, body any, want int, v any) error {
	_, err := c.request(ctx, workspace.Request{Method: method, Path: path, Body: body, Want: want}, v)
	return err
}

// request implements [workspace.Call].
func (c client) request(ctx context.Context, r workspace.Request, v any) (http.Header, error) {
	got, header, err := c.send(ctx, r)
	if err != nil || v == nil {
		return header, err
	}
	if err := json.Unmarshal(got, v); err != nil {
		return nil, fmt.Errorf("%s %s: decoding the answer: %w", r.Method, r.Path, err)
	}
	return header, nil
}

type object map[string]any
