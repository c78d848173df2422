package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/cmd/remote"
)

// ended is a buffer that ends a context once it has a text.
type ended struct {
	bytes.Buffer
	text string
	end  func()
}

func (b *ended) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if strings.Contains(b.String(), b.text) {
		b.end()
	}
	return n, err
}

// TestTail_Follow holds that each decision is printed once: those that are made while the stream is opened, and
// those that are made while it is not connected.
func TestTail_Follow(t *testing.T) {
	var lists, streams atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/authorizations", func(w http.ResponseWriter, _ *http.Request) {
		if lists.Add(1) == 1 {
			fmt.Fprint(w, `{"data":[{"decision_id":"a2"},{"decision_id":"a1"}]}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"decision_id":"b"},{"decision_id":"a2"},{"decision_id":"a1"}]}`)
	})
	mux.HandleFunc("GET /v1/authorizations/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ":\nid: 0\n\n")
		if streams.Add(1) == 1 {
			fmt.Fprint(w, "id: 1\ndata: {\"decision_id\":\"b\"}\n\nid: 2\ndata: {\"decision_id\":\"c\"}\n\n")
			return
		}
		if got := r.Header.Get("Last-Event-ID"); got != "2" {
			t.Errorf("the stream goes on after %q, want 2", got)
		}
		fmt.Fprint(w, "id: 3\nevent: skipped\ndata: {\"count\":3,\"from\":\"\\u001b\"}\n\nid: 4\ndata: {\"decision_id\":\"d\"}\n\n")
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &ended{text: `"d"`, end: cancel}
	var said []string
	tail := remote.Tail{Out: out, JSON: true, Say: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}}
	client := workspace.Patient{Client: workspace.Client{Base: server.URL, Token: "key"}}
	if err := tail.Follow(ctx, client, client.Call, 1); err != nil {
		t.Fatal(err)
	}
	var want string
	for _, id := range []string{"a2", "b", "c", "d"} {
		want += fmt.Sprintf("{\"decision_id\":%q}\n", id)
	}
	if got := out.String(); got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	if len(said) != 2 || !strings.Contains(said[0], "is lost") || !strings.Contains(said[1], `3 decisions are not shown here`) ||
		!strings.Contains(said[1], `\u001b`) {
		t.Errorf("said %q", said)
	}
}

// TestTail_Follow_Ends holds that it ends where it cannot go on.
func TestTail_Follow_Ends(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		out    failing
		stream string
		status int
		want   string
	}{
		"refused":  {failing{}, `{"code":"unauthorized"}`, http.StatusUnauthorized, "does not accept the credential"},
		"no event": {failing{}, "data: {\n\n", http.StatusOK, "reading the history"},
		"full":     {failing{full}, "data: {}\n\n", http.StatusOK, "the disk is full"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "stream") {
				fmt.Fprint(w, `{"data":[]}`)
				return
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.stream)
		}))
		client := workspace.Patient{Client: workspace.Client{Base: server.URL, Token: "key"}, Credential: "of a test"}
		tail := remote.Tail{Out: c.out, JSON: true, Say: func(string, ...any) {}}
		err := tail.Follow(context.Background(), client, client.Call, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v, want %s", name, err, c.want)
		}
		server.Close()
	}
}

// failing is a writer that fails with its error, if it has one.
type failing struct{ error }

func (f failing) Write(p []byte) (int, error) { return len(p), f.error }
