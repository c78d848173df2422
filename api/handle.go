package api

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/tracing"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// handler answers one request. It does not see fasthttp.
type handler func(*request) error

// withBody returns a handler for requests whose body is a JSON document of type In. check reports
// every mistake in the body. f gets only bodies without mistakes.
func withBody[In any](f, check func(*request, *In) error) handler {
	return withDecoder(decoding(check), func(r *request, in *In) error {
		if err := check(r, in); err != nil {
			return err
		}
		return f(r, in)
	})
}

// withDecoder is like withBody, but uses the strict decoder decode. decode must not keep the memory
// of the body. decode checks the document; f gets only documents that decode accepted.
func withDecoder[In any](decode, f func(*request, *In) error) handler {
	return func(r *request) error {
		in := new(In)
		if err := decode(r, in); err != nil {
			return err
		}
		return f(r, in)
	}
}

// decoding returns a strict decoder of bodies. It calls check even if some members were refused, so
// that one answer names all mistakes.
func decoding[In any](check func(*request, *In) error) func(*request, *In) error {
	return func(r *request, in *In) error {
		return engine.Decode(r.body, "", in, func() error { return check(r, in) })
	}
}

// withoutBody returns a handler of requests whose body must be empty or {}.
func withoutBody(f handler) handler {
	return func(r *request) error {
		if len(r.body) > 0 {
			if err := engine.Decode(r.body, "", new(struct{})); err != nil {
				return err
			}
		}
		return f(r)
	}
}

// scratch is memory for one request. A later request reuses it.
type scratch struct {
	req request
	id  []byte // the request id
}

func newScratchPool() *sync.Pool {
	return &sync.Pool{New: func() any { return &scratch{id: make([]byte, 0, condition.MaxName)} }}
}

// serve returns the Fiber handler of a route. The handler does the work that all routes share.
func (s *Server) serve(rt route) fiber.Handler {
	observed := s.metrics.route(rt.path, rt.method)
	if rt.is(deciding) {
		observed.duration(5) // exists before the first failure, which a rate would miss otherwise
	}
	return func(c *fiber.Ctx) error {
		fc := c.Context()
		start := s.decisions.Now()
		b := s.scratch.Get().(*scratch)
		s.begin(fc, b)
		if rt.scope == public {
			setAll(&fc.Response.Header, s.shown)
		}
		if rt.is(standard) {
			echoRequestID(fc)
		}
		b.req = request{ctx: s.deadlines.context(start), now: start, id: b.id, param: c.Params(rt.param)}
		var trace string
		if s.cfg.Tracer == nil {
			s.answer(fc, &rt, b)
		} else {
			trace = s.answerTraced(fc, &rt, b)
		}
		observed.observe(fc.Response.StatusCode(), s.decisions.Now().Sub(start), trace)
		b.release(s.scratch)
		return nil
	}
}

// answer handles a request and writes its answer. It returns the code of the answer's problem, or "".
func (s *Server) answer(fc *fasthttp.RequestCtx, rt *route, b *scratch) (code string) {
	if err := s.handle(fc, rt, b); err != nil {
		return s.fail(fc, rt, &b.req, err)
	}
	return ""
}

// answerTraced is answer within a span. It returns the id of the trace if a collector gets it, otherwise "".
func (s *Server) answerTraced(fc *fasthttp.RequestCtx, rt *route, b *scratch) (trace string) {
	ctx, span := tracing.Start(b.req.ctx, s.cfg.Tracer, rt.method, rt.path, traceparentOf(fc))
	b.req.ctx = ctx
	code := s.answer(fc, rt, b)
	tracing.End(span, fc.Response.StatusCode(), string(b.req.id), code)
	if in := span.SpanContext(); in.IsSampled() {
		return in.TraceID().String()
	}
	return ""
}

func (b *scratch) release(pool *sync.Pool) {
	b.req = request{}
	pool.Put(b)
}

// begin sets the request's id and the headers of every response.
func (s *Server) begin(fc *fasthttp.RequestCtx, b *scratch) {
	b.id = s.ids.append(b.id[:0], fc.Request.Header.Peek(headerRequestID))
	h := &fc.Response.Header
	h.SetBytesV(headerRequestID, b.id)
	setAll(h, s.headers)
}

// handle authenticates and reads the request, calls the handler and writes its response.
// It turns panics into errors.
func (s *Server) handle(fc *fasthttp.RequestCtx, rt *route, b *scratch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.metrics.panics.Inc()
			err = &panicError{p, debug.Stack()}
		}
	}()
	r := &b.req
	if err = s.admit(fc, rt, r); err != nil {
		return err
	}
	if rt.method != http.MethodGet && !rt.is(deciding) && rt.scope != public {
		r.ctx = storage.WithActor(r.ctx, ledger.KeptCredential(r.who.credential(), s.cfg.Scrub.Identity))
	}
	if err = s.awaitSlot(rt, r); err != nil {
		return err
	}
	defer func() { r.slot.Leave() }()
	if !rt.is(anyQuery) || rt.param != "" {
		if err = r.read(fc, rt); err != nil {
			return err
		}
	}
	if rt.is(stored) {
		if err = refuseSecrets(s.cfg.Scrub, r.body, rt.named(r)); err != nil {
			return err
		}
	}
	if err = rt.handler(r); err != nil {
		return err
	}
	return writeResponse(fc, b, r.res)
}

// fail answers with the problem document for err, and logs the request. It returns the problem's code.
func (s *Server) fail(fc *fasthttp.RequestCtx, rt *route, r *request, err error) (code string) {
	p := problemOf(err)
	s.metrics.problems.WithLabelValues(p.Code).Inc()
	writeProblem(fc, p, r.id)
	s.logRefused(fc, rt.method+" "+rt.path, r, p, err)
	return p.Code
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
