package writ

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestConformance_StreamOfIntents runs the cases that a stream of intents can have: its answers are objects with a
// status.
func TestConformance_StreamOfIntents(t *testing.T) {
	all, ran := readConformance(t), 0
	for _, c := range all.Cases {
		if slices.ContainsFunc(c.Answers, func(a scripted) bool { return !a.Cut && !a.fitsLine() }) {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) { conforms(t, all, c, true) })
	}
	if ran < 90 {
		t.Errorf("%d cases, want at least 90", ran)
	}
}

// TestConformance_Intents runs the cases of streams of intents that all clients share.
func TestConformance_Intents(t *testing.T) {
	all := readConformance(t)
	if len(all.Intents) < 29 {
		t.Errorf("%d cases, want at least 29", len(all.Intents))
	}
	rest := all.Cases[0].Answers[0].Body[1:]
	for _, c := range all.Intents {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var lines []string
			opened := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				n := opened
				opened++
				mu.Unlock()
				if n >= len(c.Streams) {
					t.Errorf("stream %d: the server has %d", n+1, len(c.Streams))
					return
				}
				s := c.Streams[n]
				if s.Refused != nil {
					s.Refused.ServeHTTP(w, r)
					return
				}
				if s.Hello == nil {
					s.Hello = []string{`{"window":64,"window_bytes":4194304}`}
				}
				conn := accept(t, w, r, s.Hello...)
				defer conn.CloseNow()
				for n := 0; n < len(s.Answers) || !s.Cut; n++ {
					body, ref, err := nextLine(conn)
					if err != nil {
						return
					}
					text, _ := json.Marshal(body)
					mu.Lock()
					lines = append(lines, string(text))
					mu.Unlock()
					if n >= len(s.Answers) {
						continue
					}
					for _, answer := range s.Answers[n] {
						say(conn, strings.NewReplacer("$REF", ref, "$ALLOW", rest).Replace(answer))
					}
				}
			}))
			defer server.Close()
			client, err := New(Config{URL: server.URL, APIKey: all.APIKey, PolicyID: "0198f3c2-7a10-7c3e-9d41-000000000001",
				AgentID: "a", Timeout: 50 * time.Second, Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			for n := range c.Calls {
				d, err := client.Require(t.Context(), Intent{ActionType: "payment.refund", Resource: "https://api.example/refunds"})
				if got := outcomeOf(err); got != c.Want.Outcomes[n] || d.Allowed() != (err == nil) {
					t.Errorf("call %d: outcome %s (%v), want %s", n+1, got, err, c.Want.Outcomes[n])
				}
				if c.Want.Replayed != nil && d.Replayed != c.Want.Replayed[n] {
					t.Errorf("call %d: Replayed = %t, want %t", n+1, d.Replayed, c.Want.Replayed[n])
				}
				var p *Problem
				if errors.As(err, &p) && p.Code != c.Want.Codes[n] {
					t.Errorf("call %d: problem %q, want %q", n+1, p.Code, c.Want.Codes[n])
				}
				if err != nil && strings.Contains(err.Error(), all.APIKey) {
					t.Errorf("the API key is in the error %q", err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if opened != len(c.Streams) || c.Want.Lines != nil && len(lines) != *c.Want.Lines {
				t.Errorf("%d streams with %d lines, want %d with %v", opened, len(lines), len(c.Streams), c.Want.Lines)
			}
			if slices.Sort(lines); len(slices.Compact(lines)) > c.Calls {
				t.Errorf("a line that is sent again differs: %q", lines)
			}
		})
	}
}

// fitsLine reports whether a line of a stream has the same status as the answer.
func (a scripted) fitsLine() bool {
	var is struct {
		OK     any
		Status int
	}
	if json.Unmarshal([]byte(a.Body), &is) != nil {
		return false
	}
	return a.Status == http.StatusOK && is.OK == true || a.Status >= 400 && is.Status == a.Status
}

// accept opens a stream of intents as a server, with its first messages.
func accept(t *testing.T, w http.ResponseWriter, r *http.Request, hello ...string) *websocket.Conn {
	if r.Method+r.URL.Path != "GET/v1/policy/evaluate/stream" || r.Header.Get("Authorization") == "" {
		t.Errorf("the client sends %s %s", r.Method, r.URL.Path)
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"writ.v1"}})
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, text := range hello {
		say(conn, text)
	}
	return conn
}

// say sends a message. The client may have gone.
func say(conn *websocket.Conn, text string) {
	_ = conn.Write(context.Background(), websocket.MessageText, []byte(text))
}

