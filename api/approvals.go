package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// retryPending is the Retry-After, in seconds, of a decision whose approval is pending.
const retryPending = 5

// approvalBody is an approval in the form of an answer.
type approvalBody struct {
	ApprovalID    string          `json:"approval_id"`
	Status        approval.Status `json:"status"`
	HeldAt        time.Time       `json:"held_at"`
	ExpiresAt     time.Time       `json:"expires_at"`
	ApprovedUntil time.Time       `json:"approved_until,omitzero"`
	IntentID      string          `json:"intent_id"`
	IssuedAt      string          `json:"issued_at"`
	IntentDigest  string          `json:"intent_digest"`
	PolicyID      string          `json:"policy_id"`
	AgentID       string          `json:"agent_id"`
	ActionType    string          `json:"action_type"`
	Resource      string          `json:"resource"`
	Cost          *engine.Cost    `json:"cost,omitzero"`
	MetadataKeys  []string        `json:"metadata_keys,omitzero"`
	Metadata      orderedTexts    `json:"metadata,omitzero"`
	Findings      []heldFinding   `json:"findings"`
	DecidedAt     time.Time       `json:"decided_at,omitzero"`
	DecidedBy     string          `json:"decided_by,omitzero"`
	Comment       string          `json:"comment,omitzero"`
	RevokedBy     string          `json:"revoked_by,omitzero"`
	UsedBy        string          `json:"used_by,omitzero"`
	// Receipt proves the verdict.
	Receipt *receipt.Inclusion `json:"receipt,omitzero"`
}

// orderedTexts is encoded in the order of its keys. A repeated verdict therefore gets an answer
// with the same bytes.
type orderedTexts map[string]string

// MarshalJSON implements json.Marshaler.
func (m orderedTexts) MarshalJSON() ([]byte, error) { return receipt.AppendMap(nil, m), nil }

// heldFinding is a finding of a held decision with its reason.
type heldFinding struct {
	storage.Finding
	Reason string `json:"reason"`
}

func (s *Server) approvalAt(a *approval.Approval, at time.Time) *approvalBody {
	r := a.Held
	b := &approvalBody{
		ApprovalID: r.DecisionID, Status: a.Status(at), HeldAt: r.DecidedAt,
		ExpiresAt: s.decisions.Approvals.ExpiresAt(a),
		IntentID:  r.IntentID, IssuedAt: r.Intent().IssuedAt, IntentDigest: r.IntentDigest,
		PolicyID: r.PolicyID, AgentID: r.AgentID,
		ActionType: r.ActionType, Resource: r.Resource, Cost: r.Cost, MetadataKeys: r.MetadataKeys,
		Findings: heldFindings(r),
	}
	if a.Details != nil && len(a.Details.Values) > 0 {
		b.Metadata = a.Details.Values
	}
	if v := a.First; v != nil {
		b.DecidedAt, b.DecidedBy, b.Comment, b.Receipt = v.DecidedAt, v.DecidedBy, v.Comment, &v.Receipt
		b.ApprovedUntil = v.ApprovedUntil
	}
	if v := a.End; v != nil {
		b.UsedBy, b.RevokedBy, b.Receipt = v.UsedBy, v.DecidedBy, &v.Receipt
	}
	return b
}

// heldFindings returns the findings because of which a decision was held. A row that an earlier
// version of writ decided has only reasons.
func heldFindings(r *storage.Record) []heldFinding {
	findings := make([]heldFinding, len(r.Reasons))
	for i, reason := range r.Reasons {
		findings[i].Reason = reason
		if len(r.Findings) == len(r.Reasons) {
			findings[i].Finding = r.Findings[i]
			continue
		}
		findings[i].Code, _, _ = strings.Cut(reason, ":")
		findings[i].Outcome = r.Decision
	}
	return findings
}

// listApprovals returns the approvals of the organization, newest first. A page of a filtered list
// may be short or empty. Only a null next_cursor ends the list.
func (s *Server) listApprovals(r *request) error {
	f := s.approvalFilter(r)
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	all, next, err := s.decisions.Approvals.List(r.ctx, r.who.org, f, page)
	if err != nil {
		return fmt.Errorf("listing approvals: %w", err)
	}
	of, err := s.rows(r)
	if err != nil {
		return err
	}
	now := s.decisions.Approvals.Now()
	items := make([]*approvalBody, 0, len(all))
	for _, a := range all {
		if of.has(a.Held) {
			items = append(items, s.approvalAt(a, now))
		}
	}
	return list(r, items, next)
}

