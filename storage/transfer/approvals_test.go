package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

const heldPolicy = "0c0ffee0-0000-4000-8000-0000000000d5"

// approving decides as a server does. Its policy holds every intent for approval.
type approving struct {
	*testing.T
	*approval.Desk
	service *decision.Service
}

// Spellings makes plain a scrubber of package approval.
func (plain) Spellings(identity string) []string { return []string{identity} }
func (plain) Stored(identity string) []string    { return []string{identity} }

func (p place) approving(t *testing.T, at time.Time, f func(a approving, s storage.Store)) {
	t.Helper()
	p.with(t, at, func(s storage.Store, l *ledger.Ledger) {
		service, err := decision.Open(decision.Config{
			Ledger: l, Store: s, Scrub: plain{}, ApprovalTTL: 24 * time.Hour, Now: func() time.Time { return at },
			Metrics: prometheus.NewRegistry(), Plans: map[string]engine.Plan{"free": {Name: "free", Evaluations: 1e6}},
		})
		must(t, err)
		defer service.Close()
		f(approving{t, service.Approvals, service}, s)
	})
}

func held(n int) *engine.Intent {
	in := intent(n)
	in.PolicyID, in.AgentID = heldPolicy, "somebody-else"
	return in
}

// decides decides the n-th intent, under an approval unless approvalID is empty.
func (a approving) decides(n int, approvalID string) *storage.Record {
	a.Helper()
	out := a.service.Decide(a.Context(), decision.Caller{Organization: "acme", Credential: "key-of-the-agent"},
		[]decision.Request{{Intent: held(n), ApprovalID: approvalID}})[0]
	if out.Err != nil {
		a.Fatal(out.Err)
	}
	return out.Record
}

func (a approving) approve(id string) error {
	_, err := a.Judge(a.Context(), "acme", id, approval.Approver{Credential: "person", Kept: "person"}, approval.Ruling{Verdict: ledger.Approved})
	return err
}

// wantCode fails the test unless r has the decision want and a reason with this code.
func wantCode(t *testing.T, r *storage.Record, want engine.Decision, code engine.Code) {
	t.Helper()
	if r.Decision != want || !strings.Contains(strings.Join(r.Reasons, "\n"), string(code)+":") {
		t.Errorf("decided %v %q, want %v with %s", r.Decision, r.Reasons, want, code)
	}
}

// TestImport_ApprovalsEnd checks decisions that were held or approved at the source but not used.
// They allow nothing at the target, even if the file has their details. Otherwise both the source
// and the target could allow the same intent. A used approval stays used.
func TestImport_ApprovalsEnd(t *testing.T) {
	from := inMemory(1)
	var pending, approved, used, allowed string
	var details *storage.Details
	from.approving(t, noon, func(a approving, s storage.Store) {
		_, err := registry.New(s).PutPolicy(t.Context(), &engine.ActionPolicy{
			OrganizationID: "acme", PolicyID: heldPolicy, Version: 1, AgentID: "bot", AllowedActionTypes: []string{"deploy"},
			Status: engine.StatusActive, UpdatedAt: noon,
		}, 0)
		if err = errors.Join(err, registry.New(s).PublishKeys(t.Context(), keysOf(t, 1))); err != nil {
			t.Fatal(err)
		}
		pending, approved, used = a.decides(1, "").DecisionID, a.decides(2, "").DecisionID, a.decides(3, "").DecisionID
		must(t, errors.Join(a.approve(approved), a.approve(used)))
		r := a.decides(3, used)
		wantCode(t, r, engine.Allow, engine.CodeApprovalGranted)
		allowed = r.DecisionID
		if details, err = registry.New(s).Details(t.Context(), "acme", approved); err != nil {
			t.Fatal(err)
		}
	})
	file, _ := from.export(t)
	data, err := os.ReadFile(file)
	if err != nil || bytes.Contains(data, []byte(details.Salt)) {
		t.Fatalf("the export has what is kept for approvers: %v", err)
	}
	for name, file := range map[string]string{"as it is exported": file, "with details": withDetails(t, data, details)} {
		t.Run(name, func(t *testing.T) {
			to := inMemory(2)
			to.mustImport(t, file, keysOf(t, 1))
			to.approving(t, noon.Add(4*time.Hour), func(a approving, _ storage.Store) {
				a.T = t
				for n, id := range map[int]string{1: pending, 2: approved} {
					if err := a.approve(id); !errors.Is(err, approval.ErrExpired) {
						t.Errorf("approving intent %d = %v, want ErrExpired", n, err)
					}
					if r := a.decides(n, ""); r.DecisionID != id {
						t.Errorf("intent %d without its approval = %s, want the held decision", n, r.DecisionID)
					}
					wantCode(t, a.decides(n, id), engine.Deny, engine.CodeApprovalExpired)
				}
				if r := a.decides(3, used); r.DecisionID != allowed {
					t.Errorf("what was used is decided anew: %s, want %s", r.DecisionID, allowed)
				}
				for _, status := range []approval.Status{approval.Pending, approval.Approved} {
					all, _, err := a.List(t.Context(), "acme", approval.Filter{Status: status}, storage.Page{Limit: 10})
					if err != nil || len(all) > 0 {
						t.Errorf("List(%s) = %d, %v; want none", status, len(all), err)
					}
				}
			})
			wantWhole(t, to, keysOf(t, 1, 2))
		})
	}
	// The source still accepts the approval, until an operator stops the source.
	from.approving(t, noon.Add(time.Hour), func(a approving, _ storage.Store) {
		wantCode(t, a.decides(2, approved), engine.Allow, engine.CodeApprovalGranted)
	})
}

// withDetails returns a copy of a file with details.
func withDetails(t *testing.T, data []byte, d *storage.Details) string {
	t.Helper()
	value, err := storage.AllDetails.Encode(d)
	must(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	at := len(lines) - 1
	for ; at > 0 && !strings.Contains(lines[at-1], `"kind":"counts"`); at-- { // details follow the counts in the file
	}
	var footer struct {
		Footer transfer.Footer `json:"footer"`
	}
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &footer))
	line, err := json.Marshal(map[string]any{"document": map[string]any{
		"kind": storage.AllDetails.Name, "id": base64.RawURLEncoding.EncodeToString([]byte(d.DecisionID)), "value": json.RawMessage(value),
	}})
	must(t, err)
	above := strings.Join(lines[:at], "") + string(line) + "\n" + strings.Join(lines[at:len(lines)-1], "")
	sum := sha256.Sum256([]byte(above))
	footer.Footer.Documents++
	footer.Footer.Digest = "sha256:" + hex.EncodeToString(sum[:])
	end, err := json.Marshal(footer)
	must(t, err)
	name := t.TempDir() + "/" + uuid.NewString() + ".ndjson"
	must(t, os.WriteFile(name, []byte(above+string(end)+"\n"), 0o600))
	return name
}
