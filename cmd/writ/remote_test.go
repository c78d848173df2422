package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// remoteVerbs are the verbs that work with a server, with arguments.
var remoteVerbs = [][]string{
	{"status"},
	{"history", "tail"},
	{"history", "tail", "--follow"},
	{"history", "show", "x"},
	{"history", "why", "x"},
	{"approvals", "list"},
	{"approvals", "show", "x"},
	{"approvals", "approve", "x", "--yes"},
	{"approvals", "reject", "x"},
	{"approvals", "revoke", "x"},
	{"agent", "list"},
	{"agent", "disable", "x"},
	{"agent", "enable", "x"},
	{"agent", "register", "x"},
	{"stop"},
	{"resume"},
	{"api-key", "list"},
	{"api-key", "create", "x"},
	{"api-key", "revoke", "x"},
	{"usage"},
	{"decide", "--intent", "../../examples/intents/payments/refund-small.json"},
	{"login"},
}

// runRemote runs a verb with a server, and returns its exit code and all that it prints.
func runRemote(t *testing.T, url string, args ...string) (int, string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("WRIT_URL", url)
	t.Setenv("WRIT_API_KEY", "secret")
	var out bytes.Buffer
	code := run(context.Background(), args, streams{in: strings.NewReader("secret\n"), out: &out, err: &out})
	return code, out.String()
}

// TestRemote_HostileServer holds that each verb fails where a server answers something else than the API does,
// and prints nothing that a terminal obeys, nor the key.
func TestRemote_HostileServer(t *testing.T) {
	const hostile = "\x1b[2Jsecret\u202e\u009b\r\x7f"
	for name, answer := range map[string]http.HandlerFunc{
		"problem": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"code":"a\u001b[2J\u202e` + "\u009b" + `","detail":"\r\u001b[2J secret","errors":[{"field":"\u202e","message":"\u001b"}]}`))
		},
		"text": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(hostile)) },
		"failure": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(hostile))
		},
		"names": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"\u001b[2J","\u202e":1,"decision":"\u001b[2J","data":["\u001b[2J\u202e"],"kind":["\u001b[2J"]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			for _, args := range remoteVerbs {
				code, out := runRemote(t, server.URL, args...)
				i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) })
				if i >= 0 || strings.Contains(out, "\n\n\n") {
					t.Errorf("%v prints %q", args, out)
				}
				if name == "problem" && strings.Contains(out, "secret") {
					t.Errorf("%v prints the key: %q", args, out)
				}
				verb := args[min(1, len(args)-1)]
				shows := name == "names" && slices.Contains([]string{"list", "show", "why", "tail", "status", "usage"}, verb)
				if !shows && code == exitOK || args[0] == "decide" && code != exitUndecided {
					t.Errorf("%v = exit code %d:\n%s", args, code, out)
				}
			}
		})
	}
}

// TestRemote_FollowsNoRedirect holds that no verb sends its credential to another address.
func TestRemote_FollowsNoRedirect(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		for _, args := range remoteVerbs {
			if code, out := runRemote(t, server.URL, args...); code == exitOK || !strings.Contains(out, "redirects to") {
				t.Errorf("%v = exit code %d:\n%s", args, code, out)
			}
		}
		server.Close()
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// TestProgress_Wait holds that a wait is told after a second, and taken back.
func TestProgress_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := &progress{w: &b, shown: true}
		p.wait("waiting")()
		if b.String() != eraseLine {
			t.Errorf("a short wait prints %q", b.String())
		}
		b.Reset()
		end := p.wait("waiting")
		time.Sleep(2500 * time.Millisecond)
		end()
		if got, want := b.String(), eraseLine+"waiting, 1 s"+eraseLine+"waiting, 2 s"+eraseLine; got != want {
			t.Errorf("a wait of 2.5 s prints %q, want %q", got, want)
		}
		(&progress{w: &b}).wait("waiting")()
	})
}
