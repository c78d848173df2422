package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/stream"
	"writ.example/writ/decision/admission"
	"writ.example/writ/storage"
)

const (
	// alive is the time between two comments. Proxies close what is silent for longer.
	alive = 15 * time.Second
	// recheck is how long a stream may outlive its credential. Before each event it is checked anyway.
	recheck = time.Second
	// cutOff bounds the write that is under way when the server stops.
	cutOff = time.Second
	// keptBuffer is the size of the largest buffer that a stream uses again.
	keptBuffer = 64 << 10
)

// streamAuthorizations sends the rows of the history as server-sent events as they are decided. Package
// stream says what a reader can rely on.
func (s *Server) streamAuthorizations(r *request) error {
	var at stream.Place
	if r.lastEventID != "" {
		var err error
		if at, err = stream.ParsePlace(r.who.org, r.lastEventID); err != nil {
			return invalid(headerLastEventID, "must be the id of an event of this stream")
		}
	}
	end, ok := s.viewers.Begin(r.who.org)
	if !ok {
		return refuseWith(problem{Code: codeOverloaded, retryAfter: 5,
			Detail: "Too many streams of the history are open. Try again when one has ended."})
	}
	b := &streamBody{s: s, who: r.who, end: end}
	defer func() {
		if r.res.body == nil { // the handler failed or panicked
			b.release()
		}
	}()
	var err error
	if b.viewer, err = s.stream.Open(r.ctx, r.who.org, at); err != nil {
		return err
	}
	// The names of agents are read after Open, which reports each later change of them.
	f := s.filter(r)
	if err := r.query.done(); err != nil {
		return err
	}
	of, err := s.rows(r)
	if err != nil {
		return err
	}
	of.narrow(&f)
	b.named = of != nil || len(f.AgentIDs) > 0
	alike := "" // what a bound key sees depends on the key
	if of == nil {
		alike = fmt.Sprintf("%+v", f)
	}
	b.viewer.Select(alike, func(row *storage.Record) bool { return f.Selects(row) && of.has(row) })
	return r.ok(b)
}

// streamBody is the body of a stream. The goroutine of the connection reads and closes it after the
// handler has returned. So streamBody must not refer to memory of Fiber.
type streamBody struct {
	s      *Server
	who    principal
	named  bool // whether rows are selected by names of agents
	viewer *stream.Viewer
	end    func() // releases this stream's place among maxViewers

	credential fasthttp.RequestHeader // with the header Authorization of the request
	requestID  string
	conn       net.Conn
	unwatch    func() bool // unregisters the callback that aborts writes at shutdown

	begun bool
	live  bool      // whether nothing is missed any more
	buf   []byte    // what is to be sent
	sent  []byte    // the memory of buf
	last  time.Time // when something was sent last, by the clock of decisions
}

func (b *streamBody) release() {
	if b.viewer != nil {
		b.viewer.Close()
	}
	b.end()
}

// send makes b the body of fc's response, or ends b for a HEAD.
func (b *streamBody) send(fc *fasthttp.RequestCtx, requestID []byte) {
	h := &fc.Response.Header
	h.SetContentType("text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	if fc.Request.Header.IsHead() {
		h.SetContentLength(-1)
		b.release()
		return
	}
	b.requestID = string(requestID)
	b.credential.SetBytesV(fiber.HeaderAuthorization, fc.Request.Header.Peek(fiber.HeaderAuthorization))
	b.conn = fc.Conn()
	b.unwatch = context.AfterFunc(b.s.awake, func() {
		// A reader that does not read must not delay the shutdown. If setting the deadline fails, the
		// connection is closed.
		_ = b.conn.SetWriteDeadline(time.Now().Add(cutOff))
	})
	fc.Response.SetBodyStream(b, -1)
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.unwatch()
	b.release()
	return nil
}

