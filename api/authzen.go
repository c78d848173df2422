package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// The paths of AuthZEN's Authorization API 1.0.
const (
	evaluationPath  = "/access/v1/evaluation"
	evaluationsPath = "/access/v1/evaluations"
)

// accessConfiguration is the metadata of a policy decision point of AuthZEN.
type accessConfiguration struct {
	PolicyDecisionPoint       string `json:"policy_decision_point"`
	AccessEvaluationEndpoint  string `json:"access_evaluation_endpoint"`
	AccessEvaluationsEndpoint string `json:"access_evaluations_endpoint"`
	AccessRequestEndpoint     string `json:"access_request_endpoint"`

	Capabilities []string `json:"capabilities"`
}

// accessConfiguration answers with the URLs of AuthZEN's endpoints. Clients must refuse URLs that are not https.
func (s *Server) accessConfiguration(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	base := s.cfg.Hosted.APIURL
	if !strings.HasPrefix(base, "https://") {
		return refuse(codeNotFound, "This deployment has no https URL: whoever runs it sets --public-url.")
	}
	return r.ok(accessConfiguration{base, base + evaluationPath, base + evaluationsPath, base + requestsPath,
		[]string{"urn:openid:authzen:capability:access-request"}})
}

// accessDecision is an answer to an evaluation of AuthZEN.
type accessDecision struct {
	Decision bool           `json:"decision"` // true for an allow alone
	Context  *accessContext `json:"context,omitzero"`
}

// accessContext has the details of a decision, or the error of an item that was not decided.
type accessContext struct {
	DecisionID   string           `json:"decision_id,omitzero"`
	EvaluationID string           `json:"evaluation_id,omitzero"` // DecisionID under the name of the profile for approvals
	Reasons      []string         `json:"reasons,omitzero"`
	Receipt      *receipt.Receipt `json:"receipt,omitzero"`
	Error        *accessError     `json:"error,omitzero"`
	accessApproval
}

// accessError says why an item of a batch was not decided.
type accessError struct {
	Status  int                 `json:"status"`
	Code    string              `json:"code"`
	Message string              `json:"message"`
	Errors  []engine.FieldError `json:"errors,omitzero"`
}

// accessEvaluation decides an evaluation of AuthZEN.
func (s *Server) accessEvaluation(r *request) error {
	body, err := readAccess(r.body)
	if err != nil {
		return err
	}
	return s.evaluateAccess(r, body)
}

func (s *Server) evaluateAccess(r *request, body accessBody) error {
	in, err := s.accessIntent(r, body)
	if err != nil {
		return err
	}
	out := s.decisions.Decide(r.ctx, r.caller(), []decision.Request{{Intent: in.Intent, ApprovalID: in.ApprovalID}})[0]
	if out.Err != nil {
		return aboutDecision(out.Err)
	}
	r.res.replayed, r.res.expired = out.Replayed, expired(r, out)
	return r.ok(s.answerAccess(r, in, out, true))
}

// permits reports whether a decision permits the action. An allow whose receipt has expired does not, nor does an
// approval that was used before: AuthZEN's clients do not read the headers that say so.
func permits(r *request, in *evaluateBody, out ledger.Outcome) bool {
	return out.Record.Decision == engine.Allow && !expired(r, out) && !usedBefore(in, out)
}

// answerAccess returns the answer to a decision. whole says that it has a context in any case.
func (s *Server) answerAccess(r *request, in *evaluateBody, out ledger.Outcome, whole bool) accessDecision {
	a := accessDecision{Decision: permits(r, in, out)}
	if whole || out.Record.Decision == engine.ApprovalRequired || in.ApprovalID != "" {
		a.Context = &accessContext{
			DecisionID: out.Record.DecisionID, EvaluationID: out.Record.DecisionID,
			Reasons: out.Record.Reasons, Receipt: &out.Record.Receipt, accessApproval: s.ofApproval(r, in, out),
		}
	}
	return a
}

