package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/limit"
	"writ.example/writ/api/tracing"
	"writ.example/writ/api/wire"
	"writ.example/writ/decision/admission"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage/ledger"
)

// A stream of intents is one connection on which a client sends intents without waiting for the answers.
//
//	reader ─▶ waiting ─▶ decider ─▶ Decide, which commits ─▶ answers
//	   ▲                (at most two)                           │
//	   └────────── room: window, maxWaitingBytes ◀──────────────┘
//
// The reader takes lines while there is room. It starts a decider when it has read what has arrived together. A
// decider takes all lines that wait, but no more than a batch may have, and decides them like the intents of a
// batch: in one slot of the gate, with one commit. While one decider waits for its commit, the other one decides.
// The keeper checks the credential and ends the stream.
// Each line that was taken is answered, unless the connection is lost.

const (
	evaluateStreamPath = "/v1/policy/evaluate/stream"
	streamProtocol     = "writ.v1"
	// defaultWindow is how many intents of a stream may be without an answer, and maxWindow is how many a client may
	// ask for.
	defaultWindow, maxWindow = 64, 1024
	// maxWaitingBytes bounds the bodies of a stream that are without an answer.
	maxWaitingBytes = 4 << 20
	// maxDeciders is how many groups of a stream are decided at once. The second one keeps the processors busy while
	// the first one waits for its commit.
	maxDeciders = 2
	// maxRef is the greatest length of a ref.
	maxRef = 64
	// maxIntentStreams bounds the streams of intents. An organization may have a thirty-second of them. Each takes
	// some 45 KiB, and the bodies that wait.
	maxIntentStreams = 2048
)

// ending says why a stream of intents ends. It is a part of the interface, and the label of a metric.
type ending string

const (
	endedByClient  ending = "client"
	endedLost      ending = "lost" // the connection is lost, or the client breaches RFC 6455
	endedShutdown  ending = "shutting_down"
	endedRefused   ending = "unauthorized"
	endedTooLong   ending = "body_too_large"
	endedNoText    ending = "not_text"
	endedTooSlow   ending = "too_slow"
	endedSignals   ending = "too_many_pings"
	endedNoStreams ending = "overloaded"
)

// endings has the close code of each ending that the server chooses, and its text for the client.
var endings = map[ending]struct {
	code   int
	detail string
}{
	endedShutdown: {wire.EndGoingAway, "The server stops. Open another stream, and send there what has no answer."},
	endedRefused:  {wire.EndPolicy, "The credential is not accepted any more."},
	endedTooLong:  {wire.EndTooLong, "A message is longer than the body of an evaluation may be."},
	endedNoText:   {wire.EndNoText, "A message is not text in UTF-8."},
	endedTooSlow:  {wire.EndPolicy, "A message did not arrive in time, or nothing did for too long."},
	endedSignals:  {wire.EndPolicy, "Too many pings in a second."},
	endedNoStreams: {wire.EndGoingAway,
		"Too many streams are open. Try again when one has ended, or send single requests."},
}

// evaluateStream makes a stream of intents of a request.
func (s *Server) evaluateStream(r *request) error {
	window := r.query.number("window", defaultWindow, maxWindow)
	if err := r.query.done(); err != nil {
		return err
	}
	if r.unfit != nil {
		return r.unfit
	}
	// The place is free again until the connection has become a stream, because fasthttp does not say if that fails.
	end, ok := s.intents.open.Begin(r.who.org)
	if !ok {
		return refuseWith(problem{Code: codeOverloaded, retryAfter: 5, Detail: endings[endedNoStreams].detail})
	}
	end()
	status, method := http.StatusSwitchingProtocols, http.MethodGet
	if r.lines {
		status, method = http.StatusOK, http.MethodPost
	}
	return r.answer(status, &intentStream{
		s: s, org: r.who.org, subject: r.who.subject, window: window, method: method,
		recheck: make(chan struct{}, 1), over: make(chan struct{}),
	})
}

// lineConn is the connection of a stream: a [wire.Socket] or [wire.Lines].
type lineConn interface {
	OnWait(f func()) bool
	Read() ([]byte, error)
	Append(dst, text []byte) []byte
	Send(messages []byte) error
	Ping()
	Hurry()
	End(code int, why string)
}

// intentStream is a stream of intents. It refers to no memory of Fiber.
type intentStream struct {
	s            *Server
	org, subject string
	window       int
	gathers      bool   // whether the reader starts deciders only before it waits
	method       string // of the request
	socket       lineConn
	credential   []byte // the header Authorization of the request
	requestID    []byte

	recheck chan struct{}  // has a value when the credential may have changed
	over    chan struct{}  // is closed when the stream begins to end
	working sync.WaitGroup // the deciders and the keeper

	mu       sync.Mutex
	moved    sync.Cond // when an answer was sent, and when the stream begins to end
	waiting  []string  // the lines that no decider has taken
	taken    int       // how many lines have no answer; bytes is their length
	bytes    int
	deciders int
	why      ending // empty while lines are taken
}