func (s *Server) approvalFilter(r *request) (f approval.Filter) {
	q := &r.query
	if status, ok := q.take("status"); ok {
		if f.Status = approval.Status(status); !slices.Contains(approval.Statuses(), f.Status) {
			q.refuse(invalid("status", "must be pending, approved, rejected, expired, revoked or used"))
		}
	}
	f.AgentIDs = s.agentFilter(r)
	f.PolicyID, f.IntentID = strings.ToLower(q.text("policy_id")), strings.ToLower(q.text("intent_id"))
	f.ActionTypes = s.identity(q, "action_type")
	return f
}

// approval returns one approval. With the parameter wait it first waits for a verdict.
func (s *Server) approval(r *request) error {
	wait := r.query.seconds("wait", maxWait)
	if err := r.query.done(); err != nil {
		return err
	}
	a, err := s.foundApproval(r, strings.ToLower(r.param))
	if err != nil {
		return err
	}
	if wait > 0 && a.Status(s.decisions.Approvals.Now()) == approval.Pending {
		end, ok := s.polls.Begin(r.who.org)
		if !ok {
			return ledger.ErrOverloaded
		}
		defer end()
		r.slot.Leave() // from here on the handler only waits for the verdict
		ctx, cancel := context.WithTimeout(s.awake, wait)
		defer cancel()
		if a, err = s.decisions.Approvals.Await(ctx, r.who.org, a.Held.DecisionID); err != nil {
			return about("approval", err)
		}
	}
	return r.ok(s.approvalAt(a, s.decisions.Approvals.Now()))
}

// foundApproval returns an approval to a credential that may read all approvals or has asked for the decision. For any
// other credential the refusal does not reveal whether the approval exists.
func (s *Server) foundApproval(r *request, id string) (*approval.Approval, error) {
	a, err := s.decisions.Approvals.Find(r.ctx, r.who.org, id)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("looking up an approval: %w", err)
	}
	if a == nil || a.Held.Credential != r.who.credential() {
		if err := s.auth.permit(&r.who, scopeApprovalsRead); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, about("approval", err)
	}
	return a, s.mayRead(r, a.Held)
}

// rulingBody is the body of PATCH /v1/approvals/{id}.
type rulingBody struct {
	Status      string  `json:"status"`
	Comment     *string `json:"comment"`
	ApprovedFor *int64  `json:"approved_for"`
}

func checkRuling(_ *request, in *rulingBody) error {
	var bad fieldErrors
	if in.Status != ledger.Approved && in.Status != ledger.Rejected && in.Status != ledger.Revoked {
		bad.add("status", "must be approved, rejected or revoked")
	}
	if in.Comment != nil {
		bad.optionalName("comment", *in.Comment)
	}
	most := int64(approval.MaxTTL / 3 / time.Second)
	switch n := in.ApprovedFor; {
	case n == nil:
	case in.Status != ledger.Approved:
		bad.add("approved_for", `is for the status "approved"`)
	case *n < 1 || *n > most:
		bad.add("approved_for", fmt.Sprintf("must be a number of seconds from 1 to %d", most))
	}
	return bad.err()
}

// judgeApproval approves, rejects or revokes an approval. A repeated verdict gets the same answer.
func (s *Server) judgeApproval(r *request, in *rulingBody) error {
	ruling := approval.Ruling{Verdict: in.Status}
	set(&ruling.Comment, in.Comment)
	if in.ApprovedFor != nil {
		ruling.For = time.Duration(*in.ApprovedFor) * time.Second
	}
	credential := r.who.credential()
	by := approval.Approver{Credential: credential, Kept: ledger.KeptCredential(credential, s.cfg.Scrub.Identity)}
	r.slot.Leave() // from here on the handler only waits for the store
	a, err := s.decisions.Approvals.Judge(r.ctx, r.who.org, strings.ToLower(r.param), by, ruling)
	if err != nil {
		return about("approval", err)
	}
	return r.ok(s.approvalAt(a, s.decisions.Approvals.Now()))
}
