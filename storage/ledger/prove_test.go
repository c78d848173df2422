package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// headsOnly is a history without rows and entries.
type headsOnly []receipt.SignedHead

func (h headsOnly) Chains(_ context.Context, f func(receipt.Chain) error) error {
	if len(h) == 0 {
		return nil
	}
	last := h[len(h)-1]
	return f(receipt.Chain{ID: last.Chain}.Next(last.Head))
}

func (h headsOnly) Heads(_ context.Context, _ [16]byte, _ uint64, f func(receipt.SignedHead) error) error {
	for _, head := range h {
		if err := f(head); err != nil {
			return err
		}
	}
	return nil
}

func (headsOnly) Organizations(context.Context, func(string) error) error { return nil }

func (headsOnly) EachEntry(context.Context, func(*storage.Entry) error) error { return nil }

func (headsOnly) EachTombstone(context.Context, string, func(*storage.Tombstone) error) error {
	return nil
}

func (headsOnly) EachRow(context.Context, string, string, string, func(*storage.Record) error) error {
	return nil
}

func (headsOnly) View(context.Context, func(storage.Reader) error) error { return nil }

func (headsOnly) Changes(context.Context, storage.Change, int) ([]storage.Change, error) {
	return nil, nil
}

func (headsOnly) CheckIndex(context.Context, storage.IndexCheck) error { return nil }

// TestProve_FirstBrokenHead checks that the error names the first of two broken heads. Prove
// verifies heads in pieces, and the broken heads are near the bounds of pieces.
func TestProve_FirstBrokenHead(t *testing.T) {
	signer, tip := testSigner(1), receipt.Chain{ID: [16]byte{'t'}}
	whole := make(headsOnly, headRun+200)
	for i := range whole {
		whole[i], _, _ = signer.Seal(tip, noon, nil)
		tip = tip.Next(whole[i].Head)
	}
	cfg := ProveConfig{Keys: testKeys(t, signer), Partial: true}
	if got, err := Prove(t.Context(), whole, cfg); err != nil || got.Heads != len(whole) || got.Ends[0] != whole[len(whole)-1] {
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

// oneRow is a history with one head that covers one row.
type oneRow struct {
	headsOnly
	row *storage.Record
}

func (h oneRow) Organizations(_ context.Context, f func(string) error) error { return f("acme") }

func (h oneRow) EachRow(_ context.Context, _, _, _ string, f func(*storage.Record) error) error {
	return f(h.row)
}

func (h oneRow) CheckIndex(_ context.Context, read storage.IndexCheck) error {
	return read.Meter("acme", storage.MonthOf(h.row.DecidedAt), 1)
}

// TestProve_RowWithoutAuditDigest checks a row from a version before audit digests. Prove must
// accept the row and count it as older.
func TestProve_RowWithoutAuditDigest(t *testing.T) {
	signer := testSigner(1)
	row := &storage.Record{
		OrganizationID: "acme", IntentID: "i", IntentDigest: "sha256:0", PolicyID: "p", PolicyVersion: 3,
		DecisionID: "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37", Decision: engine.Deny, Reasons: []string{"policy.test: no"},
	}
	row.DecidedAt = storage.IDTime(uuid.MustParse(row.DecisionID))
	row.Receipt = receipt.Receipt{Decision: "deny", DecisionID: row.DecisionID, Exp: noon.Unix(), KeyID: signer.KeyID()}
	row.Receipt.Digest = Payload(row).Digest()
	head, sigs, _ := signer.Seal(receipt.Chain{}, noon, [][32]byte{row.Receipt.LeafHash()})
	row.Receipt.Sig = sigs[0]
	cfg := ProveConfig{Keys: testKeys(t, signer)}
	got, err := Prove(t.Context(), oneRow{headsOnly{head}, row}, cfg)
	if err != nil || got.Rows != 1 || got.Older != 1 {
		t.Errorf("Prove = %+v, %v, want one row, an older one", got, err)
	}
	row.PolicyVersion = 4
	if _, err := Prove(t.Context(), oneRow{headsOnly{head}, row}, cfg); !errors.Is(err, receipt.ErrPayload) {
		t.Errorf("Prove of a row that was changed = %v, want %v", err, receipt.ErrPayload)
	}
}
