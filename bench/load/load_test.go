package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func target(t *testing.T, h http.HandlerFunc) *Target {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Target{URL: u, Body: []byte(`{"intent_id":"` + IntentID + `","policy_id":"` + PolicyID + `"}`), Allowed: "yes", Intents: 1}
}

// TestDrive_OpenLoopSeesAStall checks that an open loop measures a stall. The server stalls for
// 400 ms of a second, so two fifths of the arrivals are due while nothing is answered. A closed
// loop, and the latencies from the time of sending, hardly show the stall.
func TestDrive_OpenLoopSeesAStall(t *testing.T) {
	const stall = 400 * time.Millisecond
	var first sync.Once
	var stalled sync.RWMutex
	stalling := func() http.HandlerFunc {
		first = sync.Once{}
		return func(w http.ResponseWriter, _ *http.Request) {
			first.Do(func() {
				stalled.Lock()
				time.AfterFunc(stall, stalled.Unlock)
			})
			stalled.RLock()
			defer stalled.RUnlock()
			io.WriteString(w, "yes")
		}
	}
	o := Options{Conns: 2, Duration: time.Second, Rate: 500, Patience: time.Minute}
	open, err := Drive(t.Context(), target(t, stalling()), o)
	if err != nil {
		t.Fatal(err)
	}
	if open.Accepted != 500 || open.Unsent != 0 {
		t.Errorf("%d of 500 arrivals were accepted, %d unsent", open.Accepted, open.Unsent)
	}
	// A fifth of the arrivals waited for 200 ms or more, a twentieth for 350 or more.
	if got := open.Scheduled.At(.8); got < stall/2-stall/10 {
		t.Errorf("p80 from the schedule = %v, want about %v", got, stall/2)
	}
	if got := open.Scheduled.At(.99); got < stall*8/10 {
		t.Errorf("p99 from the schedule = %v, want about %v", got, stall)
	}
	if sent, due := open.Sent.At(.8), open.Scheduled.At(.8); sent >= due {
		t.Errorf("p80 from the sending = %v, from the schedule %v: only the two that were under way waited", sent, due)
	}
	closed, err := Drive(t.Context(), target(t, stalling()), Options{Conns: 2, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got, due := closed.Scheduled.At(.8), open.Scheduled.At(.8); got >= due {
		t.Errorf("p80 of a closed loop = %v, of the open one %v: it is not asked what it would not have answered", got, due)
	}
}

// TestDrive_WhatIsGivenUpCounts checks that the wait of an arrival that is given up counts as
// latency. The server answers nothing for as long as arrivals wait.
func TestDrive_WhatIsGivenUpCounts(t *testing.T) {
	var asked atomic.Int64
	slow := target(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(500 * time.Millisecond)
		}
		io.WriteString(w, "yes")
	})
	r, err := Drive(t.Context(), slow, Options{Conns: 1, Duration: 400 * time.Millisecond, Rate: 1000, Patience: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Unsent < 300 || r.Accepted+r.Unsent != 400 {
		t.Errorf("%d accepted, %d unsent, want 400 in all and most unsent", r.Accepted, r.Unsent)
	}
	if got := r.Scheduled.At(.5); got < 50*time.Millisecond || r.Scheduled.Count() != 400 {
		t.Errorf("p50 of %d = %v, want at least the patience of all 400", r.Scheduled.Count(), got)
	}
}

// TestDrive_IDsAreRandom checks that each request has an id of its own, and the key and the
// policy of one caller.
func TestDrive_IDsAreRandom(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	var mu sync.Mutex
	ids, callers := make(map[string]bool), make(map[string]int)
	tg := target(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			IntentID string `json:"intent_id"`
			PolicyID string `json:"policy_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !uuid.MatchString(in.IntentID) {
			t.Errorf("intent_id = %q, %v", in.IntentID, err)
		}
		mu.Lock()
		ids[in.IntentID] = true
		callers[r.Header.Get("Authorization")+" "+in.PolicyID]++
		mu.Unlock()
		io.WriteString(w, "yes")
	})
	one, two := strings.Replace(PolicyID, "0", "1", 1), strings.Replace(PolicyID, "0", "2", 1)
	tg.Callers = []Caller{{Key: "key-1", PolicyID: one}, {Key: "key-2", PolicyID: two}}
	r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != r.Accepted {
		t.Errorf("%d ids in %d requests", len(ids), r.Accepted)
	}
	if len(callers) != 2 || callers["Bearer key-1 "+one] == 0 || callers["Bearer key-2 "+two] == 0 {
		t.Errorf("callers = %v, want two", callers)
	}
}

// TestDrive_Fails checks that an answer that does not allow the intent fails the run.
func TestDrive_Fails(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a denial":                  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "no") },
		"an error":                  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a rate limit":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"a 503 without Retry-After": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		if _, err := Drive(t.Context(), target(t, h), Options{Conns: 1, Duration: time.Second}); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// TestDrive_RefusalsCount checks the counts when every second request is refused. The bodies
// are sent in chunks.
func TestDrive_RefusalsCount(t *testing.T) {
	var asked atomic.Int64
	tg := target(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1)%2 == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, strings.Repeat("x", 10_000))
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "yes")
	})
	r, err := Drive(t.Context(), tg, Options{Conns: 1, Duration: 200 * time.Millisecond, Rate: 100, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Accepted != 10 || r.Refused != 10 || r.Refusals.Count() != 10 || r.Bytes != 10*10_003 {
		t.Errorf("%d accepted with %d bytes, %d refused, want 10 and 10", r.Accepted, r.Bytes, r.Refused)
	}
}

func TestLatencies_SurviveTheFile(t *testing.T) {
	var l, back Latencies
	for i := range 1000 {
		l.Record(time.Duration(i) * time.Millisecond)
	}
	text, err := l.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	again, err := back.MarshalText()
	if err != nil || !bytes.Equal(text, again) || back.Count() != 1000 {
		t.Errorf("%d latencies came back, %v", back.Count(), err)
	}
	if got := back.At(.5); got < 495*time.Millisecond || got > 505*time.Millisecond {
		t.Errorf("p50 = %v, want 500ms", got)
	}
	if err := back.UnmarshalText(nil); err != nil || back.Count() != 0 || back.At(.5) != 0 {
		t.Errorf("an empty text gives %d latencies, %v", back.Count(), err)
	}
}

// TestDrive_HostileCountsEveryAnswer checks that an attacker counts every answer and numbers
// its requests. The server refuses, breaks connections and answers in chunks. The attacker goes
// on.
func TestDrive_HostileCountsEveryAnswer(t *testing.T) {
	var asked atomic.Int64
	numbers := make(chan string, 1<<16)
	hostile := target(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		numbers <- string(body)
		switch asked.Add(1) % 4 {
		case 0:
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			io.WriteString(w, strings.Repeat("x", 100_000))
		}
	})
	hostile.Body, hostile.Allowed = fmt.Append(nil, Number), ""
	r, err := Drive(t.Context(), hostile, Options{Conns: 2, Duration: 200 * time.Millisecond, Hostile: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Accepted == 0 || r.Refused == 0 || r.Dropped == 0 || r.Others[http.StatusTooManyRequests] == 0 || r.Refusals.Count() != int64(r.Refused) {
		t.Errorf("%d accepted, %d refused, %d dropped, others %v: want some of each", r.Accepted, r.Refused, r.Dropped, r.Others)
	}
	seen := make(map[string]bool)
	for range len(numbers) {
		n := <-numbers
		if seen[n] || len(n) != len("1000000001") {
			t.Errorf("number %s is sent twice or of another length", n)
		}
		seen[n] = true
	}
}

// mix returns a target of three intents, one of which gets a decision that it does not want.
func mix(t *testing.T, h http.HandlerFunc) *Target {
	tg := target(t, h)
	tg.Body, tg.Allowed, tg.Decides, tg.Intents = nil, "", true, 1
	for i, want := range []string{"allow", "deny", ""} {
		body := fmt.Appendf(nil, `{"kind":%d,"id":"%s","at":"%s","pad":"%s"}`, i, IntentID, Time, strings.Repeat("x", 40*i))
		tg.Messages = append(tg.Messages, Message{Body: body, Weight: []float64{6, 3, 1}[i], Want: want})
	}
	return tg
}

// decide answers intents of kind 0 and 1 as they are, and those of kind 2 with a problem.
func decide(t *testing.T, w io.Writer, intents ...jsonIntent) {
	t.Helper()
	for i, in := range intents {
		if at, err := time.Parse(time.RFC3339, in.At); err != nil || time.Since(at) > time.Minute {
			t.Errorf("at = %q, want the time of the request", in.At)
		}
		if i > 0 {
			io.WriteString(w, ",")
		}
		io.WriteString(w, []string{
			`{"ok":true,"approved":true,"decision":"allow","reasons":["\"ok\":true,\"decision\":\"deny\""],"receipt":{"decision":"allow"}}`,
			`{"ok":true,"approved":false,"decision":"deny","receipt":{"decision":"deny"}}`,
			`{"type":"urn:problem","ok":false,"status":400}`,
		}[in.Kind])
	}
}

type jsonIntent struct {
	Kind int
	ID   string
	At   string
}

// TestDrive_Mix checks that intents are drawn by their weights, that their decisions are counted, and that each
// decision is held to what its own intent wants, one by one and in batches.
func TestDrive_Mix(t *testing.T) {
	for _, intents := range []int{1, 10} {
		tg := mix(t, func(w http.ResponseWriter, r *http.Request) {
			var in []jsonIntent
			body, _ := io.ReadAll(r.Body)
			if len(body) > 0 && body[0] != '[' {
				body = []byte("[" + string(body) + "]")
			}
			if err := json.Unmarshal(body, &in); err != nil || len(in) != intents {
				t.Errorf("%d intents in %s, %v, want %d", len(in), body, err, intents)
			}
			decide(t, w, in...)
		})
		if tg.Intents = intents; intents > 1 {
			tg.Before, tg.After = "[", "]"
		}
		o := Options{Conns: 2, Duration: time.Minute, Requests: 2000 / intents}
		if _, err := Drive(t.Context(), tg, o); err == nil || !strings.Contains(err.Error(), "not decided as wanted") {
			t.Errorf("a decision that is not wanted: %v, want an error", err)
		}
		tg.Counts = true
		r, err := Drive(t.Context(), tg, o)
		if err != nil {
			t.Fatal(err)
		}
		allow, deny, none := r.Decisions["allow"], r.Decisions["deny"], r.Decisions[NoDecision]
		if allow+deny+none != 2000 || allow < 1000 || allow > 1400 || deny < 450 || deny > 750 || none != r.Mismatched {
			t.Errorf("decisions %v, %d mismatched, want six, three and one tenths of 2000", r.Decisions, r.Mismatched)
		}
		if !strings.Contains(r.Mismatch, "got none, want any decision") {
			t.Errorf("the mismatch is %q", r.Mismatch)
		}
	}
}

// TestDrive_MixWantsItsOwn checks that an allow for an intent that wants a denial is a mismatch.
func TestDrive_MixWantsItsOwn(t *testing.T) {
	tg := mix(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"ok":true,"approved":true,"decision":"allow","receipt":{}}`)
	})
	tg.Counts, tg.Messages = true, tg.Messages[:2]
	r, err := Drive(t.Context(), tg, Options{Conns: 1, Duration: time.Minute, Requests: 300})
	if err != nil {
		t.Fatal(err)
	}
	if r.Mismatched < 50 || r.Mismatched > 150 || !strings.Contains(r.Mismatch, "got allow, want deny") {
		t.Errorf("%d of 300 mismatched, %q; want a third", r.Mismatched, r.Mismatch)
	}
}