// The semantics of AuthZEN's evaluations. Under the last two the answer ends with the first deny or permit.
const (
	executeAll    = "execute_all"
	stopAtDeny    = "deny_on_first_deny"
	stopAtPermit  = "permit_on_first_permit"
	semanticField = "options.evaluations_semantic"
)

// accessDecisions is the answer to evaluations of AuthZEN.
type accessDecisions struct {
	Evaluations []accessDecision `json:"evaluations"`
}

// accessEvaluations decides evaluations of AuthZEN. Those without items are a single one.
func (s *Server) accessEvaluations(r *request) error {
	body, err := readAccess(r.body)
	if err != nil {
		return err
	}
	batch, err := body.batch()
	if err != nil {
		return err
	}
	if len(batch.items) == 0 {
		return s.evaluateAccess(r, body)
	}
	s.throttle.evaluate.Charge(credential{r.who.org, r.who.subject}, len(batch.items)-1, r.now)
	all, requests := make([]*evaluateBody, len(batch.items)), make([]decision.Request, len(batch.items))
	errs := make([]error, len(batch.items))
	for i, item := range batch.items {
		if all[i], errs[i] = s.accessIntent(r, item); errs[i] == nil {
			requests[i] = decision.Request{Intent: all[i].Intent, ApprovalID: all[i].ApprovalID}
		}
		r.slot.Yield()
	}
	if batch.semantic == executeAll {
		outs, err := s.decideEach(r, requests, errs)
		if err != nil {
			return err
		}
		return r.ok(s.answerAccesses(r, all, outs, batch.whole))
	}
	// Each item is decided by itself: an item behind the one that ends the batch must not be decided.
	var outs []ledger.Outcome
	for i := range requests {
		out, err := s.decideEach(r, requests[i:i+1], errs[i:i+1])
		if err != nil {
			return err
		}
		outs = append(outs, out...)
		permitted := out[0].Err == nil && permits(r, all[i], out[0])
		if permitted == (batch.semantic == stopAtPermit) {
			break
		}
	}
	return r.ok(s.answerAccesses(r, all, outs, batch.whole))
}

// answerAccesses returns the answers to the intents that were decided, or not.
func (s *Server) answerAccesses(r *request, all []*evaluateBody, outs []ledger.Outcome, whole bool) accessDecisions {
	answer := accessDecisions{make([]accessDecision, len(outs))}
	for i, out := range outs {
		if out.Err == nil {
			answer.Evaluations[i] = s.answerAccess(r, all[i], out, whole)
			continue
		}
		p := problemOf(out.Err)
		s.metrics.problems.WithLabelValues(p.Code).Inc()
		if p.logged {
			route := http.MethodPost + " " + evaluationsPath
			s.refused.add(refused{requestID: r.id, route: route, problem: p, err: out.Err})
		}
		answer.Evaluations[i].Context = &accessContext{
			Error: &accessError{Status: p.Status, Code: p.Code, Message: p.Detail, Errors: p.Errors},
		}
	}
	return answer
}

