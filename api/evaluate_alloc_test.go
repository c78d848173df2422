//go:build !race

package api

import (
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestEvaluate_Allocations bounds the allocations of a whole decision, from request to answer. The
// decision is signed, stored, and alone in its batch, which is the worst case.
func TestEvaluate_Allocations(t *testing.T) {
	h, key := benchHarness(t)
	handler, body := h.server.app.Server().Handler, newBenchBody(t)
	var ctx fasthttp.RequestCtx
	n := uint64(0)
	ask := func() {
		n++
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.Request.Header.SetProtocol("HTTP/1.0") // HTTP/1.0 needs no Host line
		ctx.Request.Header.SetMethod(http.MethodPost)
		ctx.Request.SetRequestURI("/v1/policy/evaluate")
		ctx.Request.Header.Set("Authorization", "Bearer "+key)
		ctx.Request.Header.SetContentType(typeJSON)
		ctx.Request.SetBodyRaw(body.next(n))
		if handler(&ctx); ctx.Response.StatusCode() != http.StatusOK {
			t.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	for range 100 { // the first requests fill caches and pools
		ask()
	}
	got := testing.AllocsPerRun(500, ask)
	t.Logf("%v allocations", got)
	if most := 40.0; got > most {
		t.Errorf("a decision allocates %v times, want at most %v", got, most)
	}
}
