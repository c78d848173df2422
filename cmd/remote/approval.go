package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
)

const approvalsPath = "/v1/approvals"

// ApprovalPath returns the path of an approval.
func ApprovalPath(id string) string { return approvalsPath + "/" + url.PathEscape(id) }

// approval is an approval as a server shows it.
type approval struct {
	ID            string            `json:"approval_id"`
	Status        string            `json:"status"`
	HeldAt        time.Time         `json:"held_at"`
	ExpiresAt     time.Time         `json:"expires_at"`
	ApprovedUntil time.Time         `json:"approved_until"`
	IntentID      string            `json:"intent_id"`
	IntentDigest  string            `json:"intent_digest"`
	PolicyID      string            `json:"policy_id"`
	AgentID       string            `json:"agent_id"`
	ActionType    string            `json:"action_type"`
	Resource      string            `json:"resource"`
	Cost          *engine.Cost      `json:"cost"`
	MetadataKeys  []string          `json:"metadata_keys"`
	Metadata      map[string]string `json:"metadata"`
	Findings      []struct {
		Reason string `json:"reason"`
	} `json:"findings"`
	DecidedAt time.Time `json:"decided_at"`
	DecidedBy string    `json:"decided_by"`
	Comment   string    `json:"comment"`
	RevokedBy string    `json:"revoked_by"`
	UsedBy    string    `json:"used_by"`
}

// Approvals returns the newest n approvals with a status, the oldest of them first, and whether there are
// more. An empty status selects all.
func Approvals(ctx context.Context, call workspace.Call, status string, n int) ([]jsontext.Value, bool, error) {
	filter := make(url.Values)
	if status != "" {
		filter.Set("status", status)
	}
	items, more, err := List(ctx, call, approvalsPath, filter, n)
	slices.Reverse(items)
	return items, more, err
}

// PrintApprovals returns what prints approvals as a table, with the time left from now.
func PrintApprovals(now time.Time) func(io.Writer, []jsontext.Value) error {
	return func(w io.Writer, items []jsontext.Value) error {
		columns := []string{"APPROVAL", "STATUS", "LEFT", "AGENT", "ACTION", "RESOURCE", "COST"}
		return table(w, columns, items, func(a approval) []string {
			return []string{a.ID, a.Status, a.left(now), a.AgentID, a.ActionType, a.Resource, Cost(a.Cost)}
		})
	}
}

// left returns the time that is left to decide, or to use what was approved.
func (a *approval) left(now time.Time) string {
	switch a.Status {
	case "pending":
		return Left(a.ExpiresAt, now)
	case "approved":
		return Left(a.ApprovedUntil, now)
	}
	return ""
}

// ShowApproval returns what prints exactly what an approval approves, with the time left from now.
func ShowApproval(now time.Time) func(io.Writer, jsontext.Value) error {
	return func(w io.Writer, doc jsontext.Value) error {
		var a approval
		if err := decode(doc, &a); err != nil {
			return err
		}
		return Fields(w, a.pairs(now)...)
	}
}

// pairs returns the names and values of an approval.
func (a *approval) pairs(now time.Time) []string {
	pairs := []string{
		"approval", a.ID, "status", a.Status, "left", a.left(now), "held", Time(a.HeldAt),
		"agent", a.AgentID, "action", a.ActionType, "resource", a.Resource, "cost", Cost(a.Cost),
	}
	pairs = append(pairs, metadata(a.MetadataKeys, a.Metadata)...)
	for _, f := range a.Findings {
		pairs = append(pairs, "held for", f.Reason)
	}
	return append(pairs, "intent", a.IntentID, "intent digest", a.IntentDigest, "policy", a.PolicyID,
		"decided", Time(a.DecidedAt), "decided by", a.DecidedBy, "comment", a.Comment,
		"good until", Time(a.ApprovedUntil), "revoked by", a.RevokedBy, "used by", a.UsedBy)
}

// metadata returns the keys and values of an intent's metadata for [Fields].
func metadata(keys []string, values map[string]string) (pairs []string) {
	for _, key := range keys {
		text := "(value not kept)"
		if value, kept := values[key]; kept {
			text = `"` + value + `"`
		}
		pairs = append(pairs, "metadata."+key, text)
	}
	return pairs
}

// Verdict is what an approver decides.
type Verdict struct {
	Status      string `json:"status"` // approved, rejected or revoked
	Comment     string `json:"comment,omitzero"`
	ApprovedFor int64  `json:"approved_for,omitzero"` // in seconds
}

// Judge decides about an approval and returns it.
func Judge(ctx context.Context, call workspace.Call, id string, v Verdict) (jsontext.Value, error) {
	doc, err := send(ctx, call, http.MethodPatch, ApprovalPath(id), v)
	var a approval
	if err == nil {
		err = decode(doc, &a)
	}
	if err == nil && (a.Status != v.Status || a.ID != id) {
		err = fmt.Errorf("the server answers that the approval %q is %q", a.ID, a.Status)
	}
	return doc, err
}

// Judged says what became of an approval.
func Judged(w io.Writer, doc jsontext.Value) error {
	var a approval
	if err := decode(doc, &a); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "approval %s is %s\n", a.ID, a.Status)
	return err //nolint:wrapcheck // of the standard output
}

// send sends a body and returns the answer.
func send(ctx context.Context, call workspace.Call, method, path string, body any) (doc jsontext.Value, err error) {
	_, err = call(ctx, workspace.Request{Method: method, Path: path, Body: body}, &doc)
	return doc, err //nolint:wrapcheck // the server's own words
}
