package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/api/limit"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// intentsClient is the client of a stream of intents.
type intentsClient struct {
	t    *testing.T
	conn *websocket.Conn
	raw  net.Conn
}

// line is a message of a stream.
type line struct {
	Ref        *string             `json:"ref"`
	Replayed   bool                `json:"replayed"`
	Expired    bool                `json:"expired"`
	RetryAfter int                 `json:"retry_after"`
	Window     int                 `json:"window"`
	Bytes      int                 `json:"window_bytes"`
	Closing    string              `json:"closing"`
	Decision   string              `json:"decision"`
	Code       string              `json:"code"`
	Status     int                 `json:"status"`
	OK         bool                `json:"ok"`
	Instance   string              `json:"instance"`
	Errors     []engine.FieldError `json:"errors"`
	text       []byte
}

// intents opens a stream and reads its first message.
func (h *harness) intents(token, query string) *intentsClient {
	t := h.t.(*testing.T)
	t.Helper()
	c := &intentsClient{t: t}
	dialer := websocket.Dialer{
		Subprotocols: []string{streamProtocol},
		NetDial: func(network, addr string) (conn net.Conn, err error) {
			c.raw, err = net.Dial(network, addr)
			return c.raw, err
		},
	}
	conn, res, err := dialer.Dial("ws://"+h.addr+evaluateStreamPath+query, http.Header{"Authorization": {"Bearer " + token}})
	must(t, err)
	must(t, res.Body.Close())
	c.conn = conn
	t.Cleanup(func() { _ = conn.Close() })
	if hello := c.next(); hello.Window == 0 || hello.Bytes != maxWaitingBytes || conn.Subprotocol() != streamProtocol {
		t.Fatalf("the stream of %q begins with %s", conn.Subprotocol(), hello.text)
	}
	return c
}

// send sends lines. A string is sent unchanged.
func (c *intentsClient) send(lines ...any) {
	c.t.Helper()
	for _, line := range lines {
		text, ok := line.(string)
		if !ok {
			data, err := json.Marshal(line)
			must(c.t, err)
			text = string(data)
		}
		must(c.t, c.conn.WriteMessage(websocket.TextMessage, []byte(text)))
	}
}