// accessIntent reads an evaluation of AuthZEN as an intent, and checks it.
func (s *Server) accessIntent(r *request, body accessBody) (*evaluateBody, error) {
	in, err := body.intent()
	if err != nil {
		return nil, err
	}
	switch {
	case in.PolicyID == "":
		in.PolicyID = r.who.policy
	case r.who.policy != "" && in.PolicyID != r.who.policy:
		return nil, refuse(codePolicyNotBound, "The key is bound to another policy than context.policy_id.")
	}
	if in.PolicyID == "" {
		return nil, invalid("context.policy_id", "is required: the credential is bound to no policy")
	}
	in.Intent.PolicyID = in.PolicyID
	if in.ApprovalID != "" {
		err = s.asHeld(r, in)
	} else {
		err = s.stampAccess(r, in.Intent)
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkEvaluate(r, in); err != nil {
		return nil, asAccess(err)
	}
	return in, s.auth.actFor(&r.who, in.Intent.AgentID)
}

// stampAccess gives an intent its time and, if the caller chose none, its id. A repeated intent has the time of the
// first one.
func (s *Server) stampAccess(r *request, in *engine.Intent) error {
	in.IssuedAt = r.now.UTC().Format(time.RFC3339Nano)
	if in.IntentID == "" {
		in.IntentID = uuid.NewString()
		return nil
	}
	row, err := s.before(r, in.IntentID)
	if row != nil {
		in.IssuedAt = row.Intent().IssuedAt
	}
	return err
}

// accessFields has the members of AuthZEN's body from which the fields of an intent are made.
var accessFields = map[string]string{
	"approval_id": "context.approval.id", "policy_id": "context.policy_id",
	"intent.policy_id": "context.policy_id", "intent.intent_id": "context.intent_id",
	"intent.agent_id": "subject", "intent.action_type": "action.name", "intent.resource": "resource",
	"intent.metadata": "properties and context",
}

// asAccess names the fields of err as AuthZEN does.
func asAccess(err error) error {
	var fields *engine.InvalidError
	if !errors.As(err, &fields) {
		return err
	}
	var bad fieldErrors
	for _, f := range fields.Fields {
		name, known := accessFields[f.Field]
		if !known {
			name = strings.TrimPrefix(f.Field, "intent.metadata.")
			for _, entity := range []string{"subject", "action", "resource"} {
				if rest, ok := strings.CutPrefix(name, entity+"."); ok {
					name = entity + ".properties." + rest
				}
			}
		}
		bad.add(name, f.Message)
	}
	return bad.err()
}

// echoRequestID returns the id of a request to its sender, whatever the id is. AuthZEN demands it. The log never has
// an id that requestIDs does not take.
func echoRequestID(fc *fasthttp.RequestCtx) {
	if id := fc.Request.Header.Peek(headerRequestID); len(id) > 0 {
		fc.Response.Header.SetBytesV(headerRequestID, id)
	}
}

// asMalformed turns the refusal of a body for its media type into the status that AuthZEN wants.
func asMalformed(err error) error {
	var refused *refusalError
	if errors.As(err, &refused) && refused.problem.Code == codeMediaType {
		return refuse(codeInvalidRequest, refused.problem.Detail)
	}
	return err
}

// with returns the body of an item. The item inherits each member of b that it does not have itself.
func (b accessBody) with(item accessBody) accessBody {
	whole := maps.Clone(b)
	maps.Copy(whole, item)
	return whole
}

// batch reads what a body of evaluations has beyond an evaluation.
func (b accessBody) batch() (batch accessBatch, err error) {
	batch.semantic = executeAll
	if v, ok := b["options"]; ok {
		options, problem := accessObject(v)
		if problem != "" {
			return batch, invalid("options", "%s", problem)
		}
		if v, ok := options["evaluations_semantic"]; ok {
			batch.semantic, _ = accessText(v)
		}
		if v, ok := options["context"]; ok && v.Kind() != 't' && v.Kind() != 'f' {
			return batch, invalid("options.context", "must be true or false")
		}
		batch.whole = string(options["context"]) == "true"
	}
	switch batch.semantic {
	case executeAll, stopAtDeny, stopAtPermit:
	default:
		return batch, invalid(semanticField, "must be %s, %s or %s", executeAll, stopAtDeny, stopAtPermit)
	}
	items, problem := accessArray(b["evaluations"])
	if problem != "" {
		return batch, invalid("evaluations", "%s", problem)
	}
	if len(items) > maxBatch {
		return batch, invalid("evaluations", "want at most %d, have %d", maxBatch, len(items))
	}
	for i, v := range items {
		item, problem := accessObject(v)
		if problem != "" {
			return batch, invalid(fmt.Sprintf("evaluations[%d]", i), "%s", problem)
		}
		batch.items = append(batch.items, b.with(item))
	}
	return batch, nil
}
