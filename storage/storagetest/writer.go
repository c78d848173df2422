package storagetest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// noon is when a Writer's records begin.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Writer makes records, each a millisecond after the one before, and commits
// them as a ledger would. Its methods may be called from several goroutines.
type Writer struct {
	signer *receipt.Signer

	mu    sync.Mutex
	steps int64
}

// NewWriter returns a writer. All writers have the same key.
func NewWriter() *Writer {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	return &Writer{signer: receipt.NewSigner(ed25519.NewKeyFromSeed(seed))}
}

// NewWriterFrom returns a writer whose records come after those that w has made.
func NewWriterFrom(w *Writer) *Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Writer{signer: w.signer, steps: w.steps + 1_000_000}
}

// Keys returns what verifies the writer's receipts.
func (w *Writer) Keys(t testing.TB) receipt.Keys {
	t.Helper()
	keys, err := receipt.NewKeys(w.signer.Public())
	if err != nil {
		t.Fatalf("NewKeys = %v", err)
	}
	return keys
}

func (w *Writer) step() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	return w.steps
}

// decisionID returns the UUIDv7 of a time that ends in n.
func decisionID(t time.Time, n int64) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], 1<<63|uint64(n))
	return id.String()
}

// Record returns the record of a new intent of org with every field set, then
// changed, then with a receipt that waits for its Sig.
func (w *Writer) Record(org string, change ...func(*storage.Record)) *storage.Record {
	n := w.step()
	at := noon.Add(time.Duration(n) * time.Millisecond)
	amount := int64(99)
	r := &storage.Record{
		OrganizationID: org,
		IntentID:       fmt.Sprintf("intent-%06d", n),
		IntentDigest:   "sha256:" + strings.Repeat("0a", 32),
		DecisionID:     decisionID(at, n),
		PolicyID:       "policy-1",
		PolicyVersion:  3,
		AgentID:        "team-a/deployer",
		ActionType:     "deploy",
		Resource:       "https://example.com/prod/ä\x00",
		Cost:           &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
		MetadataKeys:   []string{"env", "ticket"},
		Metadata:       map[string]string{"env": "prod", "ticket": "", "": "empty"},
		Decision:       engine.Decision(n%3 + 1),
		Reasons:        []string{"policy.allowed: the policy allows it", ""},
		IssuedAt:       "2026-11-21T13:59:59+02:00",
		DecidedAt:      at.Add(123 * time.Microsecond),
		Credential:     "operator:alice",
		AuditDigest:    "sha256:" + strings.Repeat("2e", 32),
		Settlement: &storage.Settlement{
			Outcome: "executed", AmountMinor: &amount, Currency: "EUR", ExternalRef: "tx-1", RecordedAt: at,
		},
	}
	for _, f := range change {
		f(r)
	}
	if r.Settlement != nil {
		r.Settle(*r.Settlement)
	}
	r.Receipt = receipt.Receipt{
		Decision:   r.Decision.String(),
		DecisionID: r.DecisionID,
		Digest:     "sha256:" + strings.Repeat("1f", 32),
		Exp:        r.DecidedAt.Unix() + 300,
		KeyID:      w.signer.KeyID(),
	}
	return r
}

// Again returns a record of r's intent with a decision of its own.
func (w *Writer) Again(r *storage.Record) *storage.Record {
	return w.Record(r.OrganizationID, func(c *storage.Record) { c.IntentID = r.IntentID })
}

// Commit commits batch at the end of the stored chain, again when another
// commit was faster.
func (w *Writer) Commit(ctx context.Context, s storage.Decisions, batch ...*storage.Record) ([]*storage.Record, error) {
	for {
		tip, err := Tip(ctx, s)
		if err != nil {
			return nil, err
		}
		existing, err := s.Commit(ctx, batch, w.Seal(tip))
		if !errors.Is(err, storage.ErrConflict) {
			return existing, err
		}
	}
}

// Tip returns where the stored chain ends.
func Tip(ctx context.Context, s storage.Decisions) (receipt.Chain, error) {
	h, err := s.LastHead(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return receipt.Chain{ID: [16]byte{'w', 'r', 'i', 't'}}, nil
	}
	if err != nil {
		return receipt.Chain{}, err
	}
	return receipt.Chain{ID: h.Chain}.Next(h.Head), nil
}

// Seal returns a seal that extends tip.
func (w *Writer) Seal(tip receipt.Chain) storage.Seal {
	return func(fresh []*storage.Record) ([]*storage.Record, receipt.SignedHead, error) {
		leaves := make([][32]byte, len(fresh))
		for i, r := range fresh {
			leaves[i] = r.Receipt.LeafHash()
		}
		head, sigs := w.signer.Seal(tip, noon, leaves)
		for i, r := range fresh {
			r.Receipt.Sig = sigs[i]
		}
		return fresh, head, nil
	}
}
