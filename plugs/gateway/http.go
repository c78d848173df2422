package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Upstream returns the transport of a server at an address, by streamable HTTP. The server gets bearer as
// its credential, if it is not empty, and nothing of the clients'.
func Upstream(address, bearer string) (mcp.Transport, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil {
		return nil, errors.New("--upstream: want an http or https URL with a host and without a user")
	}
	return &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{
		Transport:     bearing{bearer},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// bearing sends a credential with each request.
type bearing struct{ bearer string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.bearer != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.bearer)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Front says whom the gateway serves over HTTP.
type Front struct {
	Listen string   // an address, such as 127.0.0.1:3822
	Hosts  []string // names of the gateway, beside that in Listen
	Bearer string   // what clients must send as their credential, if it is not empty
}

// newProtocol is the first revision without connections.
const newProtocol = "2026-07-28"

// Check says what is missing.
func (f Front) Check() error {
	host, _, err := net.SplitHostPort(f.Listen)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return errors.New("--listen: want an address with a port, such as 127.0.0.1:3822")
	case f.loopback():
	case f.Bearer == "":
		return errors.New("--bearer-file is missing: beyond loopback clients need a credential")
	case len(f.Hosts) == 0 && (host == "" || ip != nil && ip.IsUnspecified()):
		return errors.New("--host is missing: beyond loopback the gateway must know what clients call it")
	}
	return nil
}

func (f Front) loopback() bool {
	host, _, _ := net.SplitHostPort(f.Listen)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// knows reports whether an authority, a host with or without a port, is the gateway's. A page of
// another site that a browser shows can reach a gateway on loopback, but not under this name.
func (f Front) knows(authority string) bool {
	host := authority
	if h, _, err := net.SplitHostPort(authority); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	own, _, _ := net.SplitHostPort(f.Listen)
	names := append([]string{own}, f.Hosts...)
	if f.loopback() {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	return host != "" && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, host) })
}

// ListenAndServe serves clients over streamable HTTP until ctx ends or the server behind does.
func (g *Gateway) ListenAndServe(ctx context.Context, f Front) error {
	if err := f.Check(); err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return err
	}
	g.sessions.renew = g.config.SessionTTL
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{Handler: g.Handler(f), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() { cancel(server.Serve(ln)) }()
	go func() { cancel(ended(g.behind.Wait())) }()
	g.say("listens on http://%s", ln.Addr())
	<-ctx.Done()
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer done()
	if err := server.Shutdown(stop); err != nil { // a stream stays open
		_ = server.Close()
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// Handler serves clients.
func (g *Gateway) Handler(f Front) http.Handler {
	g.sources.shared = true
	of := func(*http.Request) *mcp.Server { return g.front.Load() }
	options := mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true,
		SessionTimeout: time.Hour, DisableLocalhostProtection: true, // knows does it
	}
	connected := mcp.NewStreamableHTTPHandler(of, &options)
	options.Stateless = true
	alone := mcp.NewStreamableHTTPHandler(of, &options)
	want := sha256.Sum256([]byte("Bearer " + f.Bearer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		origin, hasOrigin := r.Header["Origin"]
		switch {
		case !f.knows(r.Host):
			http.Error(w, fmt.Sprintf("%.200q is not this gateway: see --host", r.Host), http.StatusForbidden)
			return
		case hasOrigin && !f.knowsOrigin(origin):
			http.Error(w, "a page of another site may not call this gateway", http.StatusForbidden)
			return
		case f.Bearer != "" && subtle.ConstantTimeCompare(given[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "want the gateway's credential: Authorization: Bearer …", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost && !strictBody(w, r) {
			return
		}
		if r.Header.Get("Mcp-Protocol-Version") >= newProtocol {
			alone.ServeHTTP(w, r)
			return
		}
		connected.ServeHTTP(w, r)
	})
}

func (f Front) knowsOrigin(origin []string) bool {
	if len(origin) != 1 {
		return false
	}
	at, err := url.Parse(origin[0])
	return err == nil && f.knows(at.Host)
}

// strictBody answers a body that is not strict, and reports whether it is.
func strictBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		status := http.StatusBadRequest
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the message is refused: "+err.Error(), status)
		return false
	}
	if bad := strict(body); bad != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(refusal(body, bad)) // the client has left
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}
