package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/receipt"
)

// approval sends a payment that is held and approves it. It then releases the payment, and
// tries to use the approval for another amount.
func (d *demo) approval(ctx context.Context) error {
	i := slices.IndexFunc(d.set.Cases, func(c examples.Case) bool {
		return c.Policy == "payments" && c.Want == engine.ApprovalRequired
	})
	in := *d.set.Intents[i]
	in.IntentID = uuid.NewString()
	held, err := d.evaluate(ctx, &in, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nA %s held, approved, released, and its approval tried on another:\n", in.ActionType)
	d.step("held", held, engine.ApprovalRequired)
	path := "/v1/approvals/" + held.Receipt.DecisionID
	if err := d.operator.Do(ctx, http.MethodPatch, path, object{"status": "approved", "comment": "writ demo"},
		nil); err != nil {
		return err
	}
	for _, name := range []string{"approved", "again"} {
		released, err := d.evaluate(ctx, &in, held.Receipt.DecisionID)
		if err != nil {
			return err
		}
		d.step(name, released, engine.Allow)
	}
	other := in
	other.IntentID, other.Cost = uuid.NewString(),
		&engine.Cost{AmountMinor: in.Cost.AmountMinor + 1, Currency: in.Cost.Currency}
	body := object{"policy_id": other.PolicyID, "intent": other, "approval_id": held.Receipt.DecisionID}
	if _, err := d.agent.Call(ctx, workspace.Request{Method: http.MethodPost, Path: "/v1/policy/evaluate", Body: body,
		Want: http.StatusConflict}, nil); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  %-8s  %s  409 intent_conflict: the approval is for another amount\n", "another",
		d.colors.decision("refused", engine.Deny.String()))
	return nil
}

// step prints a decision and its first reason.
func (d *demo) step(name string, res receipt.Result, want engine.Decision) {
	note := ""
	if res.Receipt.Decision != want.String() {
		d.failed++
		note = "  EXPECTED " + want.String()
	}
	reason, _, _ := strings.Cut(res.Reasons[0], " (rule ")
	fmt.Fprintf(d.out, "  %-8s  %s  %s%s\n", name, d.colors.decision(res.Receipt.Decision, res.Receipt.Decision),
		reason, note)
}
