package receipt

import (
	"errors"
	"testing"
	"time"
)

// TestInclusion_ProvesAnEntryBesideReceipts signs an entry and a receipt in one batch. Each proof
// must be valid only for its own leaf.
func TestInclusion_ProvesAnEntryBesideReceipts(t *testing.T) {
	signer := testSigner(1)
	keys, err := NewKeys(signer.Public())
	must(t, err)
	r := Receipt{Decision: Allow, DecisionID: "d", Digest: DigestBytes(nil), Exp: 1, KeyID: signer.KeyID()}
	entry := []byte(`{"entry":"settlement","outcome":"executed"}`)
	leaves := [][32]byte{r.LeafHash(), EntryLeaf(entry)}
	head, sigs, _ := signer.Seal(Chain{ID: [16]byte{1}}, time.UnixMilli(1), leaves)
	in := Inclusion{Sig: sigs[1], KeyID: signer.KeyID()}
	if err := in.Verify(leaves[1], keys); err != nil {
		t.Errorf("Verify = %v", err)
	}
	if got, err := in.Leaf(leaves[1]); err != nil || got != (Leaf{Chain: head.Chain, Seq: 1, Index: 1, Hash: leaves[1]}) {
		t.Errorf("Leaf = %+v, %v, want leaf 1 of head 1", got, err)
	}
	if got, err := in.Chain(); err != nil || got != head.Chain {
		t.Errorf("Chain = %x, %v, want %x", got, err, head.Chain)
	}
	for _, sig := range []string{"", sigs[1][:20], "B" + sigs[1][1:], "*" + sigs[1][1:]} {
		if got, err := (Inclusion{Sig: sig}).Chain(); !errors.Is(err, ErrMalformed) {
			t.Errorf("Chain of %.30q = %x, %v, want ErrMalformed", sig, got, err)
		}
	}
	if Root(leaves) != head.Root {
		t.Error("Root is not the head's")
	}
	r.Sig = sigs[0]
	moved := r
	moved.Sig = sigs[1]
	other := Inclusion{Sig: sigs[1], KeyID: "another"}
	for name, test := range map[string]struct {
		err, want error
	}{
		"of another entry":     {in.Verify(EntryLeaf([]byte(`{"entry":"settlement","outcome":"failed"}`)), keys), ErrSignature},
		"of the receipt":       {r.Inclusion().Verify(leaves[1], keys), ErrSignature},
		"of an unknown key":    {other.Verify(leaves[1], keys), ErrUnknownKey},
		"without a key":        {Inclusion{Sig: sigs[1]}.Verify(leaves[1], keys), ErrMalformed},
		"without a signature":  {Inclusion{KeyID: signer.KeyID()}.Verify(leaves[1], keys), ErrMalformed},
		"of a receipt's place": {Verify(moved, keys, time.Unix(0, 0)), ErrSignature},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("Verify %s = %v, want %v", name, test.err, test.want)
		}
	}
}