// nextLine returns the body of the next line, and its ref.
func nextLine(conn *websocket.Conn) (body map[string]any, ref string, err error) {
	_, text, err := conn.Read(context.Background())
	if err != nil {
		return nil, "", err
	}
	err = json.Unmarshal(text, &body)
	ref, _ = body["ref"].(string)
	delete(body, "ref")
	return body, ref, err
}

// streamScripted answers the lines of a stream with scripted answers.
func streamScripted(t *testing.T, w http.ResponseWriter, r *http.Request, next func(map[string]any) (scripted, bool)) {
	conn := accept(t, w, r, `{"window":64}`)
	if conn == nil {
		return
	}
	defer conn.CloseNow()
	for {
		body, ref, err := nextLine(conn)
		if err != nil {
			return
		}
		a, ok := next(body)
		time.Sleep(time.Duration(a.DelayMS) * time.Millisecond)
		if !ok || a.Cut || a.CutBody {
			return
		}
		members := fmt.Sprintf(`{"ref":%q,`, ref)
		if after := a.Headers["Retry-After"]; json.Valid([]byte(after)) {
			members += `"retry_after":` + after + `,`
		}
		if a.Headers["Idempotent-Replayed"] == "true" {
			members += `"replayed":true,`
		}
		say(conn, members+string(bytes.TrimLeft([]byte(a.Body), "{ ")))
	}
}

// allow is an answer of the shared cases.
func allow(t *testing.T) (body, key string) {
	all := readConformance(t)
	return all.Cases[0].Answers[0].Body[1:], all.APIKey
}

// TestStreamOfIntents_RespectsTheWindow makes more calls than the window has, and answers in another order.
func TestStreamOfIntents_RespectsTheWindow(t *testing.T) {
	const window, calls = 4, 40
	body, key := allow(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := accept(t, w, r, fmt.Sprintf(`{"window":%d}`, window))
		lines := make(chan string, calls)
		go func() {
			defer close(lines)
			for {
				_, ref, err := nextLine(conn)
				if err != nil {
					return
				}
				lines <- ref
			}
		}()
		for answered := 0; answered < calls; {
			var refs []string
			for len(refs) < window {
				refs = append(refs, <-lines)
			}
			select {
			case ref := <-lines:
				t.Errorf("the line %s exceeds the window", ref)
			case <-time.After(5 * time.Millisecond): // gives a client that exceeds it the time to do so
			}
			slices.Reverse(refs)
			for _, ref := range refs {
				say(conn, `{"ref":"`+ref+`",`+body)
				answered++
			}
		}
		for range lines {
			t.Error("a line comes after the last call")
		}
	}))
	defer server.Close()
	client, err := New(Config{URL: server.URL, APIKey: key, PolicyID: "p", AgentID: "a", Timeout: time.Minute, Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if _, err := client.Require(t.Context(), Intent{ActionType: "t", Resource: "r"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	client.http.Transport.(*intents).last.stop(false)
}

// TestStreamOfIntents_OpensAnother ends streams as a server that stops does. It answers what it took before.
func TestStreamOfIntents_OpensAnother(t *testing.T) {
	body, key := allow(t)
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		conn := accept(t, w, r, `{"window":1}`)
		defer conn.CloseNow()
		_, ref, err := nextLine(conn)
		if err != nil {
			t.Error(err)
		}
		say(conn, `{"closing":"shutting_down","detail":"The server stops."}`)
		say(conn, `{"ref":"`+ref+`",`+body)
		_, _, _ = nextLine(conn) // the client does not end the stream
	}))
	defer server.Close()
	client, err := New(Config{URL: server.URL, APIKey: key, PolicyID: "p", AgentID: "a", Timeout: time.Minute, Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := client.Require(t.Context(), Intent{ActionType: "t", Resource: "r"}); err != nil {
			t.Error(err)
		}
	}
	if n := streams.Load(); n != 3 {
		t.Errorf("%d streams, want one for each call", n)
	}
}

// TestStreamOfIntents_Refused opens no stream where the server refuses it, and none where it is another server.
func TestStreamOfIntents_Refused(t *testing.T) {
	_, key := allow(t)
	problem := `{"type":"urn:writ:problem:unauthorized","code":"unauthorized","status":401,"detail":"no"}`
	for status, want := range map[int]string{401: "problem", 302: "problem", 200: "failed"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(problem))
		}))
		client, err := New(Config{URL: server.URL, APIKey: key, PolicyID: "p", AgentID: "a", Timeout: time.Minute, Stream: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Require(t.Context(), Intent{ActionType: "t", Resource: "r"})
		var p *Problem
		if got := outcomeOf(err); got != want || errors.As(err, &p) && p.Status != status {
			t.Errorf("after %d the outcome is %s (%v), want %s", status, got, err, want)
		}
		server.Close()
	}
}
