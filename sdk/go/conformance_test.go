package writ

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// conformance is what all clients of sdk/ are held to: see its member about.
type conformance struct {
	APIKey     string `json:"api_key"`
	ApprovalID string `json:"approval_id"`
	TimeoutMS  int    `json:"timeout_ms"`
	Keyed      struct {
		PolicyID string `json:"policy_id"`
		AgentID  string `json:"agent_id"`
		Key      string `json:"key"`
		IntentID string `json:"intent_id"`
	}
	Cases   []conformanceCase
	Intents []struct {
		Name    string
		Calls   int
		Streams []struct {
			Refused *scripted
			Hello   []string
			Answers [][]string
			Cut     bool
		}
		Want struct {
			Outcomes, Codes []string
			Lines           *int
			Replayed        []bool
		}
	}
	Trusted string
	Bound   []struct {
		Name    string
		Call    string
		Intents []Intent
		Answers []scripted
		Want    struct {
			Outcomes []string
			Requests int
		}
	}
	Statuses []struct {
		Name    string
		Call    string
		Status  string
		Answers []scripted
		Want    struct{ Outcome, Code string }
	}
}

type conformanceCase struct {
	Name    string
	Call    string
	Answers []scripted
	Want    struct {
		Outcome  string
		Requests int
		Status   int
		Code     string
		Replayed *bool
	}
}

func readConformance(t *testing.T) conformance {
	t.Helper()
	data, err := os.ReadFile("../conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var all conformance
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// scripted is an answer of the server.
type scripted struct {
	Status  int
	Headers map[string]string
	Body    string
	Cut     bool
	CutBody bool `json:"cut_body"`
	DelayMS int  `json:"delay_ms"`
}

func (a scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Duration(a.DelayMS) * time.Millisecond):
	case <-r.Context().Done():
	}
	if a.Cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.Headers {
		w.Header().Set(k, v)
	}
	if a.CutBody {
		w.Header().Set("Content-Length", "100000")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(a.Body))
}

// TestKeyed holds that an intent of a key has the same id in all clients.
func TestKeyed(t *testing.T) {
	want := readConformance(t).Keyed
	c, err := New(Config{URL: "http://h.example", APIKey: "k", PolicyID: want.PolicyID, AgentID: want.AgentID})
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.complete(Intent{ActionType: "t", Resource: "r", Key: want.Key})
	if err != nil || in.IntentID != want.IntentID || in.IssuedAt != "1970-01-01T00:00:00Z" {
		t.Errorf("the intent is %+v, %v, want id %s", in, err, want.IntentID)
	}
}

// TestConformance runs the cases that all clients share.
func TestConformance(t *testing.T) {
	all := readConformance(t)
	if len(all.Cases) < 120 {
		t.Errorf("%d cases, want at least 120", len(all.Cases))
	}
	for _, c := range all.Cases {
		t.Run(c.Name, func(t *testing.T) { conforms(t, all, c, false) })
	}
}

// conforms runs a case. If stream is set, the client sends it on a stream of intents.
func conforms(t *testing.T, all conformance, c conformanceCase, stream bool) {
	t.Parallel()
	var requests atomic.Int32
	var mu sync.Mutex
	var bodies [10]string // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(body map[string]any) (a scripted, ok bool) {
			n := int(requests.Add(1))
			b := new(strings.Builder)
			_ = json.NewEncoder(b).Encode(body)
			mu.Lock()
			bodies[n] = b.String()
			mu.Unlock()
			if n > len(c.Answers) {
				t.Errorf("request %d: there are %d answers", n, len(c.Answers))
				return a, false
			}
			return c.Answers[n-1], true
		}
		if stream {
			streamScripted(t, w, r, answer)
		} else if a, ok := answer(bodyOf(r)); ok {
			a.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	// Only a case with a late answer waits for the timeout. A busy machine may need longer for the others.
	timeout := 50 * time.Second
	if slices.ContainsFunc(c.Answers, func(a scripted) bool { return a.DelayMS > 0 }) {
		timeout = time.Duration(all.TimeoutMS) * time.Millisecond
	}
	client, err := New(Config{URL: server.URL, APIKey: all.APIKey, PolicyID: "0198f3c2-7a10-7c3e-9d41-000000000001", AgentID: "a",
		Timeout: timeout, Stream: stream})
	if err != nil {
		t.Fatal(err)
	}
	in := Intent{ActionType: "payment.refund", Resource: "https://api.example/refunds"}
	var d Decision
	switch c.Call {
	case "require":
		d, err = client.Require(context.Background(), in)
	case "redeem":
		in.IntentID, in.PolicyID, in.AgentID, in.IssuedAt = newUUID(), client.config.PolicyID, "a", "2026-11-21T10:00:00Z"
		d, err = client.Redeem(context.Background(), &Held{Decision{ID: all.ApprovalID, Intent: in}})
	default:
		t.Fatalf("an unknown call: %s", c.Call)
	}
	if got := outcomeOf(err); got != c.Want.Outcome {
		t.Errorf("outcome %s (%v), want %s", got, err, c.Want.Outcome)
	}
	if d.Allowed() != (c.Want.Outcome == "allow") {
		t.Errorf("Allowed() = %t beside %v", d.Allowed(), err)
	}
	if got := int(requests.Load()); got != c.Want.Requests {
		t.Errorf("%d requests, want %d", got, c.Want.Requests)
	}
	mu.Lock()
	defer mu.Unlock()
	for n := 2; n <= int(requests.Load()); n++ {
		if bodies[n] != bodies[1] {
			t.Errorf("request %d differs from the first: %s, then %s", n, bodies[1], bodies[n])
		}
	}
	if c.Want.Replayed != nil && d.Replayed != *c.Want.Replayed {
		t.Errorf("Replayed = %t, want %t", d.Replayed, *c.Want.Replayed)
	}
	var p *Problem
	if errors.As(err, &p) && (c.Want.Status != 0 && p.Status != c.Want.Status || c.Want.Code != "" && p.Code != c.Want.Code) {
		t.Errorf("problem %d %q, want %d %q", p.Status, p.Code, c.Want.Status, c.Want.Code)
	}
	if err != nil && strings.Contains(err.Error(), all.APIKey) {
		t.Errorf("the API key is in the error %q", err)
	}
}