// Read implements io.Reader. fasthttp sends each result at once, as a chunk. The stream ends with
// io.EOF: the reader comes again with the last id that it has seen.
func (b *streamBody) Read(p []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.s.metrics.panics.Inc()
			err = fmt.Errorf("%w\n%s", &panicError{value: p}, debug.Stack())
		}
		if err != nil && !errors.Is(err, io.EOF) {
			b.s.cfg.Log.Error("a stream was cut off", slog.String("request_id", b.requestID),
				slog.String("error", err.Error()))
		}
	}()
	for len(b.buf) == 0 {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	if err := b.conn.SetWriteDeadline(time.Now().Add(b.s.cfg.Limits.Write)); err != nil {
		return 0, io.EOF // the connection is closed
	}
	if b.s.awake.Err() != nil { // after SetWriteDeadline, which has overwritten the callback's
		return 0, io.EOF
	}
	n = copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// fill waits until there is something to send, but no longer than [recheck].
func (b *streamBody) fill() error {
	b.buf = b.sent[:0]
	defer func() {
		if b.sent = b.buf; cap(b.sent) > keptBuffer {
			b.sent = nil
		}
	}()
	if !b.begun {
		b.begun = true
		b.comment()
		return nil
	}
	if err := b.catchUp(); err != nil {
		return err
	}
	events := b.viewer.Take()
	if len(events) == 0 && b.live {
		if err := b.wait(); err != nil {
			return err
		}
		events = b.viewer.Take()
	}
	if !b.valid() || b.named && b.viewer.Renamed() {
		return io.EOF
	}
	for i := range events {
		if err := b.event(&events[i]); err != nil {
			return err
		}
	}
	if len(events) == 0 && b.s.decisions.Now().Sub(b.last) >= alive {
		b.comment()
	}
	if len(b.buf) > 0 {
		b.last = b.s.decisions.Now()
	}
	return nil
}

// wait waits for events.
func (b *streamBody) wait() error {
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	select {
	case <-b.s.awake.Done():
		return io.EOF
	case <-timer.C:
	case <-b.viewer.Wake():
	}
	return nil
}

// catchUp reads some of the rows that the viewer has missed. It takes a slot for them, as an export does
// for a page.
func (b *streamBody) catchUp() (err error) {
	if b.live {
		return nil
	}
	ctx := b.s.awake
	work := admission.Work{Org: b.who.org, Kind: admission.Managing, Patient: true}
	slot, verdict := b.s.decisions.Gate.Enter(ctx, work)
	if verdict != admission.Admitted {
		return io.EOF
	}
	defer slot.Leave()
	if b.live, err = b.viewer.CatchUp(ctx); err != nil && ctx.Err() != nil {
		return io.EOF
	}
	return err
}

// valid reports whether the credential still may read the history.
func (b *streamBody) valid() bool {
	now := b.s.decisions.Now()
	who, ok := b.s.auth.recognize(&b.credential, scopeHistoryRead, now)
	if !ok {
		var err error
		ctx, cancel := context.WithTimeout(b.s.awake, b.s.cfg.Limits.Handle)
		defer cancel()
		if who, err = b.s.auth.authenticate(ctx, &b.credential, scopeHistoryRead, now); err != nil {
			return false
		}
	}
	return b.s.auth.permit(&who, scopeHistoryRead) == nil
}

// comment adds a comment and the place of the viewer, with which a reader resumes that has seen no
// event. Parsers dispatch no event without data.
func (b *streamBody) comment() {
	b.buf = append(b.buf, ":\n"...)
	if id, ok := b.viewer.ID(); ok {
		b.buf = append(append(append(b.buf, "id: "...), id...), '\n')
	}
	b.buf = append(b.buf, '\n')
}

func (b *streamBody) event(e *stream.Event) error {
	b.buf = append(append(append(b.buf, "id: "...), e.ID...), '\n')
	var data []byte
	var err error
	if e.Skipped != nil {
		b.buf = append(b.buf, "event: skipped\n"...)
		data, err = json.Marshal(e.Skipped)
	} else {
		data, err = e.Row.JSON()
	}
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	b.buf = append(append(append(b.buf, "data: "...), data...), "\n\n"...)
	return nil
}
