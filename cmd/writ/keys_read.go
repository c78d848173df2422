package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/storage/receipt"
)

// readKeys reads a key set from a file or a URL.
func readKeys(ctx context.Context, s streams, name string) (receipt.Keys, error) {
	var (
		data []byte
		err  error
	)
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		data, err = download(ctx, name)
	} else {
		data, err = readInput(s, name)
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, &inputError{name: name, err: err}
	}
	return keys, nil
}

// download returns a small document.
func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", url, err)
	}
	resp, err := workspace.Direct.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		return nil, fmt.Errorf("getting %s: it redirects to %.200q, which is not followed: name that address instead",
			url, to)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

func (c *verifyCmd) trusted(ctx context.Context, s streams) (receipt.Keys, error) {
	return readKeys(ctx, s, cmp.Or(c.Keys, c.Data.JWKS()))
}
