package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Remote is an [API] over HTTP.
type Remote struct {
	base   string
	client *http.Client
}

// NewRemote returns the API of the server at base. It follows no redirect, so a credential goes to that
// server alone.
func NewRemote(base string) (*Remote, error) {
	to, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the server's address: %w", err)
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil || to.RawQuery != "" ||
		to.Fragment != "":
		return nil, errors.New("the server's address must be an http or https URL such as https://writ.example.com")
	case to.Scheme == "http" && !isLoopback(to.Host):
		return nil, errors.New("credentials are not sent over plain http: the server's address must begin with " +
			"https, or be on this host")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &Remote{strings.TrimRight(base, "/"), &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Do implements [API].
func (r *Remote) Do(ctx context.Context, c Caller, method, path string, body []byte) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if c.Credential != "" {
		req.Header.Set("Authorization", "Bearer "+c.Credential)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if at := c.From.Header.Get("Last-Event-ID"); at != "" {
		req.Header.Set("Last-Event-ID", at)
	}
	res, err := r.client.Do(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	return &Answer{res.StatusCode, res.Header, res.Body}, nil
}

// Keys passes on the public keys of the server's receipts, with which a browser verifies them.
func (r *Remote) Keys(w http.ResponseWriter, from *http.Request) {
	secureHeaders(w.Header())
	a, err := r.Do(from.Context(), Caller{From: from}, http.MethodGet, "/.well-known/jwks.json", nil)
	if err != nil {
		http.Error(w, "The server did not answer.", http.StatusBadGateway)
		return
	}
	_ = (&visit{w: w, r: from}).pass(a) // it has no other error than a browser that is gone
}
