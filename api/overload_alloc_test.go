//go:build !race

package api

import (
	"net/http"
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
	req.Header.SetMethod(http.MethodPost)
	req.SetRequestURI("http://writ.example/v1/policy/evaluate")
	ctx.Init(&req, nil, nil)
	if n := testing.AllocsPerRun(100, func() {
		ctx.Response.Reset()
		handler(&ctx)
	}); n != 0 || ctx.Response.StatusCode() != http.StatusServiceUnavailable {
		t.Errorf("a refusal = %v allocations, status %d, want 0, 503", n, ctx.Response.StatusCode())
	}
}
