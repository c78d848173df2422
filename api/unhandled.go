package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
)

// unhandled answers what no route did: unknown paths and methods, and requests
// that are too large, too slow or not HTTP.
func (s *Server) unhandled(fc *fiber.Ctx, err error) error {
	var fe *fiber.Error
	if !errors.As(err, &fe) {
		fe = fiber.ErrInternalServerError
	}
	b := s.scratch.Get().(*scratch)
	defer b.release(s.scratch)
	p := &problem{Status: fe.Code}
	switch fe.Code {
	case http.StatusNotFound:
		p.Code, p.Detail = codeNotFound, "There is no such endpoint."
	case http.StatusMethodNotAllowed:
		p.Code, p.Detail = codeMethodNotAllowed, "The endpoint does not take this method; see the Allow header."
		p.allow = string(fc.Response().Header.Peek(fiber.HeaderAllow))
	case http.StatusRequestTimeout:
		p.Code, p.Detail = codeRequestTimeout, "The request did not arrive in time."
	case http.StatusRequestEntityTooLarge:
		p.Code, p.Detail = codeBodyTooLarge, "The body is too large."
	case http.StatusRequestHeaderFieldsTooLarge:
		p.Code, p.Detail = codeHeaderTooLarge, "The request's headers are too large."
	case http.StatusInternalServerError:
		p = problemOf(err)
	default:
		p.Status, p.Code, p.Detail = http.StatusBadRequest, codeMalformed, "The request is not well-formed HTTP."
	}
	s.begin(fc, b)
	writeProblem(fc, p, b.id)
	if c, ok := fc.Context().Conn().(*conn); ok && unread(p.Code) {
		c.unread.Store(true)
	}
	s.metrics.unmatched.observe(p.Status, time.Duration(0))
	return nil
}

// unread reports whether a request that was refused with code may still be on
// its way.
func unread(code string) bool {
	return code == codeBodyTooLarge || code == codeHeaderTooLarge || code == codeMalformed
}