// send implements sender.
func (c *intentStream) send(fc *fasthttp.RequestCtx, requestID []byte) {
	c.requestID = bytes.Clone(requestID)
	c.credential = bytes.Clone(fc.Request.Header.Peek(fiber.HeaderAuthorization))
	c.moved.L = &c.mu
	l := c.s.cfg.Limits
	limits := wire.PeerLimits{Bytes: l.Body, Message: l.Read, Idle: l.Idle, Write: l.Write}
	if c.method == http.MethodPost {
		wire.OpenLines(fc, limits, func(l *wire.Lines) { c.run(l) })
		return
	}
	wire.Upgrade(fc, streamProtocol, limits, func(s *wire.Socket) { c.run(s) })
}

// run reads the stream until it ends.
func (c *intentStream) run(socket lineConn) {
	c.socket = socket
	leave, ok := c.s.intents.enter(c)
	defer leave()
	if !ok {
		c.end(endedNoStreams)
	}
	defer context.AfterFunc(c.s.awake, socket.Hurry)()
	c.tell(`{"window":` + strconv.Itoa(c.window) + `,"window_bytes":` + strconv.Itoa(maxWaitingBytes) + `}`)
	c.working.Go(c.keep)
	c.gathers = socket.OnWait(c.start)
	c.read()
	c.working.Wait()
}

// read takes lines until the stream ends.
func (c *intentStream) read() {
	defer c.start()
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
			c.end(endedLost)
		}
	}()
	for c.room() {
		line, err := c.socket.Read()
		if err != nil {
			c.end(endingOf(err))
			return
		}
		c.take(string(line))
	}
}

// panicked counts and logs a panic.
func (c *intentStream) panicked(p any) {
	c.s.metrics.panics.Inc()
	c.s.cfg.Log.Error("a stream of intents panicked", slog.String("request_id", string(c.requestID)),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}

// endingOf returns the ending for an error of reading.
func endingOf(err error) ending {
	switch {
	case errors.Is(err, wire.ErrTooLong):
		return endedTooLong
	case errors.Is(err, wire.ErrNoText):
		return endedNoText
	case errors.Is(err, wire.ErrSlow), errors.Is(err, wire.ErrSilent):
		return endedTooSlow
	case errors.Is(err, wire.ErrSignals):
		return endedSignals
	case errors.Is(err, io.EOF):
		return endedByClient
	}
	return endedLost
}

// tell sends a message that is no answer.
func (c *intentStream) tell(message string) {
	c.answered(0, 0, c.socket.Send(c.socket.Append(nil, []byte(message))))
}

// room waits until another line may be taken. It returns false once the stream ends.
func (c *intentStream) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.why == "" && (c.taken >= c.window || c.taken > 0 && c.bytes > maxWaitingBytes-c.s.cfg.Limits.Body) {
		c.startLocked()
		c.moved.Wait()
	}
	return c.why == ""
}

// take adds a line to those that wait, unless the stream ends.
func (c *intentStream) take(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != "" {
		return
	}
	c.waiting = append(c.waiting, line)
	c.taken++
	c.bytes += len(line)
	if !c.gathers {
		c.startLocked()
	}
}

// start starts a decider if lines wait.
func (c *intentStream) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startLocked()
}

func (c *intentStream) startLocked() {
	if len(c.waiting) > 0 && c.deciders < maxDeciders {
		c.deciders++
		c.working.Go(c.decide)
	}
}

// end begins to end the stream. The first reason counts.
func (c *intentStream) end(why ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != "" {
		return
	}
	c.why = why
	close(c.over)
	c.moved.Broadcast()
}

// keep checks the credential every second, and when it may have changed, until the stream ends. Then it ends the
// connection.
func (c *intentStream) keep() {
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	for pinged := time.Now(); ; {
		select {
		case <-c.over:
			c.finish()
			return
		case <-c.s.awake.Done():
			c.end(endedShutdown)
			continue
		case <-ticker.C:
		case <-c.recheck:
		}
		_, err := c.permitted(nil)
		c.endRefused(err)
		if time.Since(pinged) >= alive {
			pinged = time.Now()
			c.socket.Ping()
		}
	}
}

// permitted returns whom the credential stands for, if it still may decide.
func (c *intentStream) permitted(slot *admission.Slot) (principal, error) {
	s, now := c.s, c.s.decisions.Now()
	var h fasthttp.RequestHeader // each call has its own, because reading one changes it
	h.SetBytesV(fiber.HeaderAuthorization, c.credential)
	who, ok := s.auth.recognize(&h, scopeEvaluate, now)
	if !ok {
		defer condition.Paused(slot)()
		var err error
		if who, err = s.auth.authenticate(s.deadlines.context(now), &h, scopeEvaluate, now); err != nil {
			return who, err
		}
	}
	return who, s.auth.permit(&who, scopeEvaluate)
}

// endRefused ends the stream if err refuses its credential. A store that cannot be asked ends no stream.
func (c *intentStream) endRefused(err error) {
	if err != nil && problemOf(err).Status < http.StatusInternalServerError {
		c.end(endedRefused)
	}
}

