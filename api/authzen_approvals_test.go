package api

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// access returns an evaluation of AuthZEN with a context.
func access(context obj) obj {
	return obj{
		"subject": obj{"type": "user", "id": "ci"}, "action": obj{"name": "deploy"}, "resource": obj{"type": "held", "id": "web"},
		"context": context,
	}
}

// accessed returns the access request for a held evaluation of access.
func accessed(evaluationID string) obj {
	body := access(obj{"policy_id": policyID})
	body["denial"] = obj{"evaluation_id": evaluationID}
	return body
}

// heldAccess makes an evaluation of AuthZEN that is held, by a key of org or by a new one. It returns the access request.
func (h *harness) heldAccess(org, key string) obj {
	h.t.Helper()
	if key == "" {
		key = h.enforcer(org, "")
	}
	h.rule(org, `{"resource":"held/*"}`, persons)
	a := read[accessDecision](h.do("POST", evaluationPath, key, access(obj{"policy_id": policyID})).wantStatus(http.StatusOK))
	if a.Decision || a.Context.AccessRequest == nil || a.Context.Reason != "approval_required" {
		h.t.Fatalf("it is not held: %+v", a)
	}
	return accessed(a.Context.EvaluationID)
}

// TestAuthZEN_Approval follows a held evaluation to its permission, and holds that only the same evaluation is permitted,
// once.
func TestAuthZEN_Approval(t *testing.T) {
	h := start(t, func(c *setup) { c.Hosted.APIURL = "https://pdp.example.com" })
	h.register(acme, obj{"agent_id": "**"})
	key := h.enforcer(acme, policyID)
	asked := h.heldAccess(acme, key)
	id := asked["denial"].(obj)["evaluation_id"].(string)
	task := read[accessTaskBody](h.do("POST", requestsPath, key, asked).wantStatus(http.StatusAccepted))
	want := accessTaskBody{Task: taskHandle{id, "pending", "https://pdp.example.com" + requestsPath + "/" + id, task.Task.ExpiresAt}}
	same(t, "the task", want, task)
	same(t, "the task later", want, read[accessTaskBody](h.do("GET", requestsPath+"/"+id, key, nil).wantStatus(http.StatusOK)))

	again := func(changes ...obj) *reply {
		t.Helper()
		body := access(obj{"policy_id": policyID, "approval": obj{"id": id, "approved_until": "2026-11-21T11:00:00Z"}})
		for _, c := range changes {
			maps.Copy(body, c)
		}
		return h.do("POST", evaluationPath, key, body)
	}
	pending := read[accessDecision](again().wantStatus(http.StatusOK))
	if pending.Decision || pending.Context.NextAction != "retry" || pending.Context.RetryAfter == 0 || pending.Context.EvaluationID != id {
		t.Errorf("while it is pending: %+v", pending)
	}
	h.do("PATCH", "/v1/approvals/"+id, h.operator(acme), obj{"status": "approved"}).wantStatus(http.StatusOK)
	task = read[accessTaskBody](h.do("GET", requestsPath+"/"+id, key, nil).wantStatus(http.StatusOK))
	if task.Task.Status != "approved" || task.Result == nil || task.Result.Mode != "reevaluate" || task.Result.Approval.ID != id ||
		!task.Result.Approval.ApprovedUntil.After(h.clock.Now()) {
		t.Errorf("the task of what is approved: %+v", task)
	}
	for _, change := range []obj{
		{"resource": obj{"type": "held", "id": "other"}}, {"action": obj{"name": "http_get"}}, {"subject": obj{"type": "user", "id": "cd"}},
		{"resource": obj{"type": "held", "id": "web", "properties": obj{"amount": 1}}},
		{"resource": obj{"type": "x", "id": "held/web"}},
		{"context": obj{"approval": obj{"id": id}, "more": true}},
		{"context": obj{"approval": obj{"id": id}, "intent_id": uuid.NewString()}},
	} {
		again(change).wantProblem(http.StatusConflict, codeIntentConflict)
	}
	asked["resource"] = obj{"type": "held", "id": "other"}
	h.do("POST", requestsPath, key, asked).wantProblem(http.StatusConflict, codeIntentConflict)
	got := read[accessDecision](again().wantStatus(http.StatusOK))
	if !got.Decision || got.Context.Approval == nil || got.Context.Approval.ID != id || got.Context.EvaluationID == id {
		t.Fatalf("the approved evaluation: %+v", got)
	}
	got = read[accessDecision](again().wantStatus(http.StatusOK))
	if got.Decision || got.Context.Reason != "approval_used" || got.Context.NextAction != "none" {
		t.Errorf("the approval again: %+v", got)
	}
	items := read[accessDecisions](h.do("POST", evaluationsPath, key, obj{"evaluations": []obj{
		access(obj{"approval": obj{"id": id}}), access(obj{"approval": obj{"id": uuid.NewString()}}), access(nil),
	}}).wantStatus(http.StatusOK))
	for i, item := range items.Evaluations {
		if item.Decision || item.Context == nil {
			t.Errorf("item %d: %+v", i, item)
		}
	}
}

// TestAuthZEN_TaskStatuses holds the names of the ends that an approval can have, and that none of them permits.
func TestAuthZEN_TaskStatuses(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"agent_id": "**"})
	key := h.enforcer(acme, policyID)
	judge := func(id string, verdicts ...string) {
		for _, v := range verdicts {
			h.do("PATCH", "/v1/approvals/"+id, h.operator(acme), obj{"status": v}).wantStatus(http.StatusOK)
		}
	}
	for want, end := range map[string]func(id string){
		"denied":    func(id string) { judge(id, "rejected") },
		"cancelled": func(id string) { judge(id, "approved", "revoked") },
		"expired":   func(string) { h.clock.advance(2 * time.Hour) },
	} {
		asked := h.heldAccess(acme, key)
		id := asked["denial"].(obj)["evaluation_id"].(string)
		end(id)
		task := read[accessTaskBody](h.do("GET", requestsPath+"/"+strings.ToUpper(id), key, nil).wantStatus(http.StatusOK))
		if task.Task.Status != want || task.Result != nil {
			t.Errorf("%+v, want the status %s and no result", task, want)
		}
		got := read[accessDecision](h.do("POST", evaluationPath, key, access(obj{"approval": obj{"id": id}})).wantStatus(http.StatusOK))
		if got.Decision || got.Context.Reason != "approval_expired" || got.Context.AccessRequest != nil {
			t.Errorf("%s: %+v", want, got)
		}
		if want == "expired" {
			h.do("POST", requestsPath, key, asked).wantProblem(http.StatusConflict, codeApprovalExpired)
		}
	}
	asked := h.heldAccess(acme, key)
	another := h.enforcer(acme, policyID)
	h.do("POST", requestsPath, another, asked).wantProblem(http.StatusForbidden, codeInsufficientScope)
}
