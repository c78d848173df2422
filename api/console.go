package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"writ.example/writ/api/console"
)

// newConsole returns the pages of the console. They call the server's own endpoints.
func (s *Server) newConsole() (*console.Console, error) {
	secret := s.cfg.ConsoleSecret
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	c, err := console.New(console.Config{
		API: inProcess{s}, Now: s.decisions.Now, Secret: secret, PublicURL: s.cfg.Hosted.APIURL, Log: s.cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the console: %w", err)
	}
	return c, nil
}

// mountConsole adds the pages of the console to app.
func (s *Server) mountConsole(app *fiber.App) {
	for _, path := range []string{"/console", "/console/*"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			app.Add(method, path, s.serveConsole(s.metrics.route("/console", method)))
		}
	}
}

// consoleRoute stands for every page of the console in logs.
var consoleRoute = route{method: http.MethodGet, path: "/console", scope: public}

// serveConsole returns the Fiber handler of the pages.
func (s *Server) serveConsole(observed *routeMetrics) fiber.Handler {
	return func(c *fiber.Ctx) error {
		fc := c.Context()
		start := s.decisions.Now()
		b := s.scratch.Get().(*scratch)
		s.begin(fc, b)
		setAll(&fc.Response.Header, s.shown)
		b.req = request{ctx: s.deadlines.context(start), now: start, id: b.id}
		if err := s.consolePage(fc, b); err != nil {
			s.fail(fc, &consoleRoute, &b.req, err)
		}
		observed.observe(fc.Response.StatusCode(), s.decisions.Now().Sub(start), "")
		b.release(s.scratch)
		return nil
	}
}

// consolePage answers with a page. A request of nobody who is signed in is counted for its address. Other
// requests are counted for their credential, at each endpoint.
func (s *Server) consolePage(fc *fasthttp.RequestCtx, b *scratch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.metrics.panics.Inc()
			err = &panicError{p, debug.Stack()}
		}
	}()
	var r http.Request
	if err := fasthttpadaptor.ConvertRequest(fc, &r, true); err != nil {
		return refuse(codeMalformed, "The request's target is no URL.")
	}
	if !s.console.Knows(&r) {
		if err := s.admitStranger(fc, &b.req); err != nil {
			return err
		}
	}
	if carriesCredential(fc, true) {
		s.auth.failures.count(failedURL)
		return refuseURL(fc, false)
	}
	w := &pageWriter{header: make(http.Header)}
	s.console.ServeHTTP(w, r.WithContext(context.WithValue(b.req.ctx, outerKey{}, fc)))
	for name, values := range w.header {
		fc.Response.Header.Del(name)
		for _, value := range values {
			fc.Response.Header.Add(name, value)
		}
	}
	fc.Response.SetStatusCode(w.status)
	if w.stream != nil {
		fc.Response.SetBodyStream(w.stream, -1)
	} else {
		fc.Response.SetBodyRaw(w.page.Bytes())
	}
	return nil
}

// pageWriter keeps a page until fasthttp sends it.
type pageWriter struct {
	header http.Header
	status int
	page   bytes.Buffer
	stream io.Reader
}

// Header implements [http.ResponseWriter].
func (w *pageWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *pageWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements [io.Writer].
func (w *pageWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.page.Write(p)
}

// Pass implements [console.Passer]. An export and a stream write to the connection themselves, so
// fasthttp must read them.
func (w *pageWriter) Pass(body io.ReadCloser) { w.stream = body }

// outerKey is the key of the browser's request in a context.
type outerKey struct{}

var errNoBrowser = errors.New("a request of the console is not within one of a browser")

// inProcess sends the requests of the console to the server that it is in. They pass through everything that
// a request from outside passes through: limits, credentials, scopes, slots, metrics and logs.
type inProcess struct{ s *Server }

// Do implements [console.API].
func (p inProcess) Do(
	ctx context.Context, by console.Caller, method, path string, body []byte,
) (*console.Answer, error) {
	outer, ok := ctx.Value(outerKey{}).(*fasthttp.RequestCtx)
	if !ok {
		return nil, errNoBrowser
	}
	// The connection has the browser's address, and a stream sets the deadlines of its writes.
	var inner fasthttp.RequestCtx
	inner.Init2(outer.Conn(), nil, false)
	in := &inner.Request
	in.Header.SetMethod(method)
	in.SetRequestURI(path)
	in.Header.SetHostBytes(outer.Host())
	in.Header.Set(fiber.HeaderAuthorization, "Bearer "+by.Credential)
	for _, name := range []string{fiber.HeaderXForwardedFor, headerLastEventID} {
		if value := outer.Request.Header.Peek(name); len(value) > 0 {
			in.Header.SetBytesV(name, value)
		}
	}
	if body != nil {
		in.Header.SetContentType(typeJSON)
		in.SetBody(body)
	}
	p.s.handler(&inner)
	answer := &console.Answer{Status: inner.Response.StatusCode(), Header: make(http.Header)}
	inner.Response.Header.VisitAll(func(name, value []byte) { answer.Header.Add(string(name), string(value)) })
	if stream := inner.Response.BodyStream(); stream != nil {
		answer.Body = io.NopCloser(stream)
		if c, ok := stream.(io.ReadCloser); ok {
			answer.Body = c
		}
	} else {
		answer.Body = io.NopCloser(bytes.NewReader(inner.Response.Body()))
	}
	return answer, nil
}
