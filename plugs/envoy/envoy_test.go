package envoy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"writ.example/writ/internal/must"
	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/internal/tlsfiles/tlstest"
)

// check is a check of GET http://shop.example/goods.
func check(change func(*authv3.AttributeContext_HttpRequest), ext map[string]string) *authv3.CheckRequest {
	h := &authv3.AttributeContext_HttpRequest{Method: "GET", Scheme: "http", Host: "shop.example", Path: "/goods"}
	if change != nil {
		change(h)
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: h}, ContextExtensions: ext,
	}}
}

// TestCheck_RefusesWhatItCannotRead checks that a request that is no intent is refused, with the reason, and
// that the server is not asked.
func TestCheck_RefusesWhatItCannotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the server got %s %s", r.Method, r.URL)
	}))
	defer server.Close()
	a := New(Settings{
		URL: server.URL, APIKey: "k", PolicyID: "p", AgentID: "bot", Log: slog.New(slog.DiscardHandler),
	})
	header := func(key, value string) *corev3.HeaderValue {
		return &corev3.HeaderValue{Key: key, RawValue: []byte(value)}
	}
	for want, change := range map[string]func(*authv3.AttributeContext_HttpRequest){
		"method: ": func(h *authv3.AttributeContext_HttpRequest) { h.Method = "" },
		"scheme: ": func(h *authv3.AttributeContext_HttpRequest) { h.Scheme = "" },
		"host: ":   func(h *authv3.AttributeContext_HttpRequest) { h.Host = "" },
		"path: want one that begins with a slash": func(h *authv3.AttributeContext_HttpRequest) { h.Path = "*" },
		"path: want UTF-8": func(h *authv3.AttributeContext_HttpRequest) {
			h.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{header(":path", "/\xff")}}
		},
		":path: is given twice": func(h *authv3.AttributeContext_HttpRequest) {
			h.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{header(":path", "/a"), header(":path", "/b")}}
		},
		"x-writ-approval: want the id": func(h *authv3.AttributeContext_HttpRequest) {
			h.Headers = map[string]string{headerApproval: "0c0ffee0-0000-4000-8000-00000000beef,0c0ffee0"}
		},
	} {
		got := must.Get(a.Check(t.Context(), check(change, nil)))(t)
		body := got.GetDeniedResponse().GetBody()
		if got.GetStatus().GetCode() != int32(codes.PermissionDenied) || !strings.Contains(body, `["`+want) {
			t.Errorf("Check = %v %s, want a refusal: %s", got.GetStatus(), body, want)
		}
	}
	if got := must.Get(a.Check(t.Context(), nil))(t); got.GetStatus().GetCode() != int32(codes.PermissionDenied) {
		t.Errorf("Check of nothing = %v, want a refusal", got.GetStatus())
	}
}

// TestCheck_AsksAsTheRouteSays checks that context_extensions come before the settings.
func TestCheck_AsksAsTheRouteSays(t *testing.T) {
	var bodies, keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		bodies, keys = append(bodies, string(body)), append(keys, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	a := New(Settings{
		URL: server.URL, APIKey: "k", PolicyID: "p", AgentID: "bot", Log: slog.New(slog.DiscardHandler),
	})
	for _, ext := range []map[string]string{nil, {extKey: "k2", extPolicy: "p2", extAgent: "bot2"}} {
		got := must.Get(a.Check(t.Context(), check(nil, ext)))(t)
		if got.GetDeniedResponse() == nil {
			t.Errorf("Check = %v, want a refusal", got)
		}
	}
	for i, want := range []string{`"policy_id":"p","agent_id":"bot"`, `"policy_id":"p2","agent_id":"bot2"`} {
		if !strings.Contains(bodies[i], want) || keys[i] != []string{"Bearer k", "Bearer k2"}[i] {
			t.Errorf("request %d is of %s %s, want %s", i, keys[i], bodies[i], want)
		}
	}
}

// TestListen_OnTCPWantsCertificates checks that a client without a certificate of the CA is not served.
func TestListen_OnTCPWantsCertificates(t *testing.T) {
	ours, others := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Certificate(time.Now().Add(time.Hour))
	a := New(Settings{URL: "http://127.0.0.1:1", APIKey: "k", Log: slog.New(slog.DiscardHandler)})
	open := must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key}))(t)
	for _, files := range []*tlsfiles.Server{nil, open} {
		if _, err := Listen(t.Context(), "127.0.0.1:0", files, a); err == nil {
			t.Errorf("Listen with %+v = nil, want an error", files)
		}
	}
	files := must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key, ClientCA: ours.File}))(t)
	s := must.Get(Listen(t.Context(), "127.0.0.1:0", files, a))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	for name, certificates := range map[string][]tls.Certificate{"client": {ours.Pair()}, "stranger": {others.Pair()}, "": nil} {
		config := &tls.Config{RootCAs: ours.Pool, ServerName: "localhost", Certificates: certificates}
		conn := must.Get(grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config))))(t)
		_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), check(nil, nil))
		if want := map[bool]codes.Code{true: codes.OK, false: codes.Unavailable}[name == "client"]; status.Code(err) != want {
			t.Errorf("Check with the certificate %q = %v, want %v", name, err, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	s.Shutdown(t.Context())
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

// TestListen_OnASocket checks whose sockets are replaced.
func TestListen_OnASocket(t *testing.T) {
	dir := must.Get(os.MkdirTemp("", "s"))(t) // a path of a socket is short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := New(Settings{URL: "http://127.0.0.1:1", APIKey: "k", Log: slog.New(slog.DiscardHandler)})
	file, path := filepath.Join(dir, "file"), filepath.Join(dir, "s")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+file, nil, a); err == nil {
		t.Error("Listen on a file = nil, want an error")
	}
	s := must.Get(Listen(t.Context(), "unix:"+path, nil, a))(t)
	if _, err := Listen(t.Context(), "unix:"+path, nil, a); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("Listen on a socket that is in use = %v, want an error", err)
	}
	s.Shutdown(context.Background())
	if err := s.listener.Close(); err == nil {
		t.Log("the listener was open")
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("the socket is still served")
	}
	s = must.Get(Listen(t.Context(), "unix:"+path, nil, a))(t) // a dead one is replaced
	if err := s.listener.Close(); err != nil {
		t.Error(err)
	}
}

// TestServer_SurvivesAPanic checks that a panic in a check is an error.
func TestServer_SurvivesAPanic(t *testing.T) {
	a := New(Settings{Log: slog.New(slog.DiscardHandler)})
	_, err := a.recovered(t.Context(), nil, nil, func(context.Context, any) (any, error) { panic("x") })
	if status.Code(err) != codes.Internal {
		t.Errorf("a panic = %v, want an internal error", err)
	}
}
