package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"writ/ledger/receipt"
)

// TestDecision_Receipts_Heads holds "GET /v1/ledger/heads": every organization
// sees the same chain, newest first, but for heads younger than a minute; it
// verifies, and holds nothing of whoever decided.
func TestDecision_Receipts_Heads(t *testing.T) {
	h := start(t)
	h.register(acme)
	var last result
	for range 7 {
		h.evaluate(acme, intent()).wantStatus(http.StatusOK).into(&last)
		h.clock.advance(time.Second)
	}
	if got := h.heads(t, rival); len(got) != 0 {
		t.Errorf("%d heads younger than a minute are listed, want none", len(got))
	}
	h.clock.advance(time.Minute - 4*time.Second)
	if got := h.heads(t, rival); len(got) != 4 {
		t.Errorf("%d heads are listed, want the 4 that are a minute old", len(got))
	}
	h.clock.advance(time.Hour)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK) // too young
	heads := h.heads(t, rival)
	if len(heads) != 7 {
		t.Fatalf("%d heads are listed, want 7", len(heads))
	}
	keys, err := receipt.ParseKeys(h.do("GET", "/.well-known/jwks.json", "", nil).body)
	must(t, err)
	slices.Reverse(heads)
	if _, err := receipt.VerifyChain(receipt.Chain{ID: heads[0].Chain}, slices.Values(heads), keys); err != nil {
		t.Errorf("VerifyChain = %v", err)
	}
	under, err := last.Receipt.SignedHead()
	if err != nil || under != heads[6] {
		t.Errorf("the last receipt is under %+v, %v, want the last head, %+v", under, err, heads[6])
	}
	for _, query := range []string{"cursor=abc", "cursor=0", "cursor=1", "cursor=02", "cursor=-1", "limit=0"} {
		h.do("GET", "/v1/ledger/heads?"+query, h.operator(acme), nil).wantField(strings.Split(query, "=")[0])
	}
	h.do("GET", "/v1/ledger/heads?from=1", h.operator(acme), nil).wantField("from")
}

// heads lists all heads, three a page.
func (h *harness) heads(t *testing.T, org string) (heads []receipt.SignedHead) {
	t.Helper()
	for path := "/v1/ledger/heads?limit=3"; path != ""; {
		r := h.do("GET", path, h.operator(org), nil).wantStatus(http.StatusOK)
		if strings.Contains(string(r.body), acme) {
			t.Errorf("%s names an organization", r.body)
		}
		var list page[json.RawMessage]
		r.into(&list)
		for _, item := range list.Data {
			head, err := receipt.ParseHead(item)
			must(t, err)
			heads = append(heads, head)
		}
		path = nextPath(t, r)
	}
	return heads
}
