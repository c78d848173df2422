// Package ledgertest makes ledgers decide intents, for tests and benchmarks.
package ledgertest

import (
	"context"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
)

// Decide makes l decide size new intents of org in one batch. The three possible
// decisions take turns, and n says which of them is the first.
func Decide(ctx context.Context, l *ledger.Ledger, org string, n, size int) ([]ledger.Outcome, error) {
	entries := make([]*ledger.Entry, size)
	for i := range entries {
		entries[i] = &ledger.Entry{
			Intent: &engine.Intent{
				IntentID: uuid.NewString(), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
				AgentID:    "team-a/deployer",
				ActionType: "payment.refund", Resource: "https://api.payments.example/v1/refunds",
				IssuedAt: "2026-11-21T11:59:59Z",
				Cost:     &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
				Metadata: map[string]string{"ticket": "OPS-7", "env": "prod"},
			},
			PolicyVersion: 3,
			Result: engine.Result{Decision: engine.Decision(1 + (n+i)%3), Findings: []engine.Finding{
				{Outcome: engine.Allow, Reason: "policy.allowed: version 3 of the policy allows it"},
			}},
		}
	}
	return Commit(ctx, l, org, entries...)
}

// Commit commits entries of org in one batch. An entry may be stored even if another is
// not.
func Commit(
	ctx context.Context, l *ledger.Ledger, org string, entries ...*ledger.Entry,
) (outs []ledger.Outcome, err error) {
	for _, e := range entries {
		if e.Reservation, err = l.Reserve(ctx, nil, org, 1<<40); err != nil {
			return nil, err
		}
	}
	p, err := l.Enqueue(ctx, entries, false)
	if err != nil {
		return nil, err
	}
	outs = make([]ledger.Outcome, len(entries))
	return outs, p.Wait(ctx, outs)
}

// Plain is a scrubber that finds nothing to scrub.
type Plain struct{}

// Text returns s.
func (Plain) Text(s string) string { return s }

// Identity returns s.
func (Plain) Identity(s string) string { return s }

// Name returns folded.
func (Plain) Name(_, folded string) string { return folded }

// Resource returns projection.
func (Plain) Resource(_, projection string) string { return projection }

// Values returns metadata.
func (Plain) Values(metadata map[string]string) map[string]string { return metadata }