// TestConformance_Bound holds that with trusted keys an allow has a receipt of the very intent that was sent.
func TestConformance_Bound(t *testing.T) {
	all := readConformance(t)
	if len(all.Bound) < 31 {
		t.Errorf("%d cases, want at least 31", len(all.Bound))
	}
	for _, c := range all.Bound {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if paths = append(paths, r.URL.Path); len(paths) > len(c.Answers) {
					t.Errorf("request %d: there are %d answers", len(paths), len(c.Answers))
					return
				}
				c.Answers[len(paths)-1].ServeHTTP(w, r)
			}))
			defer server.Close()
			client, err := New(Config{URL: server.URL, APIKey: all.APIKey, Keys: []byte(all.Trusted), Timeout: 50 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var results []Result
			switch c.Call {
			case "require":
				d, err := client.Require(t.Context(), c.Intents[0])
				results = []Result{{d, err}}
			case "redeem":
				d, err := client.Redeem(t.Context(), &Held{Decision{ID: all.ApprovalID, Intent: c.Intents[0]}})
				results = []Result{{d, err}}
			case "evaluate_all":
				if results, err = client.EvaluateAll(t.Context(), true, c.Intents...); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("an unknown call: %s", c.Call)
			}
			var got []string
			for _, r := range results {
				got = append(got, outcomeOf(r.Err))
				if r.Decision.Allowed() != (r.Err == nil) {
					t.Errorf("Allowed() = %t beside %v", r.Decision.Allowed(), r.Err)
				}
				if r.Err != nil && strings.Contains(r.Err.Error(), all.APIKey) {
					t.Errorf("the API key is in the error %q", r.Err)
				}
			}
			if !slices.Equal(got, c.Want.Outcomes) || len(paths) != c.Want.Requests {
				t.Errorf("outcomes %v after %v, want %v after %d requests: %v", got, paths, c.Want.Outcomes, c.Want.Requests, results)
			}
		})
	}
}

// TestConformance_Statuses runs the cases of the organization's status.
func TestConformance_Statuses(t *testing.T) {
	all := readConformance(t)
	if len(all.Statuses) < 7 {
		t.Errorf("%d cases, want at least 7", len(all.Statuses))
	}
	for _, c := range all.Statuses {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, sent := r.Method+" "+r.URL.Path, bodyOf(r)
				if asked != "PATCH /v1/organization/status" || len(sent) != 1 || sent["status"] != c.Status {
					t.Errorf("the client sends %s %v", asked, sent)
				}
				if n := int(requests.Add(1)); n > len(c.Answers) {
					t.Errorf("request %d: there are %d answers", n, len(c.Answers))
					return
				}
				c.Answers[0].ServeHTTP(w, r)
			}))
			defer server.Close()
			client, err := New(Config{URL: server.URL, APIKey: all.APIKey})
			if err != nil {
				t.Fatal(err)
			}
			if c.Call != "set_organization_status" {
				t.Fatalf("an unknown call: %s", c.Call)
			}
			err = client.SetOrganizationStatus(t.Context(), c.Status)
			got := "done"
			if err != nil {
				got = outcomeOf(err)
			}
			if got != c.Want.Outcome || requests.Load() != 1 {
				t.Errorf("outcome %s (%v) after %d requests, want %s after one", got, err, requests.Load(), c.Want.Outcome)
			}
			var p *Problem
			if errors.As(err, &p) && p.Code != c.Want.Code {
				t.Errorf("problem %q, want %q", p.Code, c.Want.Code)
			}
			if err != nil && strings.Contains(err.Error(), all.APIKey) {
				t.Errorf("the API key is in the error %q", err)
			}
		})
	}
}

func bodyOf(r *http.Request) (v map[string]any) {
	_ = json.NewDecoder(r.Body).Decode(&v)
	return v
}

// outcomeOf names an error as the cases do.
func outcomeOf(err error) string {
	var denied *Denied
	var held *Held
	var problem *Problem
	switch {
	case err == nil:
		return "allow"
	case errors.As(err, &denied):
		return "denied"
	case errors.As(err, &held):
		return "held"
	case errors.As(err, &problem):
		return "problem"
	case errors.Is(err, ErrAnswer):
		return "answer"
	case errors.Is(err, ErrExpired):
		return "expired"
	case errors.Is(err, ErrAlreadyRedeemed):
		return "redeemed"
	case errors.Is(err, ErrPending):
		return "pending"
	}
	return "failed"
}
