package api

import (
	"strings"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// evaluateBody is the body of both evaluation endpoints.
type evaluateBody struct {
	PolicyID  string         `json:"policy_id"`
	Intent    *engine.Intent `json:"intent"`
	SessionID *string        `json:"session_id"`
	// ApprovalID is the id of the decision that held the intent, or empty. The intent is then
	// decided under the approval of that decision.
	ApprovalID string `json:"approval_id,omitzero"`

	// The pointers of this body point to the fields below after decodePlain. This saves
	// allocations.
	intent  engine.Intent
	cost    engine.Cost
	session string
}

// checkEvaluate reports all mistakes of a body at once.
func (s *Server) checkEvaluate(r *request, in *evaluateBody) error {
	return in.validate(r.who.scopes, s.cfg.Scrub.Tagged)
}

// validate reports all mistakes of the body at once. scopes are the scopes of the request's
// credential. tagged is Scrubber.Tagged.
func (in *evaluateBody) validate(scopes scopeSet, tagged func(text string) bool) error {
	var bad fieldErrors
	in.PolicyID = engine.LowerUUID(in.PolicyID)
	if in.PolicyID == "" && in.Intent != nil && in.Intent.PolicyID != "" {
		bad.add("policy_id", "is required beside intent.policy_id")
	} else {
		bad.uuid("policy_id", in.PolicyID)
	}
	if in.ApprovalID = engine.LowerUUID(in.ApprovalID); in.ApprovalID != "" {
		bad.uuid("approval_id", in.ApprovalID)
	}
	if in.Intent == nil {
		bad.add("intent", "is required")
		return bad.err()
	}
	in.Intent.Normalize()
	in.Intent.SessionID = bad.session(in.SessionID)
	bad.merge(in.Intent.Validate())
	bad.tags(in.Intent, tagged)
	bad.facts(in.Intent.Metadata, scopes)
	if in.PolicyID != in.Intent.PolicyID && len(bad.list) == 0 {
		bad.add("intent.policy_id", "must be the policy_id of the body")
	}
	return bad.err()
}

// tags refuses identities that look like tags. The history writes a tag in place of a secret.
func (f *fieldErrors) tags(in *engine.Intent, tagged func(text string) bool) {
	const problem = "must not hold text such as [email-address:ABCDEFGHIJKLMNOP], which is how the history writes " +
		"what it hides"
	if tagged(in.AgentID) {
		f.add("intent.agent_id", problem)
	}
	// Another check reports a resource that has no reading.
	if readings, err := in.Readings(); err == nil && tagged(readings.Projection()) {
		f.add("intent.resource", problem)
	}
}

// evaluate decides an intent. A deny is a result like any other.
func (s *Server) evaluate(r *request, in *evaluateBody) error {
	out, err := s.decide(r, in)
	if err != nil {
		return err
	}
	return r.decided(in, out)
}

// decided sends the decision on the intent. If the approval of in is still pending, the answer has
// a Retry-After.
func (r *request) decided(in *evaluateBody, out ledger.Outcome) error {
	if in.ApprovalID != "" && out.Record.DecisionID == in.ApprovalID {
		r.res.retryAfter = retryPending
	}
	r.res.replayed, r.res.expired = out.Replayed, expired(r, out)
	return r.ok((*evaluation)(out.Record))
}

// expired reports whether out repeats an earlier allow whose receipt has expired. The repeated body
// has the bytes of the first answer, so only a header can tell the caller.
func expired(r *request, out ledger.Outcome) bool {
	return out.Replayed && out.Record.Decision == engine.Allow && r.now.Unix() >= out.Record.Receipt.Exp
}

// authorize is like evaluate, but answers a deny with status 403.
func (s *Server) authorize(r *request, in *evaluateBody) error {
	out, err := s.decide(r, in)
	if err != nil {
		return err
	}
	if out.Record.Decision == engine.Allow || out.Record.Decision == engine.ApprovalRequired {
		return r.decided(in, out)
	}
	return denial(out)
}

// decide checks an intent and returns the decision on it. A client may send a used intent id again
// with an invalid body or an unknown policy. Such a request gets a 400 or 404, not a 409: neither
// reveals the earlier body.
func (s *Server) decide(r *request, in *evaluateBody) (ledger.Outcome, error) {
	if err := s.checkEvaluate(r, in); err != nil {
		return ledger.Outcome{}, err
	}
	if err := s.auth.actFor(&r.who, in.Intent.AgentID); err != nil {
		return ledger.Outcome{}, err
	}
	out := s.decisions.Decide(r.ctx, r.caller(), []decision.Request{{Intent: in.Intent, ApprovalID: in.ApprovalID}})[0]
	return out, aboutDecision(out.Err)
}

// caller returns the caller on whose behalf the request is decided.
func (r *request) caller() decision.Caller {
	return decision.Caller{Organization: r.who.org, Credential: r.who.credential(), Slot: &r.slot}
}

// evaluation is a record in the form of an answer. The encoding depends on the record alone, so a
// repeated answer has the same bytes.
type evaluation storage.Record

// appendJSON appends the contract's PolicyEvaluationResult. The members are in the contract's order.
func (e *evaluation) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"ok":true,"approved":`...)
	if e.Decision == engine.Allow {
		dst = append(dst, `true,"decision":`...)
	} else {
		dst = append(dst, `false,"decision":`...)
	}
	dst = append(receipt.AppendString(dst, e.Decision.String()), `,"reasons":[`...)
	for i, reason := range e.Reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = receipt.AppendString(dst, reason)
	}
	dst = receipt.AppendString(append(dst, `],"decision_id":`...), e.DecisionID)
	if e.AuditDigest != "" {
		dst = receipt.AppendString(append(dst, `,"audit_digest":`...), e.AuditDigest)
	}
	dst = appendReceipt(append(dst, `,"receipt":`...), &e.Receipt)
	return append(dst, '}')
}

func appendReceipt(dst []byte, r *receipt.Receipt) []byte {
	dst = receipt.AppendString(append(dst, `{"decision":`...), r.Decision)
	dst = receipt.AppendString(append(dst, `,"decision_id":`...), r.DecisionID)
	dst = receipt.AppendString(append(dst, `,"digest":`...), r.Digest)
	dst = receipt.AppendInt(append(dst, `,"exp":`...), r.Exp)
	// The signature is base64url and needs no escape. It is by far the longest member.
	dst = append(append(dst, `,"sig":"`...), r.Sig...)
	dst = receipt.AppendString(append(dst, `","kid":`...), r.KeyID)
	return append(dst, '}')
}

// denial returns the problem with which authorize answers a deny. The problem contains the whole
// result. Each reason starts with its code. No text of the intent precedes the code, so an intent
// cannot imitate a code.
func denial(out ledger.Outcome) error {
	p := problem{Code: codePolicyViolation, Detail: "The policy does not allow this.",
		DecisionID: out.Record.DecisionID, Reasons: out.Record.Reasons, AuditDigest: out.Record.AuditDigest,
		Receipt:  &out.Record.Receipt,
		replayed: out.Replayed,
	}
	for _, reason := range out.Record.Reasons {
		if strings.HasPrefix(reason, string(engine.CodeUsageLimit)+":") {
			p.Code, p.Detail = codeUsageLimit, "The plan's evaluations of this month are used up."
		}
	}
	return refuseWith(p)
}