// read returns the next message, or the error that ends the stream.
func (c *intentsClient) read() (l line, err error) {
	must(c.t, c.conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, l.text, err = c.conn.ReadMessage()
	if err != nil {
		return l, err
	}
	must(c.t, json.Unmarshal(l.text, &l))
	return l, nil
}

func (c *intentsClient) next() line {
	c.t.Helper()
	l, err := c.read()
	if err != nil {
		c.t.Fatalf("the stream ends with %v, want a message", err)
	}
	return l
}

// rest reads the stream to its end. It returns the answers by ref, what the server says of the end, and the close code.
func (c *intentsClient) rest() (answers map[string]line, closing string, code int) {
	c.t.Helper()
	answers = make(map[string]line)
	for {
		l, err := c.read()
		var end *websocket.CloseError
		switch {
		case errors.As(err, &end):
			return answers, closing, end.Code
		case err != nil:
			return answers, closing, 0
		case l.Closing != "":
			closing = l.Closing
		case l.Ref == nil:
			c.t.Errorf("an answer without a ref: %s", l.text)
		default:
			if _, twice := answers[*l.Ref]; twice {
				c.t.Errorf("%s is answered twice", *l.Ref)
			}
			answers[*l.Ref] = l
		}
	}
}

// wantEnd reads the stream to its end, and checks why it ended.
func (c *intentsClient) wantEnd(why ending, code int) map[string]line {
	c.t.Helper()
	answers, closing, got := c.rest()
	if closing != string(why) || got != code {
		c.t.Errorf("the stream ends with %q and the code %d, want %q and %d", closing, got, why, code)
	}
	return answers
}

// ref adds a ref to the body of an evaluation.
func ref(name string, body obj) obj {
	body["ref"] = name
	return body
}

// wantEnded waits until so many streams have ended for a reason.
func (h *harness) wantEnded(why ending, n int) {
	h.t.Helper()
	want := fmt.Sprintf("writ_intent_streams_ended_total{reason=%q} %d\n", string(why), n)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(h.admin("/metrics").Body.String(), want); {
		if time.Now().After(end) {
			h.t.Fatalf("metrics have no %s", want)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestIntentStream_AnswersLikeEvaluate checks that a line is answered as an evaluation is, with the ref.
func TestIntentStream_AnswersLikeEvaluate(t *testing.T) {
	h := start(t)
	h.register(acme)
	c := h.intents(h.operator(acme), "")
	for name, body := range map[string]obj{
		"allow": intent(), "deny": intent(obj{"action_type": "sql.drop"}), "escaped": intent(obj{"resource": "a\"b"}),
		"session": in(h.session(acme, nil), intent()),
	} {
		c.send(ref(name, body))
		got := c.next()
		delete(body, "ref")
		want := h.evaluate(acme, body).wantStatus(http.StatusOK)
		if text := `{"ref":"` + name + `",` + string(want.body[1:]); string(got.text) != text || want.header.Get(headerReplayed) != "true" {
			t.Errorf("the answer is %s, want %s", got.text, text)
		}
		c.send(ref("again", body))
		if got, text := c.next(), `{"ref":"again","replayed":true,`+string(want.body[1:]); string(got.text) != text {
			t.Errorf("the second answer is %s, want %s", got.text, text)
		}
	}
	h.clock.advance(24 * time.Hour)
	c = h.intents(h.operator(acme), "")
	body := ref("old", intent())
	c.send(body)
	c.next()
	h.clock.advance(11 * time.Hour)
	c.send(body)
	if got := c.next(); !got.Expired || !got.Replayed {
		t.Errorf("the answer with an expired receipt is %s", got.text)
	}
}

// TestIntentStream_AnswersEachLineOnce sends more lines than the window has, without waiting.
func TestIntentStream_AnswersEachLineOnce(t *testing.T) {
	h := start(t)
	h.register(acme)
	const n = 500
	for _, query := range []string{"", "?window=1", "?window=1024"} {
		c := h.intents(h.operator(acme), query)
		go func() {
			for i := range n {
				data, _ := json.Marshal(ref(fmt.Sprint(i), intent()))
				_ = c.conn.WriteMessage(websocket.TextMessage, data)
			}
			end := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = c.conn.WriteControl(websocket.CloseMessage, end, time.Now().Add(time.Minute))
		}()
		answers, closing, code := c.rest() // the server answers all lines before it answers the close frame
		if len(answers) != n || closing != "" || code != websocket.CloseNormalClosure {
			t.Errorf("%d answers, then %q and %d, want %d, none and 1000", len(answers), closing, code, n)
		}
		for name, a := range answers {
			if a.Decision != "allow" {
				t.Errorf("%s is answered with %s", name, a.text)
			}
		}
	}
	if got := testCount(t, h, acme); got != 3*n {
		t.Errorf("%d decisions, want %d", got, 3*n)
	}
}

func testCount(t *testing.T, h *harness, org string) int64 {
	t.Helper()
	used, _, err := h.server.decisions.Evaluations(t.Context(), org)
	must(t, err)
	return used
}

func TestIntentStream_ProblemsHaveTheRef(t *testing.T) {
	h := start(t)
	h.register(acme)
	c := h.intents(h.operator(acme), "")
	used := intent()
	h.evaluate(acme, used).wantStatus(http.StatusOK)
	other := intent(obj{"intent_id": used["intent"].(obj)["intent_id"], "resource": "other"})
	unknown := uuid.NewString()
	nowhere := intent(obj{"policy_id": unknown})
	nowhere["policy_id"] = unknown
	long := strings.Repeat("x", maxRef+1)
	for i, tc := range []struct {
		line             any
		ref, code, field string
	}{
		{ref("a", obj{}), "a", codeInvalidRequest, "policy_id"},
		{ref("b", intent(obj{"resource": "a\x00b"})), "b", codeInvalidRequest, "intent.resource"},
		{obj{"ref": "c", "policy_id": policyID, "intent": obj{}, "misspelt": 1}, "c", codeInvalidRequest, "misspelt"},
		{ref("d", other), "d", codeIntentConflict, ""},
		{ref("e", nowhere), "e", "policy_not_found", ""},
		{intent(), "", codeInvalidRequest, "ref"},
		{ref("", intent()), "", codeInvalidRequest, "ref"},
		{ref(long, intent()), "", codeInvalidRequest, "ref"},
		{obj{"ref": 5, "policy_id": policyID}, "", codeInvalidRequest, "ref"},
		{`{"ref":"x","ref":"y"}`, "x", codeInvalidRequest, "ref"},
		{`{"ref":null}`, "", codeInvalidRequest, "ref"},
		{``, "", codeInvalidRequest, "body"},
		{`[]`, "", codeInvalidRequest, "body"},
		{`{"ref":"z"`, "", codeInvalidRequest, "body"},
		{strings.Repeat("[", 20_000), "", codeInvalidRequest, "body"},
	} {
		c.send(tc.line)
		got := c.next()
		name := ""
		if got.Ref != nil {
			name = *got.Ref
		}
		field := tc.field == ""
		for _, e := range got.Errors {
			field = field || e.Field == tc.field
		}
		if name != tc.ref || got.Code != tc.code || !field || got.OK || got.Status == 0 || got.Instance != evaluateStreamPath {
			t.Errorf("line %d is answered with %s, want the ref %q, the code %s and the field %q", i, got.text, tc.ref, tc.code, tc.field)
		}
	}
	h.wantRows(acme, 1)
	c.send(ref("good", intent()))
	if got := c.next(); got.Decision != "allow" {
		t.Errorf("a good line after them is answered with %s", got.text)
	}
}

// TestIntentStream_Refuses checks requests that become no stream.
func TestIntentStream_Refuses(t *testing.T) {
	h := start(t)
	upgrade := []string{
		"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13",
		"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol", streamProtocol,
	}
	with := func(changes ...string) []string { return append(append([]string{}, upgrade...), changes...) }
	for name, tc := range map[string]struct {
		header []string
		field  string
	}{
		"no upgrade":          {nil, "Upgrade"},
		"another protocol":    {with("Upgrade", "h2c"), "Upgrade"},
		"no connection":       {with("Connection", "keep-alive"), "Connection"},
		"an old version":      {with("Sec-WebSocket-Version", "8"), "Sec-WebSocket-Version"},
		"no key":              {with("Sec-WebSocket-Key", ""), "Sec-WebSocket-Key"},
		"another subprotocol": {with("Sec-WebSocket-Protocol", "writ.v2, mqtt"), "Sec-WebSocket-Protocol"},
		"a page elsewhere":    {with("Origin", "https://evil.example"), "Origin"},
		"a sandboxed page":    {with("Origin", "null"), "Origin"},
	} {
		t.Run(name, func(t *testing.T) {
			h.do("GET", evaluateStreamPath, h.operator(acme), nil, tc.header...).wantField(tc.field)
		})
	}
	for _, window := range []string{"0", "1025", "x", ""} {
		h.do("GET", evaluateStreamPath+"?window="+window, h.operator(acme), nil, upgrade...).wantField("window")
	}
	h.do("GET", evaluateStreamPath, "", nil, upgrade...).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	h.do("GET", evaluateStreamPath, "", nil, with("Cookie", "session="+h.operator(acme))...).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	h.do("GET", evaluateStreamPath+"?token="+h.operator(acme), "", nil, upgrade...).wantProblem(http.StatusUnauthorized, codeCredentialInURL)
	reader, _ := h.key(acme, "history:read")
	h.do("GET", evaluateStreamPath, reader, nil, upgrade...).wantProblem(http.StatusForbidden, codeInsufficientScope)

	var ends []func()
	for end, ok := h.server.intents.open.Begin(acme); ok; end, ok = h.server.intents.open.Begin(acme) {
		ends = append(ends, end)
	}
	h.do("GET", evaluateStreamPath, h.operator(acme), nil, upgrade...).wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	h.intents(h.operator(rival), "") // one organization takes no place of another
	for _, end := range ends {
		end()
	}
	h.intents(h.operator(acme), "")
}

// TestIntentStream_ABreachEndsIt checks that the lines before a breach are answered, and that the stream ends.
func TestIntentStream_ABreachEndsIt(t *testing.T) {
	frame := func(first byte, text string) []byte { // masked with zeros
		return append([]byte{first, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
	}
	for name, tc := range map[string]struct {
		do   func(c *intentsClient) error
		why  ending
		code int
	}{
		"a huge message": {func(c *intentsClient) error {
			return c.conn.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte(" "), 300<<10))
		}, endedTooLong, websocket.CloseMessageTooBig},
		"a huge frame": {func(c *intentsClient) error {
			_, err := c.raw.Write(append([]byte{0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte(" "), 300<<10)...))
			return err
		}, endedTooLong, websocket.CloseMessageTooBig},
		"binary": {func(c *intentsClient) error {
			return c.conn.WriteMessage(websocket.BinaryMessage, []byte("{}"))
		}, endedNoText, websocket.CloseInvalidFramePayloadData},
		"broken UTF-8": {func(c *intentsClient) error {
			return c.conn.WriteMessage(websocket.TextMessage, []byte("{\"ref\":\"\xff\"}"))
		}, endedNoText, websocket.CloseInvalidFramePayloadData},
		"half a message": {func(c *intentsClient) error {
			_, err := c.raw.Write(frame(0x01, `{"ref":`))
			return err
		}, endedTooSlow, websocket.ClosePolicyViolation},
		"empty fragments": {func(c *intentsClient) error {
			_, err := c.raw.Write(append(frame(0x01, ""), bytes.Repeat(frame(0x00, ""), 1000)...))
			return err
		}, endedTooSlow, websocket.ClosePolicyViolation},
		"pings": {func(c *intentsClient) error {
			_, err := c.raw.Write(bytes.Repeat(frame(0x89, "x"), 1000))
			return err
		}, endedSignals, websocket.ClosePolicyViolation},
		"a compressed frame": {func(c *intentsClient) error {
			_, err := c.raw.Write(frame(0xc1, "\x00\x01\x02"))
			return err
		}, "", websocket.CloseProtocolError},
		"an unmasked frame": {func(c *intentsClient) error {
			_, err := c.raw.Write([]byte("\x81\x02{}"))
			return err
		}, "", websocket.CloseProtocolError},
		"a length beyond 63 bits": {func(c *intentsClient) error {
			_, err := c.raw.Write([]byte{0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
			return err
		}, "", websocket.CloseNormalClosure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, func(c *setup) { c.Limits.Read = 200 * time.Millisecond })
			h.register(acme)
			c := h.intents(h.operator(acme), "")
			for i := range 5 {
				c.send(ref(fmt.Sprint(i), intent()))
			}
			for range 5 {
				c.next()
			}
			must(t, tc.do(c))
			c.wantEnd(tc.why, tc.code)
			h.wantRows(acme, 5)
		})
	}
}

// TestIntentStream_IdleForTooLong checks that a client that answers no ping loses its connection.
func TestIntentStream_IdleForTooLong(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Idle = 200 * time.Millisecond })
	h.intents(h.operator(acme), "").wantEnd(endedTooSlow, websocket.ClosePolicyViolation)
}

// TestIntentStream_ReadsNoFurtherThanItsWindow holds the first commit back and counts what is taken meanwhile.
func TestIntentStream_ReadsNoFurtherThanItsWindow(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	c := h.intents(h.operator(acme), "?window=3")
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	for i := range 10 {
		c.send(ref(fmt.Sprint(i), intent()))
	}
	<-entered
	for {
		h.server.intents.mu.Lock()
		taken := 0
		for s := range h.server.intents.all {
			s.mu.Lock()
			taken = s.taken
			s.mu.Unlock()
		}
		h.server.intents.mu.Unlock()
		if taken > 3 {
			t.Errorf("%d lines are taken, want 3", taken)
		}
		if taken >= 3 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(release)
	for range 10 {
		c.next()
	}
}

// TestIntentStream_ANeverReadingClientIsCutOff checks that a client that does not read its answers delays nobody, and
// that its decisions are found.
func TestIntentStream_ANeverReadingClientIsCutOff(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Write = 200 * time.Millisecond })
	h.register(acme)
	h.register(rival)
	c := h.intents(h.operator(acme), "?window=1024")
	tcp := c.raw.(*net.TCPConn)
	must(t, tcp.SetReadBuffer(4096))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := 0; ; i++ {
			data, _ := json.Marshal(ref(fmt.Sprint(i), intent()))
			if c.conn.WriteMessage(websocket.TextMessage, data) != nil {
				return
			}
		}
	}()
	h.wantEnded(endedTooSlow, 1)
	wantDecision(t, h.evaluate(rival, intent()), "allow")
	<-sent
}

