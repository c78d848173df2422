package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/tmaxmax/go-sse"

	"writ.example/writ/api/stream"
	"writ.example/writ/internal/scrub/scrubtest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/storagetest"
)

// streamReader reads a stream of the history with an independent parser.
type streamReader struct {
	t      *testing.T
	cancel context.CancelFunc
	events chan sse.Event
	id     string // the last one seen
}

// rawStream opens a stream and waits until it has begun. lastID may be empty. id is the first place of the
// stream. Reading fails after a minute.
func (h *harness) rawStream(ctx context.Context, token, query, lastID string) (body *bufio.Reader, id string) {
	t := h.t.(*testing.T)
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/v1/authorizations/stream"+query, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	must(t, err)
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("stream = %d %q, want 200 and events: %s", res.StatusCode, got, body)
	}
	context.AfterFunc(ctx, func() { _ = res.Body.Close() })
	// The place comes first, as an id without data, which no parser passes on.
	body = bufio.NewReader(res.Body)
	begin := block(t, body)
	id, ok := strings.CutPrefix(begin, ":\nid: ")
	if !ok || strings.Count(begin, "\n") != 2 {
		t.Fatalf("the stream begins with %q, want a comment and an id", begin)
	}
	return body, strings.TrimSpace(id)
}

// block reads lines up to an empty one.
func block(t *testing.T, body *bufio.Reader) (lines string) {
	t.Helper()
	for {
		line, err := body.ReadString('\n')
		must(t, err)
		if line == "\n" {
			return lines
		}
		lines += line
	}
}

// stream opens a stream and waits until it has begun. lastID may be empty.
func (h *harness) stream(token, query, lastID string) *streamReader {
	t := h.t.(*testing.T)
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	body, id := h.rawStream(ctx, token, query, lastID)
	s := &streamReader{t: t, cancel: cancel, events: make(chan sse.Event), id: id}
	t.Cleanup(cancel)
	go func() {
		defer close(s.events)
		for e, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: 16 << 20}) {
			if err != nil {
				return
			}
			if e.Data == "" {
				continue
			}
			select {
			case s.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// next returns the row or the skipped rows of the next event.
func (s *streamReader) next() (row *storage.Record, skipped *stream.Skipped) {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			s.t.Fatal("the stream has ended, want an event")
		}
		s.id = e.LastEventID
		switch e.Type {
		case "":
			row = new(storage.Record)
			must(s.t, json.Unmarshal([]byte(e.Data), row))
		case "skipped":
			skipped = new(stream.Skipped)
			must(s.t, json.Unmarshal([]byte(e.Data), skipped))
		default:
			s.t.Fatalf("an event of type %q", e.Type)
		}
	case <-time.After(30 * time.Second):
		s.t.Fatal("no event comes")
	}
	return row, skipped
}

// want reads rows with these decision ids in this order.
func (s *streamReader) want(ids ...string) {
	s.t.Helper()
	for i, id := range ids {
		row, skipped := s.next()
		if skipped != nil || row.DecisionID != id {
			s.t.Fatalf("event %d = %+v, %+v, want %s", i, row, skipped, id)
		}
	}
}

// wantEnd waits for the end of the stream. No event may come before it.
func (s *streamReader) wantEnd() {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if ok {
			s.t.Fatalf("event %+v, want the end of the stream", e)
		}
	case <-time.After(30 * time.Second):
		s.t.Fatal("the stream does not end")
	}
}

func (h *harness) decideN(n int, changes ...obj) (ids []string) {
	h.t.Helper()
	for range n {
		ids = append(ids, h.decision(h.operator(acme), changes...))
	}
	return ids
}

func TestStream_SendsEachRowAsTheSingleGETShowsIt(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.decideN(2) // before the stream
	s := h.stream(h.operator(acme), "", "")
	for _, id := range h.decideN(3) {
		row, _ := s.next()
		want := read[storage.Record](h.do("GET", "/v1/authorizations/"+id, h.operator(acme), nil).wantStatus(http.StatusOK))
		same(t, "row", want, *row)
	}
}

func TestStream_ResumesWithoutGapOrRepetition(t *testing.T) {
	h := start(t)
	h.register(acme)
	s := h.stream(h.operator(acme), "", "")
	begin := s.id
	ids := h.decideN(5)
	s.want(ids[:2]...)
	at := s.id
	s.cancel()
	ids = append(ids, h.decideN(2)...)
	s = h.stream(h.operator(acme), "", at)
	s.want(ids[2:]...)
	more := h.decideN(1)
	s.want(more...)
	h.stream(h.operator(acme), "", begin).want(append(ids, more...)...)
}

