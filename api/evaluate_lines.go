package api

import (
	"strconv"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// lineAnswer is the answer to a line of a stream.
type lineAnswer struct {
	ref     string // empty if the line has none
	pending bool   // whether the approval of the line is pending
	ledger.Outcome
}

// decideLines decides lines like the intents of a batch of the mode each. If refusal is set, it is the answer to all of
// them.
func (s *Server) decideLines(r *request, lines []string, all []lineAnswer, refusal error) {
	requests, errs := make([]decision.Request, len(lines)), make([]error, len(lines))
	for i, line := range lines {
		var in evaluateLine
		errs[i] = s.readLine(r, line, &in, refusal)
		all[i].ref = in.Ref
		requests[i] = decision.Request{Intent: in.Intent, ApprovalID: in.ApprovalID}
		r.slot.Yield()
	}
	for i, out := range s.outcomes(r, requests, errs) {
		all[i].Outcome = out
		id := requests[i].ApprovalID
		all[i].pending = out.Err == nil && id != "" && out.Record.DecisionID == id
	}
}

// evaluateLine is a line of a stream.
type evaluateLine struct {
	Ref string // the client's name of the line, which its answer repeats
	*evaluateBody
}

// readLine reads and checks a line, and counts it for its credential. If refusal is set, readLine returns it, unless
// the line is worse. in has the ref if the line has a good one.
func (s *Server) readLine(r *request, line string, in *evaluateLine, refusal error) error {
	in.evaluateBody = new(evaluateBody)
	err := s.decodeLine(r, line, in)
	if checkRef(in.Ref) != nil {
		in.Ref = ""
	}
	if refusal != nil {
		return refusal
	}
	if _, often := s.throttle.evaluate.Take(credential{r.who.org, r.who.subject}, r.now); often != nil {
		return often
	}
	if err != nil {
		return err
	}
	return s.auth.actFor(&r.who, in.Intent.AgentID)
}

func checkRef(ref string) error {
	var bad fieldErrors
	switch {
	case ref == "":
		bad.add("ref", "is required: it is your name of the intent, which the answer repeats")
	case len(ref) > maxRef:
		bad.add("ref", "must have at most "+strconv.Itoa(maxRef)+" bytes")
	}
	return bad.err()
}

// decodeLine reads a line and reports all its mistakes. It has a fast path like decodeEvaluate.
func (s *Server) decodeLine(r *request, line string, in *evaluateLine) error {
	check := func() error {
		var bad fieldErrors
		bad.merge(checkRef(in.Ref))
		bad.merge(s.checkEvaluate(r, in.evaluateBody))
		return bad.err()
	}
	if len(line) <= condition.MaxText && decodePlain(line, in.evaluateBody, plainText{"ref", &in.Ref}) {
		return check()
	}
	var doc struct {
		Ref        string         `json:"ref"`
		PolicyID   string         `json:"policy_id"`
		Intent     *engine.Intent `json:"intent"`
		SessionID  *string        `json:"session_id"`
		ApprovalID string         `json:"approval_id,omitzero"`
	}
	read := func() error {
		*in = evaluateLine{doc.Ref, &evaluateBody{
			PolicyID: doc.PolicyID, Intent: doc.Intent, SessionID: doc.SessionID, ApprovalID: doc.ApprovalID,
		}}
		return check()
	}
	*in = evaluateLine{evaluateBody: new(evaluateBody)}
	if err := engine.Decode([]byte(line), "", &doc, read); err != nil {
		return intentEnvelope().hint(err)
	}
	return read()
}

// putAnswers puts a message for each answer into out, in place of what it had.
func (c *intentStream) putAnswers(out *answerRoom, r *request, all []lineAnswer) {
	out.messages = out.messages[:0]
	for i := range all {
		out.text = c.appendAnswer(out.text[:0], r, &all[i])
		out.messages = c.socket.Append(out.messages, out.text)
	}
}

// appendAnswer appends the result or the problem of a line. The members before it are what an answer of
// POST /v1/policy/evaluate has as headers.
func (c *intentStream) appendAnswer(dst []byte, r *request, a *lineAnswer) []byte {
	dst = append(dst, `{"ref":`...)
	if a.ref == "" {
		dst = append(dst, "null"...)
	} else {
		dst = receipt.AppendString(dst, a.ref)
	}
	var at int
	if a.Err != nil {
		p, body := c.s.itemProblem(r, c.method, evaluateStreamPath, a.Err)
		if p.retryAfter > 0 {
			dst = receipt.AppendInt(append(dst, `,"retry_after":`...), int64(p.retryAfter))
		}
		at = len(dst)
		dst = append(dst, body...)
	} else {
		if a.pending {
			dst = receipt.AppendInt(append(dst, `,"retry_after":`...), retryPending)
		}
		if a.Replayed {
			dst = append(dst, `,"replayed":true`...)
		}
		if expired(r, a.Outcome) {
			dst = append(dst, `,"expired":true`...)
		}
		at = len(dst)
		dst = (*evaluation)(a.Record).appendJSON(dst)
	}
	dst[at] = ',' // in place of the object's brace
	return dst
}