// TestIntentStream_ARevokedKeyDecidesNothing checks "The credential is checked again every second and at each change that
// revokes it".
func TestIntentStream_ARevokedKeyDecidesNothing(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, id := h.key(acme, "policy:evaluate")
	idle, busy, other := h.intents(key, ""), h.intents(key, ""), h.intents(h.operator(acme), "")
	busy.send(ref("before", intent()))
	busy.next()
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	for range 50 { // until the connection ends
		data, _ := json.Marshal(ref("after", intent()))
		_ = busy.conn.WriteMessage(websocket.TextMessage, data)
	}
	for {
		l, err := busy.read()
		if err != nil {
			break
		}
		if l.Closing == "" && l.Code != codeUnauthorized {
			t.Errorf("after the key was revoked comes %s", l.text)
		}
	}
	idle.wantEnd(endedRefused, websocket.ClosePolicyViolation)
	h.wantRows(acme, 1)
	other.send(ref("other", intent()))
	if got := other.next(); got.Decision != "allow" {
		t.Errorf("a stream of another credential gets %s", got.text)
	}
}

func TestIntentStream_AnExpiredCredentialEndsIt(t *testing.T) {
	h := start(t)
	c := h.intents(h.operator(acme), "")
	h.clock.advance(13 * time.Hour)
	c.wantEnd(endedRefused, websocket.ClosePolicyViolation)
}