// TestStream_ResumesWithinABatch checks ids of rows that one head signed.
func TestStream_ResumesWithinABatch(t *testing.T) {
	h := start(t)
	h.register(acme)
	s := h.stream(h.operator(acme), "", "")
	place := s.id
	var intents []any
	for range 10 {
		intents = append(intents, intent()["intent"])
	}
	h.batch(h.operator(acme), "each", intents...)
	var all []string
	for range 10 {
		row, _ := s.next()
		all = append(all, row.DecisionID)
	}
	for i := range all {
		s = h.stream(h.operator(acme), "", place)
		s.want(all[i])
		place = s.id
		s.cancel()
	}
}

func TestStream_SelectsByTheFiltersOfTheList(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	s := h.stream(h.operator(acme), "?agent_id=ci&decision=allow", "")
	h.decision(h.operator(acme), obj{"agent_id": "another"})
	h.decisionOf(rival)
	s.want(h.decideN(2, obj{"agent_id": "ci"})...)
	for query, field := range map[string]string{
		"?decision=perhaps": "decision", "?limit=5": "limit", "?cursor=x": "cursor", "?from=yesterday": "from",
	} {
		h.do("GET", "/v1/authorizations/stream"+query, h.operator(acme), nil).wantField(field)
	}
}

func TestStream_RefusesAnIDThatIsNone(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	id := h.stream(h.operator(rival), "", "").id
	for _, bad := range []string{"x", id, id + "A", h.decideN(1)[0], strings.Repeat("A", 4000)} {
		h.do("GET", "/v1/authorizations/stream", h.operator(acme), nil, "Last-Event-ID", bad).wantField("Last-Event-ID")
	}
}

func TestStream_CountsWhatIsMoreThanTwentyASecond(t *testing.T) {
	h := start(t)
	h.register(acme)
	s := h.stream(h.operator(acme), "", "")
	ids := h.decideN(27)
	s.want(ids[:20]...)
	at := s.id
	for end := time.Now().Add(30 * time.Second); !strings.Contains(h.admin("/metrics").Body.String(), "writ_stream_skipped_total 7\n"); {
		if time.Now().After(end) {
			t.Fatal("7 rows are not skipped")
		}
	}
	h.clock.advance(time.Second)
	_, skipped := s.next()
	if want := (stream.Skipped{Count: 7, From: h.clock.Now().Add(-time.Second)}); skipped == nil || *skipped != want {
		t.Fatalf("after 20 rows of a second comes %+v, want %+v", skipped, want)
	}
	after := s.id
	more := h.decideN(1)
	s.want(more...)
	// A reader that has not seen that rows were skipped gets them.
	h.stream(h.operator(acme), "", at).want(append(ids[20:], more...)...)
	h.stream(h.operator(acme), "", after).want(more...)
}

func TestStream_EndsWithItsCredential(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, id := h.key(acme, "history:read")
	s := h.stream(key, "", "")
	s.want(h.decideN(1)...)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil)
	h.decideN(1) // is not seen
	s.wantEnd()
	s = h.stream(h.operator(acme), "", "")
	h.clock.advance(13 * time.Hour)
	h.decideN(1)
	s.wantEnd()
}

func TestStream_ABoundKeySeesItsAgentsOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.bound("ci", "history:read")
	s := h.stream(key, "", "")
	h.decision(h.operator(acme), obj{"agent_id": "another"})
	s.want(h.decideN(1, obj{"agent_id": "ci"})...)
	// A stream that selects by names ends when they may have changed.
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "a", "externalId": "ci"}).wantStatus(http.StatusCreated)
	s.wantEnd()
	again := h.stream(key, "", s.id)
	again.want(h.decideN(1, obj{"agent_id": "ci"})...)
}

func TestStream_IsBounded(t *testing.T) {
	h := start(t)
	var ends []func()
	for end, ok := h.server.viewers.Begin(acme); ok; end, ok = h.server.viewers.Begin(acme) {
		ends = append(ends, end)
	}
	h.do("GET", "/v1/authorizations/stream", h.operator(acme), nil).wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	for _, end := range ends {
		end()
	}
	h.do("HEAD", "/v1/authorizations/stream", h.operator(acme), nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/authorizations/stream?limit=1", h.operator(acme), nil).wantField("limit")
	h.store.fail("Chains", errors.New("broken"))
	h.do("GET", "/v1/authorizations/stream", h.operator(acme), nil).wantProblem(http.StatusInternalServerError, codeInternal)
	end, ok := h.server.viewers.Begin(acme)
	if !ok {
		t.Fatal("places of refused streams are not free")
	}
	end()
}

func TestStream_EndsWithTheServer(t *testing.T) {
	h := start(t)
	h.register(acme)
	s := h.stream(h.operator(acme), "", "")
	s.want(h.decideN(1)...)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, h.server.Shutdown(ctx))
	s.wantEnd()
}

