package storagetest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Writer makes records and commits the records as a ledger does. Each record is decided one
// millisecond after its predecessor. Several goroutines may call its methods.
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

// NewWriterFrom returns a writer whose records are later than all records that w has made.
func NewWriterFrom(w *Writer) *Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Writer{signer: w.signer, steps: w.steps + 1_000_000}
}

// Keys returns the keys that verify the writer's receipts.
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

// decisionID returns a UUIDv7 with the time t. Its last digits are n.
func decisionID(t time.Time, n int64) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], 1<<63|uint64(n))
	return id.String()
}

// IntentID returns a UUID that ends with n. Intents of a [Writer] have numbers far below 1e9.
func IntentID(n int) string { return fmt.Sprintf(intentIDs, n) }

const intentIDs = "7d9f1c1e-3b5a-4f5e-8a67-%012d"

// Record returns a record of a new intent of org. All fields except the settlement are set. Record
// then calls each change, and finally adds a receipt without a signature.
func (w *Writer) Record(org string, change ...func(*storage.Record)) *storage.Record {
	n := w.step()
	at := noon.Add(time.Duration(n) * time.Millisecond)
	r := &storage.Record{
		OrganizationID: org,
		IntentID:       IntentID(int(n)),
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
	}
	if n%4 > 0 {
		r.Findings = []storage.Finding{
			{Code: "policy.matched", Outcome: engine.Allow},
			{Code: "rule.matched", Outcome: r.Decision, Decides: true, RuleID: fmt.Sprintf("rule-%d", n%4)},
		}
	}
	for _, f := range change {
		f(r)
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

// Again returns another record of r's intent, with a new decision id.
func (w *Writer) Again(r *storage.Record) *storage.Record {
	return w.Record(r.OrganizationID, func(c *storage.Record) { c.IntentID, c.ApprovalID = r.IntentID, r.ApprovalID })
}

// Commit appends records. For each record it returns the stored record of the same intent, or nil
// if there was none.
func (w *Writer) Commit(ctx context.Context, s storage.Log, records ...*storage.Record) ([]*storage.Record, error) {
	existing, err := s.Append(ctx, storage.Batch{Records: records}, w.Seal)
	return existing.Records, err
}

// Settle appends a settlement of r. If the store already has a settlement of r, Settle returns the
// entry of that settlement. Otherwise it sets r.Settlement and returns nil.
func (w *Writer) Settle(ctx context.Context, s storage.Log, r *storage.Record, settlement storage.Settlement) (*storage.Entry, error) {
	settled := *r
	settled.Settle(settlement)
	e := settled.SettlementEntry()
	existing, err := s.Append(ctx, storage.Batch{Entries: []*storage.Entry{e}}, w.Seal)
	if err != nil || existing.Entries[0] != nil {
		return existing.Entries[0], err
	}
	settled.Settlement.Receipt = &e.Inclusion
	r.Settlement = settled.Settlement
	return nil, nil
}

// Seal is a storage.Seal that signs all fresh records and entries.
func (w *Writer) Seal(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
	leaves := make([][32]byte, 0, len(fresh.Records)+len(fresh.Entries))
	for _, r := range fresh.Records {
		leaves = append(leaves, r.Receipt.LeafHash())
	}
	for _, e := range fresh.Entries {
		leaves = append(leaves, receipt.EntryLeaf(e.Body))
	}
	head, sigs, _ := w.signer.Seal(tip, noon, leaves)
	for i, r := range fresh.Records {
		r.Receipt.Sig = sigs[i]
	}
	for i, e := range fresh.Entries {
		e.Inclusion = receipt.Inclusion{Sig: sigs[len(fresh.Records)+i], KeyID: w.signer.KeyID()}
	}
	return fresh, head, nil
}
