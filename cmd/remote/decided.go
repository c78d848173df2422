package remote

import (
	"fmt"
	"io"

	"writ.example/writ/engine"
	"writ.example/writ/internal/printable"
	writ "writ.example/writ/sdk/go"
)

// Intent returns an intent as the client sends it.
func Intent(in *engine.Intent, sessionID string) writ.Intent {
	sent := writ.Intent{
		IntentID: in.IntentID, PolicyID: in.PolicyID, AgentID: in.AgentID, ActionType: in.ActionType,
		Resource: in.Resource, Metadata: in.Metadata, IssuedAt: in.IssuedAt, SessionID: sessionID,
	}
	if in.Cost != nil {
		sent.Cost = &writ.Cost{AmountMinor: in.Cost.AmountMinor, Currency: in.Cost.Currency}
	}
	return sent
}

// Result is a decision as the API answers with it.
type Result struct {
	OK          bool         `json:"ok"`
	Approved    bool         `json:"approved"`
	Decision    string       `json:"decision"`
	Reasons     []string     `json:"reasons"`
	DecisionID  string       `json:"decision_id"`
	AuditDigest string       `json:"audit_digest,omitzero"`
	Receipt     writ.Receipt `json:"receipt"`
}

// ResultOf returns a decision as the API answers with it.
func ResultOf(d writ.Decision) Result {
	return Result{true, d.Allowed(), d.Outcome, d.Reasons, d.ID, d.AuditDigest, d.Receipt}
}

// PrintDecided prints a decision, its reasons, and for a held one what comes next.
func PrintDecided(w io.Writer, d writ.Decision) error {
	text := fmt.Sprintf("%s, decision %s\n", d.Outcome, d.ID)
	for _, reason := range d.Reasons {
		text += "  " + printable.Text(reason) + "\n"
	}
	if d.Outcome == writ.ApprovalRequired {
		text += "once it is approved, send the same intent with --approval-id " + d.ID + "\n"
	}
	_, err := io.WriteString(w, text)
	return err //nolint:wrapcheck // of the standard output
}