// TestStream_AStalledReaderDelaysNoShutdown opens a stream whose reader reads nothing of megabytes.
func TestStream_AStalledReaderDelaysNoShutdown(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Write = time.Hour })
	h.register(acme)
	begin := h.stream(h.operator(acme), "", "").id
	h.seed(storagetest.NewWriter(), acme, 2000, strings.Repeat("x", 10_000))
	c := h.connected()
	defer c.Close()
	_, err := fmt.Fprintf(c, "GET /v1/authorizations/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: %s\r\nAuthorization: Bearer %s\r\n\r\n",
		begin, h.operator(acme))
	must(t, err)
	_, err = c.Read(make([]byte, 4096)) // the stream has begun
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, h.server.Shutdown(ctx))
}

// TestStream_SendsACommentWhenNothingComes checks that a comment comes 15 seconds after the last event, and
// not 15 seconds after the last comment.
func TestStream_SendsACommentWhenNothingComes(t *testing.T) {
	h := start(t)
	h.register(acme)
	body, id := h.rawStream(t.Context(), h.operator(acme), "", "")
	for range 2 {
		h.clock.advance(14 * time.Second)
		decided := h.decideN(1)[0]
		if got := block(t, body); !strings.Contains(got, `"decision_id":"`+decided+`"`) {
			t.Fatalf("after 14 seconds comes %q, want the row of %s", got, decided)
		}
	}
	for range 2 {
		h.clock.advance(15 * time.Second)
		got, ok := strings.CutPrefix(block(t, body), ":\nid: ")
		if place := strings.TrimSpace(got); !ok || place == id {
			t.Errorf("after 15 seconds of silence comes %q, want a comment and the place after the rows", got)
		} else if _, err := stream.ParsePlace(acme, place); err != nil {
			t.Errorf("the id %q of a comment: %v", place, err)
		}
	}
}

// TestStream_CountsWhatRetentionHasRemoved resumes after rows that retention has removed meanwhile.
func TestStream_CountsWhatRetentionHasRemoved(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	s := h.stream(h.operator(acme), "", "")
	begin := s.id
	ids := h.decideN(1)
	s.want(ids...)
	s.cancel()
	h.decideN(4)
	h.clock.advance(24 * time.Hour)
	before := h.clock.Now()
	ids = h.decideN(2)
	removed, err := h.store.RemoveRecords(t.Context(), acme, before, storage.Expired{Records: 100, Settled: 100})
	if want := (storage.Expired{Records: 5}); err != nil || removed != want {
		t.Fatalf("RemoveRecords = %+v, %v, want %+v", removed, err, want)
	}
	for place, count := range map[string]int{begin: 5, s.id: 4} {
		s := h.stream(h.operator(acme), "", place)
		if _, skipped := s.next(); skipped == nil || *skipped != (stream.Skipped{Count: count}) {
			t.Fatalf("a stream that resumes begins with %+v, want %d rows skipped at an unknown time", skipped, count)
		}
		after := s.id
		s.want(ids...)
		h.stream(h.operator(acme), "", after).want(ids...) // what was told as skipped is not told again
	}
}

// TestStream_HasNoSecretOfAnIntent streams decisions whose intents have a secret in each member.
func TestStream_HasNoSecretOfAnIntent(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.Minimal, ledger.Full} {
		t.Run(string(mode), func(t *testing.T) {
			h := start(t, func(c *setup) { c.Audit = mode })
			h.register(acme)
			h.rule(acme, `{"metadata.note":{"$gt":5}}`, `{"decision":"deny"}`) // fails with a cause
			h.rule(acme, `{"rego":"package p\n\nmatch if input.intent.metadata.note\n\nreason contains input.intent.resource"}`,
				`{"decision":"deny","reason":"noted"}`)
			token := h.operator(acme)
			live, place := h.rawStream(t.Context(), token, "", "")
			var secrets []string
			for i, c := range scrubtest.Canaries(31) {
				secret := c.Value
				if c.Secret != "" {
					secret = c.Secret
				}
				secrets = append(secrets, secret)
				in := obj{"metadata": obj{"note": c.Value, "nested " + strconv.Itoa(i): "is " + c.Value}}
				if !c.Lines {
					in["resource"], in["agent_id"] = c.Value, c.Value
					in["metadata"].(obj)[c.Value[:min(len(c.Value), 128)]] = "a key" // a longer one is refused
				}
				h.clock.advance(time.Second) // so that none is skipped
				h.decision(token, in)
				wantRowWithout(t, live, secrets)
			}
			resumed, _ := h.rawStream(t.Context(), token, "", place)
			for range secrets {
				wantRowWithout(t, resumed, secrets)
			}
		})
	}
}

// wantRowWithout reads an event. It must be a row that has none of these texts.
func wantRowWithout(t *testing.T, body *bufio.Reader, secrets []string) {
	t.Helper()
	event := block(t, body)
	if !strings.Contains(event, `"decision_id":`) {
		t.Fatalf("%q comes, want a row", event)
	}
	for _, secret := range secrets {
		if strings.Contains(event, secret) {
			t.Errorf("an event has the secret %q:\n%s", secret, event)
		}
	}
}
