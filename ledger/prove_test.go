package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"writ/ledger/receipt"
	"writ/storage"
)

// headsOnly is a history of which only the heads are there.
type headsOnly []receipt.SignedHead

func (h headsOnly) Heads(_ context.Context, f func(receipt.SignedHead) error) error {
	for _, head := range h {
		if err := f(head); err != nil {
			return err
		}
	}
	return nil
}

func (headsOnly) Parts(context.Context) ([]storage.Part, error) { return nil, nil }

func (headsOnly) Census(context.Context) (storage.Census, error) { return storage.Census{}, nil }

// TestProve_FirstBrokenHead changes heads about where those that are verified
// together begin and end. Of two the first is named.
func TestProve_FirstBrokenHead(t *testing.T) {
	signer, tip := testSigner(1), newChain()
	whole := make(headsOnly, headRun+200)
	for i := range whole {
		whole[i], _ = signer.Seal(tip, noon, nil)
		tip = tip.Next(whole[i].Head)
	}
	cfg := ProveConfig{Keys: testKeys(t, signer), Partial: true}
	if got, err := Prove(t.Context(), whole, cfg); err != nil || got.Last != whole[len(whole)-1] {
		t.Fatalf("Prove = %+v, %v, want the last head", got, err)
	}
	for _, i := range []int{0, 1, 62, 63, 64, 65, headRun - 1, headRun, headRun + 1, len(whole) - 1} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			changed := append(headsOnly{}, whole...)
			changed[i].Sig[0] ^= 1
			changed[len(whole)-1].Sig[0] ^= 2
			broken := (*storage.BreakError)(nil)
			_, err := Prove(t.Context(), changed, cfg)
			if !errors.As(err, &broken) || broken.Head != uint64(i)+1 || !errors.Is(err, receipt.ErrSignature) {
				t.Errorf("Prove = %v, want %v at head %d", err, receipt.ErrSignature, i+1)
			}
		})
	}
}
