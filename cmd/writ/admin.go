package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/internal/tlsfiles"
)

// adminFlags say which server's admin address a verb asks.
type adminFlags struct {
	AdminURL string `name:"admin-url" default:"http://127.0.0.1:3821" help:"Admin address of the server."`

	trustFlags `embed:""`
}

// askAdmin sends a request to an admin address and returns the body of the answer. absent is what it means if there is
// no such path.
func askAdmin(ctx context.Context, base, method, path, absent string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, http.NoBody)
	if err != nil {
		return nil, &usageError{"--admin-url: " + err.Error()}
	}
	resp, err := workspace.Direct.Do(req)
	if tlsfiles.Untrusted(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start the server, or name its admin address by --admin-url", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	said := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %s", base, absent)
	case said == "" || resp.StatusCode/100 == 3:
		return nil, fmt.Errorf("%s: %s", base, resp.Status)
	}
	return nil, errors.New(said)
}