// TestIntentStream_StopsWithTheOrganization checks "a kill switch holds for what was not yet decided".
func TestIntentStream_StopsWithTheOrganization(t *testing.T) {
	h := start(t)
	h.register(acme)
	c := h.intents(h.operator(acme), "")
	c.send(ref("before", intent()))
	if got := c.next(); got.Decision != "allow" {
		t.Fatalf("before the stop comes %s", got.text)
	}
	h.stopEverything(acme)
	for i := range 20 {
		c.send(ref(fmt.Sprint(i), intent()))
	}
	for range 20 {
		if got := c.next(); got.Decision != "deny" || !bytes.Contains(got.text, []byte(engine.CodeOrganizationStopped)) {
			t.Errorf("after the stop comes %s", got.text)
		}
	}
}

// TestIntentStream_LimitsCountIntents checks that each line counts for the credential's rate limit.
func TestIntentStream_LimitsCountIntents(t *testing.T) {
	h := start(t, func(c *setup) { c.RateLimits.Evaluate = limit.Rate{PerSecond: 1, Burst: 4} })
	h.register(acme)
	c := h.intents(h.operator(acme), "") // is counted, too
	for i := range 6 {
		c.send(ref(fmt.Sprint(i), intent()))
	}
	allowed := 0
	for range 6 {
		switch got := c.next(); {
		case got.Decision == "allow":
			allowed++
		case got.Code != codeRateLimited || got.RetryAfter != 1:
			t.Errorf("an answer is %s, want an allow or %s", got.text, codeRateLimited)
		}
	}
	if allowed != 3 {
		t.Errorf("%d are allowed, want 3", allowed)
	}
}