// finish says why the stream ends, waits for the answers that are still to come, and closes the connection.
func (c *intentStream) finish() {
	c.mu.Lock()
	why := c.why
	c.mu.Unlock()
	end, told := endings[why]
	if told {
		c.tell(`{"closing":"` + string(why) + `","detail":"` + end.detail + `"}`)
	} else {
		end.code = wire.EndNormal
	}
	c.mu.Lock()
	for c.taken > 0 {
		c.moved.Wait()
	}
	c.mu.Unlock()
	c.s.intents.ended.WithLabelValues(string(why)).Inc()
	c.socket.End(end.code, string(why))
}

// decide decides groups of lines until none waits.
func (c *intentStream) decide() {
	out, _ := c.s.intents.rooms.Get().(*answerRoom)
	if out == nil {
		out = new(answerRoom)
	}
	defer func() {
		if cap(out.messages) <= maxRoom {
			c.s.intents.rooms.Put(out)
		}
	}()
	for {
		now := c.s.decisions.Now()
		r := &request{ctx: c.s.deadlines.context(now), now: now, id: c.requestID}
		var err error
		r.slot, err = c.s.decisions.Enter(r.ctx, c.org, admission.Deciding)
		lines, bytes := c.next()
		if len(lines) == 0 {
			r.slot.Leave()
			return
		}
		c.answers(r, lines, err, out)
		c.answered(len(lines), bytes, c.socket.Send(out.messages))
	}
}

// answerRoom is the memory in which a decider makes the answers of a group.
type answerRoom struct {
	text     []byte // of one answer
	messages []byte // of all answers
}

// maxRoom is how many bytes of answers a room may have that another decider uses.
const maxRoom = 256 << 10

// next returns the lines to decide together. Without such a line the decider must
// end.
func (c *intentStream) next() (lines []string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.waiting), maxBatch)
	if n == 0 {
		c.deciders--
		return nil, 0
	}
	lines = c.waiting[:n:n]
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	for _, line := range lines {
		bytes += len(line)
	}
	return lines, bytes
}

// answered notes that n lines were answered. If err is set, the answers could not be sent, and the lines that wait
// are dropped: nobody would learn of their decisions.
func (c *intentStream) answered(n, bytes int, err error) {
	c.mu.Lock()
	c.taken -= n
	c.bytes -= bytes
	if err != nil {
		c.taken -= len(c.waiting)
		c.waiting = nil
	}
	c.moved.Broadcast()
	c.mu.Unlock()
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		c.end(endedTooSlow)
	case err != nil:
		c.end(endedLost)
	}
}

// answers decides lines and puts their answers into out. If err is set, it is the answer to all of them. answers gives
// back the slot of r.
func (c *intentStream) answers(r *request, lines []string, err error, out *answerRoom) {
	defer r.slot.Leave()
	all := make([]lineAnswer, len(lines))
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
			for i := range all {
				all[i] = lineAnswer{ref: all[i].ref, Outcome: ledger.Outcome{Err: errPanicked}}
			}
			c.putAnswers(out, r, all)
		}
	}()
	if err == nil {
		r.who, err = c.permitted(&r.slot)
		c.endRefused(err)
	}
	if c.s.cfg.Tracer != nil {
		ctx, span := tracing.Start(r.ctx, c.s.cfg.Tracer, c.method, evaluateStreamPath, "")
		defer tracing.End(span, http.StatusOK, string(r.id), "")
		r.ctx = ctx
	}
	c.s.decideLines(r, lines, all, err)
	c.putAnswers(out, r, all)
}

var errPanicked = errors.New("deciding a group of a stream panicked")

// intentStreams has the open streams of intents.
type intentStreams struct {
	open  *limit.Tally[string] // by organization
	ended *prometheus.CounterVec
	rooms sync.Pool // of *answerRoom

	mu  sync.Mutex
	all map[*intentStream]bool
}

func newIntentStreams(reg prometheus.Registerer) *intentStreams {
	s := &intentStreams{
		open: limit.NewTally[string](maxIntentStreams, maxIntentStreams/32), all: make(map[*intentStream]bool),
		ended: telemetry.CounterVec("writ_intent_streams_ended_total", "Ended streams of intents, by reason.",
			"reason"),
	}
	reg.MustRegister(s.ended, telemetry.GaugeFunc("writ_intent_streams", "Open streams of intents.",
		func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(len(s.all))
		}))
	s.ended.WithLabelValues(string(endedTooSlow)) // an alert on a rate would miss the first
	return s
}

// enter counts c as open until leave is called. ok is false if there are too many, or if the server stops.
func (s *intentStreams) enter(c *intentStream) (leave func(), ok bool) {
	end, ok := s.open.Begin(c.org)
	if !ok {
		return func() {}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[c] = true
	return func() {
		s.mu.Lock()
		delete(s.all, c)
		s.mu.Unlock()
		end()
	}, true
}

// recheck makes the streams of a key check their credential at once. An empty id stands for every credential.
func (s *intentStreams) recheck(tokenID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if tokenID == "" || tokenID == c.subject {
			select {
			case c.recheck <- struct{}{}:
			default:
			}
		}
	}
}

// wait waits until every stream has ended. No further one may begin.
func (s *intentStreams) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		s.open.Close()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
