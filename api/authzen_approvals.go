package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// requestsPath is the access request endpoint of AuthZEN's Access Request and Approval Profile. A task of it is an
// approval.
const requestsPath = "/access/v1/requests"

// accessApproval is what the context of a decision says of approvals.
type accessApproval struct {
	Reason      string       `json:"reason,omitzero"`
	EvaluatedAt time.Time    `json:"evaluated_at,omitzero"`
	NextAction  string       `json:"next_action,omitzero"`
	RetryAfter  int          `json:"retry_after,omitzero"` // in seconds
	Approval    *approvedRef `json:"approval,omitzero"`
	// AccessRequest says that the decision is held and can be approved.
	AccessRequest *requestable `json:"access_request,omitzero"`
}

type requestable struct {
	Endpoint  string    `json:"endpoint"`
	ExpiresAt time.Time `json:"expires_at"`
}

// approvedRef is an approval under which an evaluation is repeated.
type approvedRef struct {
	ID            string    `json:"id"`
	ApprovedAt    time.Time `json:"approved_at,omitzero"`
	ApprovedUntil time.Time `json:"approved_until"`
}

// ofApproval says what a decision has to do with approvals.
func (s *Server) ofApproval(r *request, in *evaluateBody, out ledger.Outcome) (c accessApproval) {
	row := out.Record
	switch {
	case row.Decision == engine.ApprovalRequired:
		c.Reason, c.NextAction = "approval_required", "request"
		switch in.ApprovalID {
		case "":
		case row.DecisionID: // it is pending: nothing was decided
			c.NextAction, c.RetryAfter = "retry", retryPending
		default:
			c.Reason = "out_of_scope"
		}
		if c.AccessRequest = s.requestable(r, row); c.AccessRequest == nil {
			c.NextAction, c.RetryAfter = "none", 0
		}
		c.EvaluatedAt = row.DecidedAt
	case in.ApprovalID == "":
	case permits(r, in, out):
		c.Approval = s.approvedRef(r, in.ApprovalID)
	default:
		c.Reason, c.NextAction = "policy_denied", "none"
		for _, reason := range row.Reasons {
			code, _, _ := strings.Cut(reason, ":")
			switch engine.Code(code) {
			case engine.CodeApprovalExpired, engine.CodeApprovalRejected, engine.CodeApprovalRevoked:
				c.Reason = "approval_expired"
			}
		}
		if row.Decision == engine.Allow {
			c.Reason = "approval_used"
		}
	}
	return c
}

// requestable returns nil unless the held decision can still be approved.
func (s *Server) requestable(r *request, held *storage.Record) *requestable {
	a, err := s.decisions.Approvals.Find(r.ctx, r.who.org, held.DecisionID)
	if err != nil || a.Status(s.decisions.Approvals.Now()) != approval.Pending {
		return nil
	}
	return &requestable{s.cfg.Hosted.APIURL + requestsPath, s.decisions.Approvals.ExpiresAt(a)}
}

func (s *Server) approvedRef(r *request, id string) *approvedRef {
	a, err := s.decisions.Approvals.Find(r.ctx, r.who.org, id)
	if err != nil || a.First == nil {
		return nil
	}
	return &approvedRef{ID: id, ApprovedUntil: a.First.ApprovedUntil}
}

// asHeld gives an intent the id and the time of the intent that was held under its approval. The digest of everything
// else must be the same, which the Service checks.
func (s *Server) asHeld(r *request, in *evaluateBody) error {
	r.slot.Pause()
	a, err := s.decisions.Approvals.Find(r.ctx, r.who.org, in.ApprovalID)
	r.slot.Resume()
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return about("approval", decision.ErrNoApproval)
	case err != nil:
		return err
	case in.Intent.IntentID != "" && in.Intent.IntentID != a.Held.IntentID:
		return ledger.ErrIntentConflict
	}
	in.Intent.IntentID, in.Intent.IssuedAt = a.Held.IntentID, a.Held.Intent().IssuedAt
	return nil
}

// accessTaskBody is a task of the profile.
type accessTaskBody struct {
	Task   taskHandle  `json:"task"`
	Result *taskResult `json:"result,omitzero"`
}

type taskHandle struct {
	ID             string    `json:"id"`
	Status         string    `json:"status"`
	StatusEndpoint string    `json:"status_endpoint"`
	ExpiresAt      time.Time `json:"expires_at"`
}

type taskResult struct {
	Mode     string      `json:"mode"`
	Approval approvedRef `json:"approval"`
}

// taskStatuses are the profile's names for the states of an approval.
var taskStatuses = map[approval.Status]string{
	approval.Pending: "pending", approval.Approved: "approved", approval.Used: "approved",
	approval.Rejected: "denied", approval.Expired: "expired", approval.Revoked: "cancelled",
}

func (s *Server) taskOf(a *approval.Approval) accessTaskBody {
	id, status := a.Held.DecisionID, taskStatuses[a.Status(s.decisions.Approvals.Now())]
	b := accessTaskBody{Task: taskHandle{
		ID: id, Status: status, StatusEndpoint: s.cfg.Hosted.APIURL + requestsPath + "/" + id,
		ExpiresAt: s.decisions.Approvals.ExpiresAt(a),
	}}
	if status == "approved" {
		b.Result = &taskResult{"reevaluate", approvedRef{id, a.First.DecidedAt, a.First.ApprovedUntil}}
	}
	return b
}

// accessTask returns a task of the profile.
func (s *Server) accessTask(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	a, err := s.foundApproval(r, strings.ToLower(r.param))
	if err != nil {
		return err
	}
	task := s.taskOf(a)
	if task.Task.Status == "pending" {
		r.res.retryAfter = retryPending
	}
	return r.ok(task)
}

// requestAccess returns the task of a held decision. The approval exists already, so nothing is stored. The body must
// have the held evaluation.
func (s *Server) requestAccess(r *request) error {
	body, err := readAccess(r.body)
	if err != nil {
		return err
	}
	denial, problem := accessObject(body["denial"])
	if problem != "" {
		return invalid("denial", "%s", problem)
	}
	var reader accessReader
	id := reader.uuid("denial.evaluation_id", denial["evaluation_id"])
	in, err := body.intent()
	if reader.bad.merge(err); reader.bad.err() != nil {
		return reader.bad.err()
	}
	a, err := s.foundApproval(r, id)
	if err != nil {
		return err
	}
	in.ApprovalID, in.PolicyID = id, a.Held.PolicyID
	in.Intent.PolicyID, in.Intent.IntentID, in.Intent.IssuedAt = in.PolicyID, a.Held.IntentID, a.Held.Intent().IssuedAt
	if ledger.IntentDigest(in.Intent) != a.Held.IntentDigest {
		return ledger.ErrIntentConflict
	}
	if a.Status(s.decisions.Approvals.Now()) == approval.Expired {
		return approval.ErrExpired
	}
	return r.answer(http.StatusAccepted, s.taskOf(a))
}
