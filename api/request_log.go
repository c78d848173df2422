package api

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"writ.example/writ/storage/ledger"
)

// requestLines is how many refused and failed requests have a line of their own in each second.
const requestLines = 100

// requestLog writes a line for each request that was refused or failed. Of the requests beyond
// requestLines in a second it writes one line, with their number.
type requestLog struct {
	log *slog.Logger

	mu    sync.Mutex
	lines int // the requests of this second
}

// refused is a request that was refused or failed.
type refused struct {
	requestID   []byte
	route       string // method and pattern of the path
	credential  string // as rows name it, or empty
	traceparent string
	took        time.Duration
	problem     *problem
	err         error
}

func (l *requestLog) add(r refused) {
	if !l.hasRoom() {
		return
	}
	level, words := slog.LevelInfo, "request refused"
	attrs := []slog.Attr{
		slog.String("request_id", string(r.requestID)),
		slog.String("route", r.route),
		slog.Int("status", r.problem.Status),
		slog.String("code", r.problem.Code),
	}
	if r.credential != "" {
		attrs = append(attrs, slog.String("credential", r.credential))
	}
	attrs = append(attrs, slog.Float64("duration_ms", float64(r.took.Microseconds())/1000))
	if r.traceparent != "" {
		attrs = append(attrs, slog.String("traceparent", r.traceparent))
	}
	if r.problem.logged {
		level, words = slog.LevelError, "request failed"
		attrs = append(attrs, slog.String("error", r.err.Error()))
	}
	var panicked *panicError
	if errors.As(r.err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	l.log.LogAttrs(context.Background(), level, words, attrs...)
}

// hasRoom counts a request, and reports whether it has a line of its own.
func (l *requestLog) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == 0 {
		time.AfterFunc(time.Second, l.endSecond)
	}
	l.lines++
	return l.lines <= requestLines
}

// endSecond writes the number of requests that had no line.
func (l *requestLog) endSecond() {
	l.mu.Lock()
	summed := l.lines - requestLines
	l.lines = 0
	l.mu.Unlock()
	if summed > 0 {
		l.log.Warn("requests refused or failed, without a line each", slog.Int("summed", summed))
	}
}

// traceparent is the form of the W3C's header Traceparent.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// logRefused logs a request that p answers.
func (s *Server) logRefused(fc *fasthttp.RequestCtx, route string, r *request, p *problem, err error) {
	line := refused{requestID: r.id, route: route, problem: p, err: err}
	if !r.now.IsZero() {
		line.took = s.decisions.Now().Sub(r.now)
	}
	if r.who.subject != "" {
		line.credential = ledger.KeptCredential(r.who.credential(), s.cfg.Scrub.Identity)
	}
	line.traceparent = traceparentOf(fc)
	s.refused.add(line)
}

// traceparentOf returns the request's traceparent, or "" if it has none in the W3C's form.
func traceparentOf(fc *fasthttp.RequestCtx) string {
	if t := fc.Request.Header.Peek("Traceparent"); traceparent.Match(t) {
		return string(t)
	}
	return ""
}
