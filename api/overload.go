package api

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ/admission"
	"writ/ledger"
)

// refusalsPerCore is how many refusals a second take about a thirtieth of a
// core: 10 to 15 µs each, nearly all of it the kernel's, to read and to answer.
const refusalsPerCore = 3000

// gatedRoute is a route behind the gate, with its refusal ready but for the
// request's id, which goes into the header and between before and after.
type gatedRoute struct {
	path, before, after []byte
	header              fasthttp.ResponseHeader
	observed            *routeMetrics
	refused             prometheus.Counter
}

// gatedRoutes returns the routes that wait their turn. All others answer
// however many decisions wait, the kill switch above all.
func (s *Server) gatedRoutes() ([]gatedRoute, error) {
	const id = "REQUEST-ID"
	var all []gatedRoute
	for _, rt := range s.routes() {
		if !rt.is(gated) {
			continue
		}
		p := problemOf(ledger.ErrOverloaded)
		p.complete(rt.path, id)
		body, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("preparing the refusal of %s: %w", rt.path, err)
		}
		before, after, _ := bytes.Cut(body, []byte(id))
		all = append(all, gatedRoute{
			path: []byte(rt.path), before: before, after: after,
			observed: s.metrics.route(rt.path, rt.method), refused: s.metrics.problems.WithLabelValues(p.Code),
		})
	}
	return all, nil
}

// gated returns inner with the routes that are gated behind s.gate. It stands in
// front of Fiber: what is refused has been read and no more.
func (s *Server) gated(app *fiber.App, routes []gatedRoute, inner fasthttp.RequestHandler) fasthttp.RequestHandler {
	fc := app.AcquireCtx(&fasthttp.RequestCtx{})
	defer app.ReleaseCtx(fc)
	s.begin(fc, &scratch{})
	for i := range routes {
		h := &routes[i].header
		fc.Response().Header.CopyTo(h)
		h.SetStatusCode(http.StatusServiceUnavailable)
		h.SetContentType(typeProblem)
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryOverload))
	}
	return func(ctx *fasthttp.RequestCtx) {
		rt := gatedRouteOf(routes, ctx)
		if rt == nil {
			inner(ctx)
			return
		}
		start, verdict := s.gate.Enter(ctx.Time(), early(ctx))
		if verdict != admission.Admitted {
			s.refuseOverload(ctx, rt)
			return
		}
		defer s.gate.Leave(start)
		inner(ctx)
	}
}

// early reports whether the request was sent before the pause of its connection
// was over.
func early(ctx *fasthttp.RequestCtx) bool {
	c, ok := ctx.Conn().(*conn)
	return ok && c.early
}

func gatedRouteOf(routes []gatedRoute, ctx *fasthttp.RequestCtx) *gatedRoute {
	if !ctx.IsPost() {
		return nil
	}
	path := ctx.URI().PathOriginal() // what Fiber goes by
	for i := range routes {
		if bytes.Equal(routes[i].path, path) {
			return &routes[i]
		}
	}
	return nil
}

// refuseOverload answers 503 and leaves the connection unread for as long as the
// gate says.
func (s *Server) refuseOverload(ctx *fasthttp.RequestCtx, rt *gatedRoute) {
	b := s.scratch.Get().(*scratch)
	defer b.release(s.scratch)
	b.id = s.ids.append(b.id[:0], ctx.Request.Header.Peek(headerRequestID))
	res := &ctx.Response
	rt.header.CopyTo(&res.Header)
	res.Header.SetBytesV(headerRequestID, b.id)
	res.AppendBody(rt.before)
	res.AppendBody(b.id)
	res.AppendBody(rt.after)
	rt.observed.observe(http.StatusServiceUnavailable, time.Since(ctx.Time()))
	rt.refused.Inc()
	if c, ok := ctx.Conn().(*conn); ok {
		c.pause = s.gate.Pause()
	}
}

// newGate makes the gate for the processors that there are.
func (s *Server) newGate() *admission.Gate {
	return admission.New(admission.Config{
		Deadline: s.cfg.Limits.Queue,
		Refusals: refusalsPerCore * runtime.NumCPU(),
		Metrics:  s.cfg.Registry,
	})
}
