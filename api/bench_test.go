package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/engine"
)

// benchBody is the body of an evaluation. Each request overwrites the intent id in place.
type benchBody struct {
	bytes []byte
	id    int // the offset of the last 12 digits of the intent id
}

func newBenchBody(b testing.TB) *benchBody {
	const id = "7d9f1c1e-3b5a-4f5e-8a67-000000000000"
	data, err := json.Marshal(intent(obj{
		"intent_id": id, "resource": "https://api.example.com/v1/deployments/42",
		"cost": obj{"amount_minor": 100, "currency": "EUR"}, "metadata": obj{"env": "prod", "ticket": "OPS-1"},
	}))
	must(b, err)
	return &benchBody{data, bytes.Index(data, []byte(id)) + 24}
}

func (bb *benchBody) next(n uint64) []byte {
	digits := bb.bytes[bb.id : bb.id+12]
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
	return bb.bytes
}

// benchHarness starts a server with the real clock and a plan without limits. It returns an API
// key.
func benchHarness(b testing.TB) (h *harness, key string) {
	h = start(b, func(c *setup) {
		c.Service.Plans = map[string]engine.Plan{"free": {Name: "free", Evaluations: 1 << 50, Policies: 10}}
		c.Service.Now = time.Now
		c.RateLimits = RateLimits{Credential: ample, Address: ample} // by default evaluations have no limit
	})
	h.clock.advance(time.Since(h.clock.Now()))
	h.register(acme)
	key, _ = h.key(acme)
	return h, key
}

// BenchmarkEvaluateHandler measures an evaluation without the socket: admission, routing, API key,
// strict decoding, evaluation, commit to a store in memory, and encoding. The case "bare" measures
// a Fiber handler that sends a constant of the same size.
func BenchmarkEvaluateHandler(b *testing.B) {
	h, key := benchHarness(b)
	sample := h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusOK)
	bare := fiber.New(fiber.Config{DisableStartupMessage: true})
	bare.Post("/v1/policy/evaluate", func(c *fiber.Ctx) error { return c.Send(sample.body) })
	for _, bm := range []struct {
		name    string
		handler fasthttp.RequestHandler
	}{
		{"bare", bare.Handler()},
		{"evaluate", h.server.app.Server().Handler},
	} {
		b.Run(bm.name, func(b *testing.B) { benchDirect(b, bm.handler, key) })
	}
}

// BenchmarkRouter compares Fiber's context and router with a map lookup of the path. The handlers
// do nothing.
func BenchmarkRouter(b *testing.B) {
	h := start(b)
	app := fiber.New(fiber.Config{DisableStartupMessage: true, CaseSensitive: true, StrictRouting: true})
	for _, rt := range append(h.server.routes(), h.server.assetRoutes()...) {
		app.Add(rt.method, rt.path, func(*fiber.Ctx) error { return nil })
	}
	direct := map[string]fasthttp.RequestHandler{"/v1/policy/evaluate": func(*fasthttp.RequestCtx) {}}
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(http.MethodPost)
	ctx.Request.SetRequestURI("/v1/policy/evaluate")
	for _, bm := range []struct {
		name    string
		handler fasthttp.RequestHandler
	}{
		{"fiber", app.Handler()},
		{"map", func(ctx *fasthttp.RequestCtx) { direct[string(ctx.URI().PathOriginal())](ctx) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bm.handler(&ctx)
			}
		})
	}
}

func benchDirect(b *testing.B, handler fasthttp.RequestHandler, key string) {
	var n atomic.Uint64
	n.Store(uint64(time.Now().UnixNano()) % 1e12)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		body := newBenchBody(b)
		var ctx fasthttp.RequestCtx
		for pb.Next() {
			ctx.Request.Reset()
			ctx.Response.Reset()
			ctx.Request.Header.SetProtocol("HTTP/1.0") // HTTP/1.0 requires no Host header
			ctx.Request.Header.SetMethod(http.MethodPost)
			ctx.Request.SetRequestURI("/v1/policy/evaluate")
			ctx.Request.Header.Set("Authorization", "Bearer "+key)
			ctx.Request.Header.SetContentType(typeJSON)
			ctx.Request.SetBodyRaw(body.next(n.Add(1)))
			handler(&ctx)
			if ctx.Response.StatusCode() != http.StatusOK {
				b.Errorf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
				return
			}
		}
	})
}

// BenchmarkEvaluateLoopback measures whole evaluations over 64 TCP connections. The server and the
// clients share the cores of the machine.
func BenchmarkEvaluateLoopback(b *testing.B) {
	h, key := benchHarness(b)
	sample := h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusOK)
	bare := fiber.New(fiber.Config{DisableStartupMessage: true})
	bare.Post("/v1/policy/evaluate", func(c *fiber.Ctx) error { return c.Send(sample.body) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	served := make(chan error, 1)
	go func() { served <- bare.Listener(ln) }()
	for _, bm := range []struct{ name, addr string }{{"bare", ln.Addr().String()}, {"evaluate", h.addr}} {
		b.Run(bm.name, func(b *testing.B) { benchLoopback(b, bm.addr, key) })
	}
	must(b, bare.Shutdown())
	must(b, <-served)
}

func benchLoopback(b *testing.B, addr, key string) {
	var n atomic.Uint64
	n.Store(uint64(time.Now().UnixNano()) % 1e12)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", addr)
		must(b, err)
		defer c.Close()
		body := newBenchBody(b)
		head := fmt.Appendf(nil, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", key, len(body.bytes))
		br := bufio.NewReader(c)
		var request []byte
		for pb.Next() {
			request = append(append(request[:0], head...), body.next(n.Add(1))...)
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := skipResponse(br); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// skipResponse reads a response and requires status 200.
func skipResponse(br *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("%q", line)
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
	}
	_, err := io.CopyN(io.Discard, br, int64(length))
	return err
}
