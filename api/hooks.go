package api

import (
	"bytes"
	"errors"
	"strings"
	"time"

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
	in, err := s.toolIntent(r)
	if err != nil {
		return err
	}
	out, err := s.decide(r, in)
	if err != nil {
		return err
	}
	return r.ok(answerHook(r, in, out, held))
}

// answerHook says what becomes of a call.
func answerHook(r *request, in *evaluateBody, out ledger.Outcome, held string) toolcall.ClaudeAnswer {
	reasons := strings.Join(out.Record.Reasons, "; ")
	switch {
	case out.Record.Decision == engine.ApprovalRequired:
		return toolcall.AnswerClaude(held, "writ: held, approval "+out.Record.DecisionID+": "+reasons)
	case out.Record.Decision != engine.Allow:
		return toolcall.AnswerClaude("deny", "writ denied this (decision "+out.Record.DecisionID+"): "+reasons)
	case usedBefore(in, out):
		return toolcall.AnswerClaude("deny", "writ denied this: the approval "+in.ApprovalID+" was used")
	case expired(r, out):
		return toolcall.AnswerClaude("deny",
			"writ denied this: the receipt of decision "+out.Record.DecisionID+" has expired")
	}
	return toolcall.ClaudeAnswer{}
}

// usedBefore reports whether out repeats the decision that used the approval of in. The caller that got this decision
// first has acted on it.
func usedBefore(in *evaluateBody, out ledger.Outcome) bool {
	return in.ApprovalID != "" && out.Replayed
}

// toolIntent reads a call of a tool as an intent under the policy and the agent of the key.
func (s *Server) toolIntent(r *request) (*evaluateBody, error) {
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
	resource, err := call.Resource()
	if err != nil {
		return nil, refuse(codeInvalidRequest, "The call cannot be decided: "+printable(err.Error())+".")
	}
	facts, err := call.Facts()
	if err != nil {
		return nil, refuse(codeInvalidRequest, "The call cannot be decided: "+printable(err.Error())+".")
	}
	in := &evaluateBody{PolicyID: r.who.policy, Intent: &engine.Intent{
		IntentID: call.IntentID(), PolicyID: r.who.policy, AgentID: r.who.agents.String(),
		ActionType: call.ActionType(), Resource: resource, Metadata: facts,
		IssuedAt: r.now.UTC().Format(time.RFC3339Nano),
	}}
	return in, s.asBefore(r, in)
}

// asBefore gives an intent the time and the approval of the row that decided it before, if there is
// one. Another call under the same id is still a conflict, because its digest differs.
func (s *Server) asBefore(r *request, in *evaluateBody) error {
	row, err := s.before(r, in.Intent.IntentID)
	if row == nil {
		return err
	}
	in.Intent.IssuedAt = row.Intent().IssuedAt
	if row.Decision == engine.ApprovalRequired {
		in.ApprovalID = row.DecisionID
	}
	return nil
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
