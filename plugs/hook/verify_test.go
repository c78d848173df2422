package hook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/internal/toolcall"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// signing is a server that allows every intent with a genuine receipt, or replays the receipt of the first one.
type signing struct {
	t       *testing.T
	signer  *receipt.Signer
	version int64
	replays bool
	first   []byte
}

func (s *signing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/credential" {
		_, _ = w.Write([]byte(`{"organization_id":"acme","scopes":["policy:evaluate","facts:assert"]}`))
		return
	}
	var body struct {
		SessionID string        `json:"session_id"`
		Intent    engine.Intent `json:"intent"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	body.Intent.SessionID = body.SessionID
	if s.replays && s.first != nil {
		_, _ = w.Write(s.first)
		return
	}
	p := receipt.Payload{
		OrganizationID: "acme", IntentID: body.Intent.IntentID, IntentDigest: ledger.IntentDigest(&body.Intent),
		PolicyID: body.Intent.PolicyID, PolicyVersion: s.version, Decision: receipt.Allow, DecisionID: decisionID,
		Reasons: []string{"policy.allowed: it is allowed"}, Exp: never,
	}
	rc := receipt.Receipt{Decision: p.Decision, DecisionID: p.DecisionID, Digest: p.Digest(), Exp: p.Exp, KeyID: s.signer.KeyID()}
	_, sigs, _ := s.signer.Seal(receipt.Chain{}, time.Unix(1, 0), [][32]byte{rc.LeafHash()})
	rc.Sig = sigs[0]
	data, err := json.Marshal(map[string]any{
		"ok": true, "approved": true, "reasons": p.Reasons, "decision_id": p.DecisionID, "receipt": rc,
	})
	if err != nil {
		s.t.Error(err)
	}
	s.first = bytes.Clone(data)
	_, _ = w.Write(data)
}

// TestRun_ReceiptOfAnother holds that a genuine allow for another call does not let this one run, if
// receipts are verified.
func TestRun_ReceiptOfAnother(t *testing.T) {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	keys, err := receipt.NewKeys(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.jwks")
	if err := os.WriteFile(file, keys.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(s *signing, verify bool, calls ...string) (last ran) {
		s.t, s.signer = t, signer
		server := httptest.NewServer(s)
		defer server.Close()
		h := newHook(t, toolcall.Claude, server.URL)
		if verify {
			h.Keys = file
		}
		for _, call := range calls {
			last = run(h, call)
		}
		return last
	}
	call := calls[toolcall.Claude]
	other := strings.NewReplacer("ls", "rm -rf /", "t1", "t2").Replace(call)
	cost := strings.Replace(call, `"command":"ls"`, `"command":"é\u2028<&>","big":12345678901234567890,"o":{"b":1,"a":[2]}`, 1)
	for _, own := range []string{call, other, cost} {
		for _, version := range []int64{1, 4711} {
			if got := ask(&signing{version: version}, true, own); got.code != 0 {
				t.Errorf("the receipt of the call itself, version %d: %+v", version, got)
			}
		}
	}
	if got := ask(&signing{version: 1, replays: true}, false, call, other); got.code != 0 {
		t.Errorf("without keys: %+v", got) // so the next one shows something
	}
	got := ask(&signing{version: 1, replays: true}, true, call, other)
	if got.code != 2 || got.out != "" || !strings.Contains(got.err, "of another intent") {
		t.Errorf("the receipt of another call: %+v", got)
	}
}
