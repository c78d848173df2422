package receipt_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage/receipt"
)

// workedExample computes the example of the package documentation from the seed and the members.
func workedExample(t testing.TB) (p receipt.Payload, batch [2]receipt.Receipt, head receipt.SignedHead, keys receipt.Keys) {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(seed))
	p = receipt.Payload{
		OrganizationID: "acme",
		IntentID:       "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11",
		IntentDigest:   receipt.DigestBytes([]byte(exampleIntent)),
		PolicyID:       "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		PolicyVersion:  3,
		Decision:       receipt.Allow,
		DecisionID:     "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
		Reasons:        []string{"policy.allow: the policy allows this action"},
		Exp:            1800000300,
	}
	batch[0] = receipt.Receipt{Decision: p.Decision, DecisionID: p.DecisionID, Digest: p.Digest(), Exp: p.Exp}
	batch[1] = receipt.Receipt{Decision: receipt.Deny, DecisionID: "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e38", Digest: receipt.DigestBytes(nil), Exp: p.Exp}
	var leaves [][32]byte
	for i := range batch {
		batch[i].KeyID = signer.KeyID()
		leaves = append(leaves, batch[i].LeafHash())
	}
	head, sigs, _ := signer.Seal(receipt.Chain{ID: [16]byte([]byte("example-chain-01"))}, time.UnixMilli(1800000000123), leaves)
	for i := range batch {
		batch[i].Sig = sigs[i]
	}
	keys, err := receipt.NewKeys(signer.Public())
	must(t, err)
	return p, batch, head, keys
}

const exampleIntent = `{"action_type":"deploy","agent_id":"ci"}`

func TestDecision_Receipts_WorkedExample(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	must(t, err)
	squeeze := regexp.MustCompile(`(?m)^//|\s+`)
	doc := squeeze.ReplaceAllString(string(source), "")
	p, batch, head, keys := workedExample(t)
	leaf0, leaf1, headHash := batch[0].LeafHash(), batch[1].LeafHash(), head.Hash()
	intent := jsontext.Value(`{"agent_id": "ci", "action_type": "deploy"}`)
	must(t, intent.Canonicalize())
	receiptJSON, err := json.Marshal(batch[0])
	must(t, err)
	headJSON, err := json.Marshal(head)
	must(t, err)
	for name, want := range map[string]string{
		"listed head":   string(headJSON),
		"kid":           keys.IDs()[0],
		"key set":       string(keys.JWKS()),
		"intent":        string(intent),
		"intent_digest": receipt.DigestBytes(intent),
		"payload":       string(p.AppendCanonical(nil)),
		"digest":        p.Digest(),
		"leaf":          string(batch[0].AppendLeaf(nil)),
		"other's leaf":  string(batch[1].AppendLeaf(nil)),
		"leaf hash":     hex.EncodeToString(leaf0[:]),
		"other's hash":  hex.EncodeToString(leaf1[:]),
		"root":          hex.EncodeToString(head.Root[:]),
		"head":          hex.EncodeToString(head.Bytes()),
		"head hash":     hex.EncodeToString(headHash[:]),
		"signature":     hex.EncodeToString(head.Sig[:]),
		"receipt":       string(receiptJSON),
	} {
		if !strings.Contains(doc, squeeze.ReplaceAllString(want, "")) {
			t.Errorf("doc.go does not show the %s: %s", name, want)
		}
	}
	if err := receipt.Verify(batch[0], keys, time.Unix(1800000000, 0)); err != nil {
		t.Errorf("Verify = %v", err)
	}
	if err := receipt.VerifyPayload(batch[0], p); err != nil {
		t.Errorf("VerifyPayload = %v", err)
	}
	if !bytes.Equal(intent, []byte(exampleIntent)) {
		t.Errorf("Canonicalize = %s, want %s", intent, exampleIntent)
	}
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
