package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestNewRemote(t *testing.T) {
	for base, ok := range map[string]bool{
		"https://writ.example.com": true, "http://localhost:3820/": true, "http://[::1]:3820": true,
		"http://writ.example.com": false, "ftp://localhost": false, "localhost:3820": false, "https://u:p@writ.example.com": false,
		"https://writ.example.com?x=1": false, "": false, "http://localhost.example.com": false,
	} {
		if _, err := NewRemote(base); (err == nil) != ok {
			t.Errorf("NewRemote(%q) = %v, want an error: %v", base, err, !ok)
		}
	}
}

// TestRemote holds that the pages of a server elsewhere are those of the server itself, that a stream is passed on as it
// comes, and that a redirect gets no credential.
func TestRemote(t *testing.T) {
	var elsewhere, asked int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code": "unauthorized"}`)
			return
		}
		switch r.URL.Path {
		case "/v1/credential":
			_, _ = io.WriteString(w, `{"organization_id": "acme", "kind": "operator", "id": "me", "expiresAt": null}`)
		case "/v1/authorizations/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-release
		case "/v1/agents":
			asked++
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	}))
	defer server.Close()
	remote, err := NewRemote(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{API: remote, Now: time.Now, Secret: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	local := httptest.NewServer(c)
	defer local.Close()
	defer close(release)
	client := local.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequest(http.MethodPost, local.URL+"/console/login", strings.NewReader(url.Values{"credential": {"token"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", local.URL)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		t.Fatalf("signing in = %d, cookies %v", res.StatusCode, res.Cookies())
	}
	get := func(path string) *http.Response {
		req, err := http.NewRequest(http.MethodGet, local.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(res.Cookies()[0])
		got, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = got.Body.Close() })
		return got
	}
	first := make([]byte, 7)
	if _, err := io.ReadFull(get("/console/decisions/stream").Body, first); err != nil || string(first) != "id: 1\n\n" {
		t.Errorf("the stream begins with %q, %v, before the server's has ended", first, err)
	}
	if got := get("/console/agents"); got.StatusCode != http.StatusBadGateway || asked != 1 || elsewhere != 0 {
		t.Errorf("a redirect = %d, asked %d, elsewhere %d, want 502, and nobody else asked", got.StatusCode, asked, elsewhere)
	}
}
