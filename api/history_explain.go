package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
	"writ/storage/ledger"
)

// explained is a row of the history with the explanation of its decision. The explanation is not stored.
type explained struct {
	*storage.Record
	Explanation *engine.Explanation `json:"explanation,omitzero"`
	// Unexplained says why Explanation is missing.
	Unexplained string `json:"unexplained,omitzero"`
}

// The reasons why a row has no explanation.
const (
	changedSince = "the policy, the rules, the agent or the session have changed since"
	partOfIntent = "the history does not keep all of the intent: a value of the metadata, a part of the resource, " +
		"the agent's name as it was sent or a text like a secret is left out"
	moreThanThat = "the decision rests on more than the policy, its rules, the agent and the session: a batch, an " +
		"approval, a limit over time or an external core"
)

func wantsExplanation(q *query) bool {
	text, ok := q.take("explain")
	if ok && text != "true" && text != "false" {
		q.refuse(invalid("explain", "must be true or false"))
	}
	return text == "true"
}

// explain evaluates the intent of a row again, with the same trace as a simulation. It explains
// only what is certain: the documents must have the revisions of the decision, the intent must have
// the digest of the row, and the reasons must be equal. The explanation shows documents, so the
// caller needs the scopes to read these documents.
func (s *Server) explain(r *request, record *storage.Record) error {
	if err := s.auth.permit(&r.who, scopePolicyRead|scopeRulesRead); err != nil {
		return err
	}
	row := &explained{Record: record}
	in, err := s.decided(r, record)
	if err != nil {
		return err
	}
	if in == nil {
		row.Unexplained = partOfIntent
		return r.ok(row)
	}
	set, err := s.decisions.Sets.Load(r.ctx, &r.slot, r.who.org, record.PolicyID, in.AgentID)
	then := engine.Revisions{Policy: record.PolicyRevision, Rules: record.RulesRevision, Agent: record.AgentRevision}
	if found(record, engine.CodeAgentDisabled) { // use the agent's status at the decision, not the current one
		set.Agent, then.Agent = engine.AgentDisabled, set.Revisions.Agent
	}
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && (then.Policy == 0 || set.Revisions != then):
		row.Unexplained = changedSince
		return r.ok(row)
	case err != nil:
		return fmt.Errorf("loading what explains a decision: %w", err)
	}
	input := &engine.Input{
		Intent: in, DecidedAt: record.DecidedAt, Names: set.Names, Agent: set.Agent,
		RequireRegistered: s.decisions.RequiresRegistered(),
		Usage:             engine.Usage{Exceeded: found(record, engine.CodeUsageLimit)},
		Turn:              &r.slot,
		Ended:             r.ctx.Done(),
		Trace:             &engine.Trace{},
	}
	if id := record.SessionID; id != "" {
		session, err := s.decisions.Sets.Session(r.ctx, &r.slot, r.who.org, id)
		closed := err == nil && session.Document().Status != engine.SessionActive
		switch {
		case errors.Is(err, storage.ErrNotFound), closed && !found(record, engine.CodeSessionClosed):
			row.Unexplained = changedSince
			return r.ok(row)
		case err != nil:
			return fmt.Errorf("loading the session that explains a decision: %w", err)
		}
		input.Session = engine.InSession{
			CompiledSession: session, Expired: found(record, engine.CodeSessionExpired),
		}
	}
	result := engine.Evaluate(set.Policy, set.Rules, input)
	if result.Err != nil {
		return unfinished(r, result)
	}
	if result.Decision != record.Decision || !slices.Equal(result.Reasons(), record.Reasons) {
		row.Unexplained = moreThanThat
		return r.ok(row)
	}
	row.Explanation = explanationOf(input.Trace)
	return r.ok(row)
}

// decided returns the intent of a row, or nil if its digest is not the row's. The row may have another
// name of the agent than the intent, so decided tries the names under which the agent is registered.
func (s *Server) decided(r *request, record *storage.Record) (*engine.Intent, error) {
	in := record.Intent()
	if ledger.IntentDigest(in) == record.IntentDigest {
		return in, nil
	}
	_, names, err := s.decisions.Sets.Agent(r.ctx, &r.slot, r.who.org, in.AgentID)
	if err != nil {
		return nil, fmt.Errorf("loading the names of an agent that explain a decision: %w", err)
	}
	for _, in.AgentID = range [...]string{names.ID, names.ExternalID} {
		if in.AgentID != "" && ledger.IntentDigest(in) == record.IntentDigest {
			return in, nil
		}
	}
	return nil, nil
}

// explanationOf explains rules until their total size reaches sixteen conditions of the greatest
// length. This bounds the memory of an answer.
func explanationOf(t *engine.Trace) *engine.Explanation {
	return t.ExplainUpTo(16 * condition.MaxCondition)
}

// found reports whether r has a reason with this code.
func found(r *storage.Record, code engine.Code) bool {
	return slices.ContainsFunc(r.Reasons, func(reason string) bool {
		return strings.HasPrefix(reason, string(code)+":")
	})
}
