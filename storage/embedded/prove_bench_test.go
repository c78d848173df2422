//go:build unix

package embedded

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"writ/engine"
	"writ/ledger"
	"writ/ledger/receipt"
)

// BenchmarkProve proves 1,000,000 rows of four organizations that the ledger has
// written in batches of 16. cpu-ns/row is the processor time that a row takes.
// Run it with -benchtime 1x.
func BenchmarkProve(b *testing.B) {
	const (
		rows = 1_000_000
		size = 16
	)
	dir := b.TempDir() + "/store"
	s, err := Open(dir, Options{WriteBehind: 1024})
	if err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Open(b.Context(), ledger.Config{Store: s, Signer: signerOf(1), Scrub: plain{}})
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < rows; n += size {
		org := fmt.Sprintf("org-%d", n/size%4)
		reserved, entries, outs := make([]ledger.Reservation, size), make([]ledger.Entry, size), make([]ledger.Outcome, size)
		for i := range entries {
			if reserved[i], err = l.Reserve(b.Context(), org, 1<<40); err != nil {
				b.Fatal(err)
			}
			entries[i] = ledger.Entry{
				Intent: &engine.Intent{
					IntentID: uuid.NewString(), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", AgentID: "team-a/deployer",
					ActionType: "payment.refund", Resource: "https://api.payments.example/v1/refunds", IssuedAt: "2026-11-21T11:59:59Z",
					Cost: &engine.Cost{AmountMinor: 1250, Currency: "EUR"}, Metadata: map[string]string{"ticket": "OPS-7", "env": "prod"},
				},
				PolicyVersion: 3,
				Result: engine.Result{Decision: engine.Decision(1 + (n+i)%3), Findings: []engine.Finding{
					{Outcome: engine.Allow, Reason: "policy.allowed: version 3 of the policy allows it"},
				}},
			}
		}
		p, err := l.Enqueue(b.Context(), reserved, entries, false)
		if err == nil {
			err = p.Wait(b.Context(), outs)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	keys, err := receipt.NewKeys(signerOf(1).Public())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		start := processorTime(b)
		r, err := OpenReader(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		got, err := ledger.Prove(b.Context(), r, ledger.ProveConfig{Keys: keys})
		if err != nil || got.Rows != rows || got.Heads != rows/size {
			b.Fatalf("Prove = %+v, %v", got, err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(processorTime(b)-start)/rows, "cpu-ns/row")
	}
}