// TestIntentStream_AnswersWhatItTookBeforeItStops checks "On shutdown the server says closing and answers what it took."
func TestIntentStream_AnswersWhatItTookBeforeItStops(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	c, idle := h.intents(h.operator(acme), ""), h.intents(h.operator(rival), "")
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	c.send(ref("0", intent()))
	<-entered
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		stopped <- h.server.Shutdown(ctx)
	}()
	if got := c.next(); got.Closing != string(endedShutdown) {
		t.Errorf("the stream says %s, want that it is closing", got.text)
	}
	close(release)
	answers, _, code := c.rest()
	if answers["0"].Decision != "allow" || code != websocket.CloseGoingAway {
		t.Errorf("then come %v and the code %d, want the answer and 1001", answers, code)
	}
	idle.wantEnd(endedShutdown, websocket.CloseGoingAway)
	must(t, <-stopped)
}

// TestIntentStream_APanicAnswers checks that a panic while a group is decided answers its lines, and allows nothing.
func TestIntentStream_APanicAnswers(t *testing.T) {
	h, core := startElsewhere(t)
	core.decide = func(context.Context, engine.Set, *engine.Input) (engine.Result, error) { panic("oh") }
	c := h.intents(h.operator(acme), "")
	c.send(ref("a", intent()))
	if got := c.next(); got.Code != codeInternal || got.Ref == nil || *got.Ref != "a" {
		t.Errorf("the answer is %s, want a problem with the ref", got.text)
	}
	core.decide = allows
	c.send(ref("b", intent()))
	if got := c.next(); got.Decision != "allow" {
		t.Errorf("the next answer is %s, want an allow", got.text)
	}
}

func FuzzDecodeLine(f *testing.F) {
	s := &Server{}
	s.cfg.Scrub = scrubber()
	f.Add(`{"ref":"a","policy_id":"x","intent":{"intent_id":"y","metadata":{"a":"b"}},"session_id":"z"}`)
	f.Add(`{"ref":"\u0061","approval_id":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var in, slow evaluateLine
		in.evaluateBody, slow.evaluateBody = new(evaluateBody), new(evaluateBody)
		r := new(request)
		got := s.decodeLine(r, text, &in)
		want := s.decodeLine(r, " "+strings.Repeat(" ", condition.MaxText)+text, &slow) // is too long for the fast path
		if fmt.Sprint(got) != fmt.Sprint(want) || in.Ref != slow.Ref {
			t.Errorf("decodeLine(%q) = %q, %v, want %q, %v", text, in.Ref, got, slow.Ref, want)
		}
	})
}
