package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/wire"
)

// unrouted is used for a request that matches no route.
var unrouted = route{scope: public, param: "path"}

// handleError answers requests that reach no route: unknown paths and methods, and requests that
// are too large, too slow or not HTTP.
func (s *Server) handleError(fc *fasthttp.RequestCtx, err error) {
	var (
		fe      *fiber.Error
		framing wire.FramingError
	)
	switch {
	case errors.As(err, &framing):
		fe = fiber.ErrBadRequest
	case !errors.As(err, &fe):
		fe = fiber.ErrInternalServerError
	}
	b := s.scratch.Get().(*scratch)
	defer b.release(s.scratch)
	s.begin(fc, b)
	b.req.id, b.req.now = b.id, s.decisions.Now()
	p := &problem{Status: fe.Code}
	switch fe.Code {
	case http.StatusNotFound:
		p.Code, p.Detail = codeNotFound, "There is no such endpoint."
	case http.StatusMethodNotAllowed:
		p.Code, p.Detail = codeMethodNotAllowed, "The endpoint does not take this method; see the Allow header."
		p.allow = string(fc.Response.Header.Peek(fiber.HeaderAllow))
	case http.StatusRequestTimeout:
		p.Code, p.Detail = codeRequestTimeout, "The request did not arrive in time."
	case http.StatusRequestEntityTooLarge:
		p.Code, p.Detail = codeBodyTooLarge,
			fmt.Sprintf("The body is too large: send at most %d bytes.", s.cfg.Limits.Body)
	case http.StatusRequestHeaderFieldsTooLarge:
		p.Code, p.Detail = codeHeaderTooLarge,
			fmt.Sprintf("The request's headers are too large: send at most %d bytes.", s.cfg.Limits.Header)
	case http.StatusInternalServerError:
		p = problemOf(err)
	default:
		p.Status, p.Code, p.Detail = http.StatusBadRequest, codeMalformed, "The request is not well-formed HTTP."
		if framing != "" {
			p.Detail = "The request is not well-formed HTTP: " + framing.Error() + "."
		}
	}
	if fe.Code == http.StatusNotFound || fe.Code == http.StatusMethodNotAllowed {
		if err := s.admit(fc, &unrouted, &b.req); err != nil {
			p = problemOf(err)
		}
	}
	s.metrics.problems.WithLabelValues(p.Code).Inc()
	writeProblem(fc, p, b.id)
	s.logRefused(fc, "unmatched", &b.req, p, err)
	unread := p.Code == codeBodyTooLarge || p.Code == codeHeaderTooLarge || p.Code == codeMalformed
	if c, ok := fc.Conn().(*wire.Conn); ok && unread {
		c.LeaveUnread()
	}
	s.metrics.unmatched.observe(p.Status, time.Duration(0), "")
}

// refuseFraming answers a request with ambiguous framing. It closes the connection, because the end
// of the request's body is unknown.
func (s *Server) refuseFraming(fc *fasthttp.RequestCtx, err error) {
	s.handleError(fc, err)
	fc.SetConnectionClose()
}
