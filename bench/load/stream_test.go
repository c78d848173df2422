package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// line is a message of a stream.
type line struct {
	Ref  string
	Kind int
	ID   string
}

// streams returns a target of streams with 4 intents on their way. answer returns what the server says after each
// message.
func streams(t *testing.T, answer func(in line) []string) *Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" || r.URL.Query().Get("window") != "4" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		up := websocket.Upgrader{Subprotocols: []string{protocol}}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.WriteMessage(websocket.TextMessage, []byte(`{"window":4,"window_bytes":100}`))
		for {
			var in line
			if c.ReadJSON(&in) != nil {
				return
			}
			for _, text := range answer(in) {
				if c.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"kind":%d,"id":"` + IntentID + `","policy":"` + PolicyID + `"}`
	return &Target{URL: u, Callers: []Caller{{Key: "key", PolicyID: PolicyID}}, Window: 4, Intents: 1, Decides: true, Messages: []Message{
		{Body: fmt.Appendf(nil, body, 0), Weight: 3, Want: "allow"}, {Body: fmt.Appendf(nil, body, 1), Weight: 1, Want: "deny"}}}
}

func resultOf(in line) string {
	return fmt.Sprintf(`{"ref":%q,"ok":true,"approved":%t,"decision":"%s","receipt":{}}`, in.Ref, in.Kind == 0, []string{"allow", "deny"}[in.Kind])
}

// TestStream_KeepsTheWindow checks that a stream has as many intents on their way as its window has, that answers in
// another order are matched, and that a driver runs one load after the other over the same streams.
func TestStream_KeepsTheWindow(t *testing.T) {
	var mu sync.Mutex
	// The server answers four together, the last first.
	ids := make(map[string]bool)
	var waits []line
	refs := make(map[string]bool)
	tg := streams(t, func(in line) (answers []string) {
		mu.Lock()
		defer mu.Unlock()
		if refs[in.Ref] || ids[in.ID] {
			t.Errorf("ref %s or id %s is sent twice", in.Ref, in.ID)
		}
		refs[in.Ref], ids[in.ID] = true, true
		if waits = append(waits, in); len(waits) == 4 {
			for i := range waits {
				answers = append(answers, resultOf(waits[3-i]))
			}
			waits = nil
		}
		return answers
	})
	d, err := Dial(t.Context(), tg, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		r, err := d.Drive(t.Context(), Options{Requests: 400})
		if err != nil {
			t.Fatal(err)
		}
		if r.Accepted != 400 || r.Scheduled.Count() != 400 || r.Mismatched != 0 || r.Decisions["allow"]+r.Decisions["deny"] != 400 ||
			r.Decisions["deny"] < 50 || r.Decisions["deny"] > 150 {
			t.Errorf("%d accepted, decisions %v, %d mismatched; want 400, a quarter denied", r.Accepted, r.Decisions, r.Mismatched)
		}
	}
}

// TestStream_OpenLoop checks that arrivals keep to their schedule, and that refusals are counted.
func TestStream_OpenLoop(t *testing.T) {
	var asked atomic.Int64
	tg := streams(t, func(in line) []string {
		if asked.Add(1)%4 == 0 {
			return []string{fmt.Sprintf(`{"ref":%q,"ok":false,"status":503,"retry_after":1}`, in.Ref)}
		}
		return []string{resultOf(in)}
	})
	r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: 200 * time.Millisecond, Rate: 400, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Accepted != 60 || r.Refused != 20 || r.Unsent != 0 {
		t.Errorf("%d accepted, %d refused, %d unsent, want 60, 20 and none", r.Accepted, r.Refused, r.Unsent)
	}
}

// TestStream_Fails checks what ends a run.
func TestStream_Fails(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(in line) string
		want   string
	}{
		"a problem":        {func(in line) string { return fmt.Sprintf(`{"ref":%q,"ok":false,"status":400}`, in.Ref) }, "status 400"},
		"another decision": {func(in line) string { in.Kind = 1 - in.Kind; return resultOf(in) }, "not decided as wanted"},
		"a closing stream": {func(line) string { return `{"closing":"shutting_down","detail":"it stops"}` }, "shutting_down"},
		"no ref":           {func(line) string { return `{"ref":null,"ok":false,"status":400}` }, "the stream says"},
		"a foreign ref":    {func(line) string { return `{"ref":"9-1","ok":true}` }, "the stream says"},
	} {
		_, err := Drive(t.Context(), streams(t, func(in line) []string { return []string{c.answer(in)} }), Options{Conns: 1, Duration: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	tg := streams(t, func(line) []string { return nil })
	tg.Callers[0].Key = "nope"
	if _, err := Dial(t.Context(), tg, 1); err == nil || !strings.Contains(err.Error(), "status 403") {
		t.Errorf("a stream that is refused: %v", err)
	}
}

// TestAbuser_Answered checks that a stream that fills or dribbles counts all answers, goes on after a refusal, and is
// opened again after its end.
func TestAbuser_Answered(t *testing.T) {
	for _, m := range []Manner{Fill, Dribble} {
		var asked atomic.Int64
		tg := streams(t, func(in line) []string {
			switch asked.Add(1) % 4 {
			case 0:
				return []string{`{"closing":"shutting_down","detail":"it stops"}`}
			case 1:
				return []string{fmt.Sprintf(`{"ref":%q,"ok":false,"status":503,"retry_after":60}`, in.Ref)}
			case 2:
				return []string{fmt.Sprintf(`{"ref":%q,"ok":false,"status":429}`, in.Ref)}
			}
			return []string{resultOf(in)}
		})
		tg.Manner, tg.Decides = m, false
		r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: 300 * time.Millisecond, Hostile: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Accepted == 0 || r.Refused == 0 || r.Others[429] == 0 || r.Others[101] < 4 || r.Dropped == 0 {
			t.Errorf("%s: %d accepted, %d refused, %v, %d dropped; want some of each", m, r.Accepted, r.Refused, r.Others, r.Dropped)
		}
	}
}

// TestAbuser_Unanswered checks that a stream that stalls sends no message, and that one that never reads sends more
// than the window has.
func TestAbuser_Unanswered(t *testing.T) {
	for m, fits := range map[Manner]func(messages int64) bool{
		Stall: func(n int64) bool { return n == 0 },
		Deaf:  func(n int64) bool { return n > 4 },
	} {
		var asked atomic.Int64
		tg := streams(t, func(in line) []string {
			asked.Add(1)
			return []string{resultOf(in)}
		})
		tg.Manner, tg.Decides = m, false
		r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: 300 * time.Millisecond, Hostile: true})
		if err != nil {
			t.Fatal(err)
		}
		if !fits(asked.Load()) || r.Accepted != 0 || r.Others[101] != 2 {
			t.Errorf("%s: %d messages, %d accepted, %v", m, asked.Load(), r.Accepted, r.Others)
		}
	}
}

// TestDribble checks that each byte is a write of its own.
func TestDribble(t *testing.T) {
	var writes []string
	w := Dribble.writer(recorded{&writes})
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil || strings.Join(writes, " ") != "a b c" {
		t.Errorf("%d, %v, writes %q", n, err, writes)
	}
}

type recorded struct{ writes *[]string }

func (r recorded) Write(p []byte) (int, error) {
	*r.writes = append(*r.writes, string(p))
	return len(p), nil
}

// TestDrive_Approves checks that each intent is held, approved by the approver's key, and sent again with the
// approval.
func TestDrive_Approves(t *testing.T) {
	const held = "01a1fe16-6700-7f79-840b-7f1555d889cc"
	var approved atomic.Int64
	tg := target(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID         string `json:"id"`
			ApprovalID string `json:"approval_id"`
			Status     string `json:"status"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.Method == http.MethodPatch:
			if key != "finance" || in.Status != "approved" || r.URL.Path != "/v1/approvals/"+held {
				t.Errorf("%s approves with %q at %s", key, in.Status, r.URL.Path)
			}
			approved.Add(1)
			fmt.Fprint(w, "{}")
		case key != "agent":
			t.Errorf("%s asks", key)
		case in.ApprovalID == "":
			fmt.Fprint(w, `{"ok":true,"approved":false,"decision":"approval_required","reasons":[],"decision_id":"`+held+`"}`)
		default:
			fmt.Fprint(w, `{"ok":true,"approved":true,"decision":"allow","reasons":[],"decision_id":"`+in.ApprovalID+`"}`)
		}
	})
	tg.Body, tg.Allowed, tg.Decides, tg.Approves = nil, "", true, true
	tg.Callers = []Caller{{Key: "agent", Approver: "finance"}}
	tg.Messages = []Message{{Body: []byte(`{"id":"` + IntentID + `"}`), Weight: 1, Want: "approval_required"}}
	r, err := Drive(t.Context(), tg, Options{Conns: 2, Duration: time.Minute, Requests: 50})
	if err != nil {
		t.Fatal(err)
	}
	if r.Accepted != 50 || approved.Load() != 50 || r.Decisions["allow"] != 50 {
		t.Errorf("%d accepted, %d approved, %v; want 50 each", r.Accepted, approved.Load(), r.Decisions)
	}
	tg.Messages[0].Want = "deny"
	if _, err := Drive(t.Context(), tg, Options{Conns: 1, Requests: 1}); err == nil || !strings.Contains(err.Error(), "got approval_required, want deny") {
		t.Errorf("an intent that is not decided as wanted: %v", err)
	}
}
