package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/toolcall"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// hookClaude decides a call of a tool of Claude Code. The policy and the agent are the key's. A call
// that is repeated has the intent of the first time, and redeems its approval, once.
func (s *Server) hookClaude(r *request) error {
	held, given := r.query.take("held")
	if err := r.query.done(); err != nil {
		return err
	}
	switch {
	case !given:
		held = "deny"
	case held != "deny" && held != "ask" && held != "defer":
		return invalid("held", "want deny, ask or defer")
	}
	all, err := s.toolIntents(r)
	if err != nil {
		return err
	}
	outs, err := s.decideCall(r, all)
	if err != nil {
		return err
	}
	return r.ok(answerHook(r, all, outs, held))
}

// decideCall decides the intents of a call: all of them are allowed, or none is.
func (s *Server) decideCall(r *request, all []*evaluateBody) ([]ledger.Outcome, error) {
	s.throttle.evaluate.Charge(credential{r.who.org, r.who.subject}, len(all)-1, r.now)
	requests := make([]decision.Request, len(all))
	for i, in := range all {
		if err := s.checkEvaluate(r, in); err != nil {
			return nil, err
		}
		if err := s.auth.actFor(&r.who, in.Intent.AgentID); err != nil {
			return nil, err
		}
		requests[i] = decision.Request{Intent: in.Intent, ApprovalID: in.ApprovalID}
	}
	outs, err := s.decisions.DecideAll(r.ctx, r.caller(), requests)
	var item *decision.ItemError
	if errors.As(err, &item) {
		err = aboutDecision(item.Err)
	}
	return outs, err
}

// answerHook says what becomes of a call. A deny of one intent counts before a hold of another one.
func answerHook(r *request, all []*evaluateBody, outs []ledger.Outcome, held string) toolcall.ClaudeAnswer {
	const denied = "writ denied this"
	var holds, denies []*storage.Record
	for i, out := range outs {
		switch row := out.Record; {
		case row.Decision == engine.ApprovalRequired:
			holds = append(holds, row)
		case row.Decision != engine.Allow && !refusedWithOthers(row):
			denies = slices.Insert(denies, 0, row)
		case row.Decision != engine.Allow:
			denies = append(denies, row)
		case usedBefore(all[i], out):
			return toolcall.AnswerClaude("deny", denied+": the approval "+all[i].ApprovalID+" was used")
		case expired(r, out):
			return toolcall.AnswerClaude("deny", denied+": the receipt of decision "+row.DecisionID+" has expired")
		}
	}
	switch {
	case len(holds) > 0 && (len(denies) == 0 || refusedWithOthers(denies[0])):
		return toolcall.AnswerClaude(held,
			"writ: held, approval "+holds[0].DecisionID+": "+strings.Join(holds[0].Reasons, "; "))
	case len(denies) > 0:
		return toolcall.AnswerClaude("deny",
			denied+" (decision "+denies[0].DecisionID+"): "+strings.Join(denies[0].Reasons, "; "))
	}
	return toolcall.ClaudeAnswer{}
}

// refusedWithOthers reports whether an intent was denied because of the others of its call alone.
func refusedWithOthers(row *storage.Record) bool {
	return row.Decision == engine.Deny && len(row.Findings) > 0 &&
		row.Findings[0].Code == string(engine.CodeBatchRefused)
}

// usedBefore reports whether out repeats the decision that used the approval of in. The caller that got this decision
// first has acted on it.
func usedBefore(in *evaluateBody, out ledger.Outcome) bool {
	return in.ApprovalID != "" && out.Replayed
}

// toolIntents reads a call of a tool as intents under the policy and the agent of the key, one for each file that it
// names.
func (s *Server) toolIntents(r *request) ([]*evaluateBody, error) {
	// The call keeps parts of the text, and the request's memory is used again.
	call, err := toolcall.Parse(toolcall.Claude, bytes.Clone(r.body))
	if err != nil {
		return nil, refuse(codeInvalidRequest, "This is no call of a tool: "+printable(err.Error())+".")
	}
	switch {
	case r.who.policy == "":
		return nil, refuse(codeInvalidRequest, "The key is bound to no policy: use one with policy_id.")
	case r.who.agents == nil || !r.who.agents.IsID():
		return nil, refuse(codeInvalidRequest, "The key is not bound to one agent: its agent_id must be no pattern.")
	}
	resources, err := call.Resources()
	if err == nil && len(resources) > maxBatch {
		err = fmt.Errorf("it names %d files, want at most %d", len(resources), maxBatch)
	}
	if err != nil {
		return nil, refuse(codeInvalidRequest, "The call cannot be decided: "+printable(err.Error())+".")
	}
	facts, err := call.Facts()
	if err != nil {
		return nil, refuse(codeInvalidRequest, "The call cannot be decided: "+printable(err.Error())+".")
	}
	all, first := make([]*evaluateBody, len(resources)), call.IntentID()
	for i, resource := range resources {
		all[i] = &evaluateBody{PolicyID: r.who.policy, Intent: &engine.Intent{
			IntentID: toolcall.Following(first, i), PolicyID: r.who.policy, AgentID: r.who.agents.String(),
			ActionType: call.ActionType(), Resource: resource, Metadata: facts,
			IssuedAt: r.now.UTC().Format(time.RFC3339Nano),
		}}
	}
	return all, s.asBefore(r, all)
}

// asBefore gives the intents of a call the times and the approvals of the rows that decided them before, if there are
// any. Another call under the same ids is still a conflict, because its digest differs.
//
// Approvals of a call of several intents are used together, once there is a verdict about each. An intent that was
// denied because of the others stays denied, so it is then asked about as another intent.
func (s *Server) asBefore(r *request, all []*evaluateBody) error {
	var refused []*engine.Intent
	judged := true
	for _, in := range all {
		row, err := s.before(r, in.Intent.IntentID)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		in.Intent.IssuedAt = row.Intent().IssuedAt
		switch {
		case row.Decision == engine.ApprovalRequired:
			in.ApprovalID = row.DecisionID
			if len(all) > 1 && judged {
				judged, err = s.judged(r, in.ApprovalID)
			}
		case refusedWithOthers(row):
			refused = append(refused, in.Intent)
		}
		if err != nil {
			return err
		}
	}
	if !judged {
		for _, in := range all {
			in.ApprovalID = ""
		}
		return nil
	}
	if held := func(in *evaluateBody) bool { return in.ApprovalID != "" }; slices.ContainsFunc(all, held) {
		for _, in := range refused {
			in.IntentID = toolcall.Following(in.IntentID, maxBatch) // of no other place
		}
	}
	return nil
}

// judged reports whether there is a verdict about a held decision, or it has expired.
func (s *Server) judged(r *request, id string) (bool, error) {
	defer condition.Paused(&r.slot)()
	a, err := s.decisions.Approvals.Find(r.ctx, r.who.org, id)
	if err != nil {
		return false, about("approval", err)
	}
	return a.Status(s.decisions.Approvals.Now()) != approval.Pending, nil
}

// before returns the row that decided an intent before, or nil if the intent was not decided yet.
func (s *Server) before(r *request, intentID string) (*storage.Record, error) {
	defer condition.Paused(&r.slot)()
	row, err := s.store.Decided(r.ctx, r.who.org, intentID, "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return row, about("decision", err)
}
