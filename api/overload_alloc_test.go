//go:build !race

package api

import (
	"net/http"
	"testing"
)

func TestOverload_ARefusalCostsNoMemory(t *testing.T) {
	h := start(t, patient)
	defer h.fill()()
	ask, status := h.over(&conn{}), 0
	if n := testing.AllocsPerRun(100, func() { status = ask() }); n != 0 || status != http.StatusServiceUnavailable {
		t.Errorf("a refusal = %v allocations, status %d, want 0, 503", n, status)
	}
}
