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
}

// call sends body as JSON, unless it is nil, and returns the answer, which must
// have the wanted status.
func (c client) call(ctx context.Context, method, path string, body any, want int) ([]byte, error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, got)
	}
	return got, nil
}

// fetch is call with the answer decoded into v.
func (c client) fetch(ctx context.Context, method, path string, body any, want int, v any) error {
	got, err := c.call(ctx, method, path, body, want)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got, v); err != nil {
		return fmt.Errorf("%s %s: decoding the answer: %w", method, path, err)
	}
	return nil
}

// object is the body of a request.
type object map[string]any
