package system

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"testing"

	"writ.example/writ/examples"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/receipt"
)

// history reads the whole authorization history, page by page, and returns it by intent. It
// fails the test if an intent has two decisions.
func history(t *testing.T, base, token string) map[string]*storage.Record {
	t.Helper()
	api := newClient(t, base, token)
	all := make(map[string]*storage.Record)
	for cursor, more := "", true; more; {
		var page struct {
			Data       []*storage.Record `json:"data"`
			NextCursor *string           `json:"next_cursor"`
		}
		path := "/v1/authorizations?limit=500"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		api.do(t, http.MethodGet, path, nil, http.StatusOK, &page)
		for _, r := range page.Data {
			if first, ok := all[r.IntentID]; ok {
				t.Errorf("intent %s has two decisions: %s and %s", r.IntentID, first.DecisionID, r.DecisionID)
			}
			all[r.IntentID] = r
		}
		if more = page.NextCursor != nil; more {
			cursor = *page.NextCursor
		}
	}
	return all
}

// auditAnswers checks each answer that a client received. The answer must be in the history
// with the same content, and it must verify offline.
func auditAnswers(t *testing.T, data datadir.Dir, answers map[string]string, rows map[string]*storage.Record) {
	t.Helper()
	keys := trustedKeys(t, data)
	for id, body := range answers {
		res, err := receipt.ParseResult([]byte(body))
		if err != nil {
			t.Errorf("answer to %s = %s: %v", id, body, err)
			continue
		}
		row, ok := rows[id]
		if !ok {
			t.Errorf("intent %s was answered %s, but is not in the history", id, body)
			continue
		}
		if err := receipt.Verify(res.Receipt, keys, row.DecidedAt); err != nil { // the receipt may have expired since
			t.Errorf("receipt of %s: %v", id, err)
		}
		if row.Receipt != res.Receipt || row.DecisionID != res.Receipt.DecisionID ||
			row.Decision.String() != res.Receipt.Decision || !slices.Equal(row.Reasons, res.Reasons) {
			t.Errorf("history of %s = %+v, want what was answered, %s", id, row, body)
		}
		payload := receipt.Payload{
			OrganizationID: row.OrganizationID, IntentID: row.IntentID, IntentDigest: row.IntentDigest,
			PolicyID: row.PolicyID, PolicyVersion: row.PolicyVersion, Decision: row.Decision.String(),
			DecisionID: row.DecisionID, Reasons: row.Reasons, Exp: row.Receipt.Exp, AuditDigest: row.AuditDigest,
		}
		if err := receipt.VerifyPayload(res.Receipt, payload); err != nil {
			t.Errorf("receipt of %s over its history row: %v", id, err)
		}
	}
}

// auditStore opens the store of a stopped server. It checks the chain of heads and the meters.
// The head of every receipt must be in the chain, and the heads must cover nothing else.
func auditStore(t *testing.T, data datadir.Dir, rows map[string]*storage.Record) {
	t.Helper()
	store, err := embedded.Open(data.Store(), embedded.Options{})
	must(t, err)
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	heads := auditChain(t, store, trustedKeys(t, data))
	covered := make(map[uint64]uint32)
	months := make(map[storage.Month]int64)
	for id, r := range rows {
		months[storage.MonthOf(r.DecidedAt)]++
		claimed, err := r.Receipt.SignedHead()
		if err != nil {
			t.Errorf("receipt of %s: %v", id, err)
			continue
		}
		if n := claimed.Seq; n == 0 || n > uint64(len(heads)) || heads[n-1] != claimed {
			t.Errorf("receipt of %s claims head %+v, which is not in the chain", id, claimed)
		}
		covered[claimed.Seq]++
	}
	changes, _, err := store.Entries(t.Context(), examples.Organization, storage.ChangeEntry, storage.Page{Limit: 500})
	must(t, err)
	for _, e := range changes {
		claimed, err := e.SignedHead(receipt.EntryLeaf(e.Body))
		if n := claimed.Seq; err != nil || n == 0 || n > uint64(len(heads)) || heads[n-1] != claimed {
			t.Errorf("change %s claims head %+v, %v, which is not in the chain", e.Key, claimed, err)
		}
		covered[claimed.Seq]++
	}
	for _, h := range heads {
		if covered[h.Seq] != h.Size {
			t.Errorf("head %d covers %d leaves, of which %d are in the history", h.Seq, h.Size, covered[h.Seq])
		}
	}
	for _, m := range slices.Sorted(maps.Keys(months)) {
		got, err := store.Metered(context.Background(), examples.Organization, m)
		if err != nil || got != months[m] {
			t.Errorf("Metered(%d) = %d, %v, want %d, the distinct intents of the history", m, got, err, months[m])
		}
	}
}

// auditChain returns all heads. It fails the test unless they are one unbroken chain.
func auditChain(t *testing.T, store storage.Log, keys receipt.Keys) []receipt.SignedHead {
	t.Helper()
	var heads []receipt.SignedHead
	end, err := store.Tip(t.Context())
	must(t, err)
	err = store.Heads(t.Context(), end.ID, 1, func(h receipt.SignedHead) error {
		heads = append(heads, h)
		return nil
	})
	if err != nil {
		t.Fatalf("Heads: %v", err)
	}
	if len(heads) == 0 {
		return nil
	}
	tip, err := receipt.VerifyChain(receipt.Chain{ID: heads[0].Chain}, slices.Values(heads), keys)
	if err != nil || tip.Seq != uint64(len(heads)) {
		t.Fatalf("VerifyChain of %d heads = tip %d, %v", len(heads), tip.Seq, err)
	}
	return heads
}

func trustedKeys(t *testing.T, data datadir.Dir) receipt.Keys {
	t.Helper()
	jwks, err := os.ReadFile(data.JWKS())
	must(t, err)
	keys, err := receipt.ParseKeys(jwks)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", data.JWKS(), err))
	}
	return keys
}
