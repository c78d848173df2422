package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// TestDecision_Receipts_Heads checks "GET /v1/ledger/heads". All organizations see the same chain,
// newest head first, without heads younger than a minute. The chain verifies and reveals nothing
// about an organization.
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
	h.evaluate(acme, intent()).wantStatus(http.StatusOK) // its head is too young
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
	a := strings.Repeat("a", 32)
	for _, query := range []string{"cursor=abc", "cursor=0", "cursor=2", "cursor=00.2", "cursor=" + a + ".1", "cursor=" + a + ".02",
		"cursor=" + a + ".-1", "cursor=" + strings.ToUpper(a) + ".2", "cursor=" + a, "cursor=" + a + "aa.2", "limit=0"} {
		h.do("GET", "/v1/ledger/heads?"+query, h.operator(acme), nil).wantField(strings.Split(query, "=")[0])
	}
	chain := fmt.Sprintf("%x", heads[0].Chain)
	many := strings.Repeat(chain+".1,", 65)
	for _, from := range []string{"", "1", chain, chain + ".0", chain + ".01", chain + ".1,", chain + ".1," + chain + ".2", many + chain + ".1"} {
		h.do("GET", "/v1/ledger/heads?from="+from, h.operator(acme), nil).wantField("from")
	}
	for from := 1; from <= 9; from++ {
		var seqs, want []uint64
		for _, head := range h.heads(t, acme, fmt.Sprintf("from=%032x.3,%s.%d", 1, chain, from)) {
			seqs = append(seqs, head.Seq)
		}
		for seq := 7; seq >= from; seq-- {
			want = append(want, uint64(seq))
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("from head %d: heads %d, want %d", from, seqs, want)
		}
	}
}

// heads returns all heads that parameters select, reading three per page.
func (h *harness) heads(t *testing.T, org string, parameters ...string) (heads []receipt.SignedHead) {
	t.Helper()
	for path := "/v1/ledger/heads?" + strings.Join(append(parameters, "limit=3"), "&"); path != ""; {
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

// twoChains is a store that has a second chain, as if a second server had written to the store.
type twoChains struct {
	storage.Store
	other *storagetest.MemoryLog
}

func (s twoChains) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return errors.Join(s.other.Chains(ctx, f), s.Store.Chains(ctx, f))
}

func (s twoChains) Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	if len(s.other.ByChain[chain]) > 0 {
		return s.other.Heads(ctx, chain, from, f)
	}
	return s.Store.Heads(ctx, chain, from, f)
}

// TestHeads_OfEveryChain checks the list of heads when several servers write to one store. The list
// must have the heads of all chains.
func TestHeads_OfEveryChain(t *testing.T) {
	for _, others := range []int{3, 4, 6} { // a page has three heads
		other, w := storagetest.NewMemoryLog(), storagetest.NewWriter()
		handle := other.OpenLog()
		h := start(t, func(c *setup) { c.Service.Store = twoChains{c.Service.Store, other} })
		h.register(acme)
		for range others {
			if _, err := w.Commit(t.Context(), handle, w.Record(acme)); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			h.evaluate(acme, intent()).wantStatus(http.StatusOK)
		}
		h.clock.advance(48 * time.Hour)
		of := make(map[[16]byte][]uint64)
		for _, head := range h.heads(t, rival) {
			of[head.Chain] = append(of[head.Chain], head.Seq)
		}
		for chain, seqs := range of {
			want := []uint64{5, 4, 3, 2, 1}
			if len(other.ByChain[chain]) > 0 {
				want = []uint64{6, 5, 4, 3, 2, 1}[6-others:]
			}
			if !slices.Equal(seqs, want) {
				t.Errorf("with %d heads of another writer: heads %v of chain %x, want %v", others, seqs, chain, want)
			}
		}
		if len(of) != 2 {
			t.Errorf("heads of %d chains, want 2", len(of))
		}
	}
}
