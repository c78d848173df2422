package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Local returns a transport for calls of the same process. They pass through everything that a call from outside
// passes through, except a connection: two of its goroutines and four system calls would be a third of the latency of
// a lone evaluation on a fast disk. The peer of such a call is 127.0.0.1. An answer may not be a stream. RoundTrip
// returns when the server has answered, and not when the context ends: [Limits.Handle] bounds it.
func (s *Server) Local() http.RoundTripper { return local{s} }

type local struct{ s *Server }

// localConn is the connection of a request that has none. Nothing is read from it or written to it.
type localConn struct{ net.Conn }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

// RemoteAddr implements [net.Conn].
func (localConn) RemoteAddr() net.Addr { return loopback }

// LocalAddr implements [net.Conn].
func (localConn) LocalAddr() net.Addr { return loopback }

var errLocalStream = errors.New("the answer is a stream, which a call of the same process does not take")

// RoundTrip implements [http.RoundTripper].
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(fiber.HeaderUpgrade) != "" {
		return nil, errLocalStream
	}
	var fc fasthttp.RequestCtx
	fc.Init2(localConn{}, nil, false)
	in := &fc.Request
	in.Header.SetMethod(r.Method)
	in.SetRequestURI(r.URL.RequestURI())
	in.Header.SetHost(r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			in.Header.Add(name, value)
		}
	}
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, int64(l.s.cfg.Limits.Body)+1))
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("reading the request's body: %w", err)
		}
		in.SetBodyRaw(body)
	}
	if len(in.Body()) > l.s.cfg.Limits.Body {
		l.s.handleError(&fc, fiber.ErrRequestEntityTooLarge)
	} else {
		l.s.handler(&fc)
	}
	if fc.Response.IsBodyStream() {
		return nil, errors.Join(errLocalStream, fc.Response.CloseBodyStream())
	}
	body := fc.Response.Body()
	answer := &http.Response{
		StatusCode: fc.Response.StatusCode(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: r,
	}
	answer.Status = fmt.Sprintf("%03d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	fc.Response.Header.VisitAll(func(name, value []byte) { answer.Header.Add(string(name), string(value)) })
	return answer, nil
}
