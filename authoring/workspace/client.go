package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/internal/printable"
)

// Client calls the API of a writ server with one credential.
type Client struct {
	Base  string // such as http://127.0.0.1:3820
	Token string // "" for what the server tells anybody
	// Transport sends the requests. The default is [http.DefaultTransport].
	Transport http.RoundTripper
}

// Direct is an HTTP client that follows no redirect. A redirect could carry the credential to an
// address that the user did not give.
var Direct = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// AnswerError is the error for an answer with an unexpected status.
type AnswerError struct {
	Status int
	Header http.Header
	Body   []byte
	text   string
}

func (e *AnswerError) Error() string { return e.text }

// Call implements [Call]. If r.Want is 0, any status of success is accepted.
func (c Client) Call(ctx context.Context, r Request, v any) (http.Header, error) {
	var sent io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, c.Base+r.Path, sent)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.IfMatch != "" {
		req.Header.Set("If-Match", r.IfMatch)
	}
	if r.IfNoneMatch != "" {
		req.Header.Set("If-None-Match", r.IfNoneMatch)
	}
	direct := *Direct
	direct.Transport = c.Transport
	resp, err := direct.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if resp.StatusCode != r.Want && (r.Want != 0 || resp.StatusCode/100 != 2) {
		return nil, &AnswerError{resp.StatusCode, resp.Header, got,
			fmt.Sprintf("%s %s: %s: %s", r.Method, r.Path, resp.Status, got)}
	}
	if v == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(got, v); err != nil {
		return nil, fmt.Errorf("%s %s: decoding the answer: %w", r.Method, r.Path, err)
	}
	return resp.Header, nil
}

// Open sends a GET and returns the body of the answer, which must be closed.
func (c Client) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	direct := *Direct
	direct.Transport = c.Transport
	resp, err := direct.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return nil, &AnswerError{resp.StatusCode, resp.Header, got,
		fmt.Sprintf("GET %s: %s: %s", path, resp.Status, got)}
}

// Do sends a request and decodes the answer into v, unless v is nil. A status other than success is
// an error.
func (c Client) Do(ctx context.Context, method, path string, body, v any) error {
	_, err := c.Call(ctx, Request{Method: method, Path: path, Body: body}, v)
	return err
}

// Each calls f with each item of the list at path. It stops if f returns an error.
func (c Client) Each(ctx context.Context, path string, f func(item jsontext.Value) error) error {
	return Pages(ctx, c.Call, path, func(page Page[jsontext.Value]) error {
		for _, item := range page.Data {
			if err := f(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxWait bounds the wait that a server's Retry-After may ask for.
const maxWait = 5 * time.Minute

// Patient is a client that obeys Retry-After: it waits and then repeats the request. It calls Say
// before it waits. Its errors are texts for users.
type Patient struct {
	Client
	Say func(format string, args ...any)
	// Credential says where the credential is from, such as "in WRIT_API_KEY".
	Credential string
}

// Call implements [Call]. It waits as the server asks.
func (p Patient) Call(ctx context.Context, r Request, v any) (http.Header, error) {
	for {
		header, err := p.Client.Call(ctx, r, v)
		var answer *AnswerError
		if !errors.As(err, &answer) {
			return header, err
		}
		seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		if answer.Status != http.StatusTooManyRequests || bad != nil || wait < 0 || wait > maxWait {
			return nil, p.Explain(answer)
		}
		p.Say("the server asks to wait %v", wait)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Explain returns the error for an answer with an unexpected status as a text for users, without the
// credential, which a server or a proxy may have echoed. It wraps a.
func (p Patient) Explain(a *AnswerError) error {
	text := p.explain(a)
	if p.Token != "" {
		text = strings.ReplaceAll(text, p.Token, "[API key]")
	}
	return &explained{a, text}
}

// explained is an [AnswerError] with a text for users.
type explained struct {
	*AnswerError
	text string
}

func (e *explained) Error() string { return e.text }

func (e *explained) Unwrap() error { return e.AnswerError }

func (p Patient) explain(a *AnswerError) string {
	var problem struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Errors []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if to := a.Header.Get("Location"); a.Status/100 == 3 && to != "" {
		return fmt.Sprintf("%s redirects to %.200q, where no credential is sent: set WRIT_URL to it if it is the "+
			"server", p.Base, to)
	}
	if err := json.Unmarshal(a.Body, &problem); err != nil || problem.Code == "" {
		text := fmt.Sprintf("%s does not answer as a writ server does: status %d to a request of writ",
			p.Base, a.Status)
		if strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") { // such as that the server speaks https
			line, _, _ := strings.Cut(string(a.Body), "\n")
			text += fmt.Sprintf(": %.100q", line)
		}
		return text
	}
	if a.Status == http.StatusUnauthorized {
		return fmt.Sprintf("%s does not accept the credential %s", p.Base, p.Credential)
	}
	text := printable.Text(problem.Code) + ": " + printable.Text(problem.Detail)
	for _, e := range problem.Errors {
		text += "\n  " + printable.Text(e.Field) + ": " + printable.Text(e.Message)
	}
	return strings.TrimSpace(text)
}
