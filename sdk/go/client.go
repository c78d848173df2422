package writ

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"writ.example/writ/storage/receipt"
)

// Config has the settings of a [Client]. An empty text is replaced by an environment variable.
type Config struct {
	URL      string // WRIT_URL, such as https://writ.example
	APIKey   string // WRIT_API_KEY
	PolicyID string // WRIT_POLICY_ID, for intents without a policy
	AgentID  string // WRIT_AGENT_ID, for intents without an agent
	// Timeout bounds a call with all its repetitions. The default is 2 seconds.
	Timeout time.Duration
	// Keys is a JWKS with the keys that the caller trusts. If it is set, an evaluation fails with [ErrAnswer]
	// if the receipt does not verify with them, or if the receipt of an allow is not of the very intent that
	// was sent. Only [Client.Verify] asks the server for its keys.
	Keys []byte
	// Transport sends the requests. The default is [http.DefaultTransport].
	Transport http.RoundTripper
	// Stream sends evaluations on one connection, which does not wait for their answers: a WebSocket, as
	// docs/intent-stream.md has it. Calls and their results stay the same, but [WithTraceparent] has no effect on them.
	Stream bool
}

// Client calls a writ server. It is safe for concurrent use.
type Client struct {
	config Config
	http   *http.Client

	trusted *receipt.Keys // nil if receipts of evaluations are not verified

	mu           sync.Mutex
	keys         receipt.Keys
	organization string // of the API key, if it was asked for
}

const (
	defaultTimeout = 2 * time.Second
	attempts       = 3
	firstPause     = 50 * time.Millisecond
	// maxAnswer bounds the bytes that are read of an answer.
	maxAnswer = 8 << 20
)

// New returns a client. It sends nothing.
func New(c Config) (*Client, error) {
	c.URL = strings.TrimRight(cmp.Or(c.URL, os.Getenv("WRIT_URL")), "/")
	c.APIKey = cmp.Or(c.APIKey, os.Getenv("WRIT_API_KEY"))
	c.PolicyID = cmp.Or(c.PolicyID, os.Getenv("WRIT_POLICY_ID"))
	c.AgentID = cmp.Or(c.AgentID, os.Getenv("WRIT_AGENT_ID"))
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	at, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return nil, errors.New("writ: the server is missing: set URL or WRIT_URL, such as https://writ.example")
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return nil, errors.New("writ: the server's URL is not an http or https URL with a host: see URL or WRIT_URL")
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return nil, errors.New("writ: the server's URL has a user, a query or a fragment: see URL or WRIT_URL")
	case c.APIKey == "":
		return nil, errors.New("writ: the API key is missing: set APIKey or WRIT_API_KEY")
	case strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("writ: the API key has a character that no key has: see APIKey or WRIT_API_KEY")
	}
	var trusted *receipt.Keys
	if c.Keys != nil {
		keys, err := receipt.ParseKeys(c.Keys)
		if err != nil {
			return nil, fmt.Errorf("writ: reading the trusted keys: %w", err)
		}
		trusted = &keys
	}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if c.Stream {
		transport = &intents{RoundTripper: transport, timeout: c.Timeout}
	}
	return &Client{config: c, trusted: trusted, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// call is a request.
type call struct {
	method, path string
	body         []byte
	// repeats says that the request may be sent again, because the server answers it in the same way.
	repeats bool
	// patience is added to the timeout, for a request that the server answers late on purpose.
	patience time.Duration
}

// answer is a successful answer.
type answer struct {
	status int
	body   []byte
	// replayed says that the intent was decided by a request that another call has sent.
	replayed bool
}

// do sends a request and returns its answer. A status other than success is an error.
func (c *Client) do(ctx context.Context, r call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout+r.patience)
	defer cancel()
	sent := false // an earlier request of this call may have reached the server
	for n, pause := 1, firstPause; ; n, pause = n+1, 2*pause {
		a, after, err := c.once(ctx, r)
		a.replayed = a.replayed && !sent
		var dial *net.OpError
		sent = sent || !errors.As(err, &dial) || dial.Op != "dial"
		if err == nil || after < 0 || !r.repeats || n == attempts {
			return a, err
		}
		wait := max(after, pause/2+rand.N(pause))
		if end, ok := ctx.Deadline(); ok && time.Now().Add(wait).After(end) {
			return answer{}, err
		}
		select {
		case <-ctx.Done():
			return answer{}, err
		case <-time.After(wait):
		}
	}
}

// once sends a request once. With an error it returns how long to wait before the request is repeated, or
// a negative duration if it must not be repeated.
func (c *Client) once(ctx context.Context, r call) (answer, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.config.URL+r.path, strings.NewReader(string(r.body)))
	if err != nil {
		return answer{}, -1, c.hide(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if at := traceparent(ctx); at != "" {
		req.Header.Set("Traceparent", at)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, 0, c.hide(fmt.Errorf("writ: %w", err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, 0, c.hide(fmt.Errorf("writ: reading the answer: %w", err))
	case len(body) > maxAnswer:
		return answer{}, -1, fmt.Errorf("writ: the answer is longer than %d bytes", maxAnswer)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		replayed := resp.Header.Get("Idempotent-Replayed") == "true"
		return answer{status: resp.StatusCode, body: body, replayed: replayed}, 0, nil
	}
	after, err := c.refusal(resp, body)
	return answer{}, after, err
}

// refusal reads an answer with another status than success. It also returns how long to wait before a
// repetition, or a negative duration if there must be none.
func (c *Client) refusal(resp *http.Response, body []byte) (time.Duration, error) {
	p := problemOf(resp, body)
	c.hideProblem(p)
	if !p.Retryable {
		return -1, p
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return time.Duration(max(0, min(seconds, 3600))) * time.Second, p
}

// get calls path and decodes the answer into v.
func (c *Client) get(ctx context.Context, path string, patience time.Duration, v any) error {
	a, err := c.do(ctx, call{method: http.MethodGet, path: path, repeats: true, patience: patience})
	if err != nil {
		return err
	}
	return decode(a.body, v)
}

// send sends body to path once and decodes the answer into v, unless v is nil.
func (c *Client) send(ctx context.Context, method, path string, body, v any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writ: encoding the request: %w", err)
	}
	a, err := c.do(ctx, call{method: method, path: path, body: data})
	if err != nil || v == nil {
		return err
	}
	return decode(a.body, v)
}

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("writ: the answer is not what a writ server answers: %w", err)
	}
	return nil
}

// hidden is an error with the API key removed from its text.
type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// hide takes the API key out of an error's text. A server or a proxy may have echoed it.
func (c *Client) hide(err error) error {
	if text := err.Error(); strings.Contains(text, c.config.APIKey) {
		return hidden{err, c.hideText(text)}
	}
	return err
}

func (c *Client) hideText(s string) string {
	return strings.ReplaceAll(s, c.config.APIKey, "[API key]")
}

// hideProblem is hide for a problem, whose texts a server has made.
func (c *Client) hideProblem(p *Problem) {
	for _, s := range []*string{&p.Code, &p.Title, &p.Detail, &p.RequestID} {
		*s = c.hideText(*s)
	}
	for i, e := range p.Errors {
		p.Errors[i] = FieldError{Field: c.hideText(e.Field), Message: c.hideText(e.Message)}
	}
}

func (c *Client) hideTexts(all []string) {
	for i, s := range all {
		all[i] = c.hideText(s)
	}
}

type traceKey struct{}

// WithTraceparent returns a context whose requests have this W3C traceparent.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

func traceparent(ctx context.Context) string {
	s, _ := ctx.Value(traceKey{}).(string)
	return s
}
