//go:build !race

package api

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestOverload_ARefusalCostsNoMemory(t *testing.T) {
	h := start(t, patient)
	defer h.fill()()
	var (
		ctx     fasthttp.RequestCtx
		req     fasthttp.Request
		handler = h.server.app.Server().Handler
	)
	must(t, req.Read(bufio.NewReader(strings.NewReader("POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"))))
	ctx.Init(&req, nil, nil)
	if n := testing.AllocsPerRun(100, func() {
		ctx.Response.Reset()
		handler(&ctx)
	}); n != 0 || ctx.Response.StatusCode() != http.StatusServiceUnavailable {
		t.Errorf("a refusal = %v allocations, status %d, want 0, 503", n, ctx.Response.StatusCode())
	}
}