// TestSchedule_Ramps checks when the arrivals of a stage are due: their number up to each time is the sum of the rate.
func TestSchedule_Ramps(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		from, to float64
		count    int           // arrivals within the 10 s
		half     time.Duration // when half of them are due
	}{
		{100, 100, 1000, 5 * time.Second},
		{0, 100, 500, 7071 * time.Millisecond},
		{100, 0, 500, 2929 * time.Millisecond},
		{100, 300, 2000, 6180 * time.Millisecond},
	} {
		s := &schedule{start: start, end: start.Add(10 * time.Second), from: c.from, rate: c.to}
		var all []time.Duration
		for due := s.due(); due.Before(s.end); due = s.due() {
			if n := len(all); n > 0 && due.Sub(start) < all[n-1] {
				t.Fatalf("arrival %d of %v is due before the one before it", n, c)
			}
			all = append(all, due.Sub(start))
		}
		if n := len(all); n < c.count-1 || n > c.count+1 {
			t.Fatalf("%v: %d arrivals", c, n)
		}
		if got := all[c.count/2]; got < c.half-30*time.Millisecond || got > c.half+30*time.Millisecond {
			t.Errorf("%v: half are due after %v", c, got)
		}
		if again := s.due(); again.Before(s.end) {
			t.Errorf("%v: an arrival after the last is due at %v", c, again.Sub(start))
		}
	}
}

// TestDrive_TLS checks that https is driven with the authorities and the header of the target, and that a server
// that they do not know is refused.
func TestDrive_TLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Team") == "payments" && r.ProtoMajor == 1 {
			io.WriteString(w, "yes")
		}
	}))
	t.Cleanup(s.Close)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	tg := &Target{URL: u, Body: []byte("{}"), Allowed: "yes", Intents: 1, Header: http.Header{"X-Team": {"payments"}}}
	if _, err := Dial(t.Context(), tg, 1); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an unknown certificate: %v", err)
	}
	tg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	seen := make(chan Progress, 100)
	r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: 3 * liveEvery, Live: func(p Progress) { seen <- p }})
	if err != nil || r.Accepted == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if p := <-seen; p.Elapsed <= 0 || p.Accepted > r.Accepted {
		t.Errorf("progress %+v of %d", p, r.Accepted)
	}
}
