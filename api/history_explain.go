package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
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
	noPolicy     = "the version of the policy is not here"
	moreThanThat = "the decision rests on more than the policy, its rules, the agent and the session: an external core"
)

func wantsExplanation(q *query) bool {
	text, ok := q.take("explain")
	if ok && text != "true" && text != "false" {
		q.refuse(invalid("explain", "must be true or false"))
	}
	return text == "true"
}

// explain evaluates the intent of a row again under what stood at the decision, with the same trace as a
// simulation. If all is known, the reasons must be equal. Otherwise the row says what an evaluation cannot,
// and the explanation names what it lacks. It shows documents, so the caller needs the scopes to read
// these documents.
func (s *Server) explain(r *request, record *storage.Record) error {
	if err := s.auth.permit(&r.who, scopePolicyRead|scopeRulesRead); err != nil {
		return err
	}
	row := &explained{Record: record}
	in, known, err := s.decided(r, record)
	if err != nil {
		return err
	}
	stood, err := s.decisions.Stood(r.ctx, &r.slot, record, in)
	switch {
	case err != nil:
		return fmt.Errorf("loading what explains a decision: %w", err)
	case stood.Policy == nil:
		row.Unexplained = noPolicy
		return r.ok(row)
	}
	input := &engine.Input{
		Intent: in, DecidedAt: record.DecidedAt, Names: stood.Names, Agent: stood.Agent,
		Stopped:           stood.Stopped,
		RequireRegistered: stood.RequireRegistered,
		Usage:             engine.Usage{Exceeded: record.Found(engine.CodeUsageLimit)},
		Session:           stood.Session,
		Keep:              s.decisions.Keeper(),
		Turn:              &r.slot,
		Ended:             r.ctx.Done(),
		Trace:             &engine.Trace{},
	}
	rec := recordedIn(record, stood.Lacking)
	if !known {
		rec.Unknown = record.LeftOut
		in.Metadata = withKeys(record)
	}
	if stood.Rules != nil && len(stood.Rules.Counters()) > 0 {
		rec.Unknown = append(slices.Clone(rec.Unknown), condition.CountsMember)
	}
	var ended *engine.EndedError
	switch err := s.led(&stood, input, &rec); {
	case errors.As(err, &ended):
		return fmt.Errorf("%w: %w", err, context.Cause(r.ctx))
	case err != nil:
		row.Unexplained = moreThanThat
	default:
		row.Explanation = explanationOf(input.Trace)
	}
	return r.ok(row)
}

// led records in the trace of input how what stood led to the decision, or returns [engine.ErrOtherwise].
func (s *Server) led(stood *decision.Stood, input *engine.Input, rec *engine.Recorded) error {
	if len(rec.Unknown)+len(rec.Lacking) > 0 || rec.Overruled {
		return engine.ExplainRecorded(stood.Policy, stood.Rules, input, *rec)
	}
	result := engine.Evaluate(stood.Policy, stood.Rules, input)
	recorded := engine.Result{Findings: rec.Findings}
	switch {
	case result.Err != nil:
		return result.Err
	case result.Decision != rec.Decision || !slices.Equal(result.Reasons(), recorded.Reasons()):
		return engine.ErrOtherwise
	}
	return nil
}

// recordedIn returns the decision and the findings of a row. lacking names the facts that are no longer known.
func recordedIn(record *storage.Record, lacking []string) engine.Recorded {
	rec := engine.Recorded{Decision: record.Decision, Lacking: lacking}
	for i, reason := range record.Reasons {
		code, _, _ := strings.Cut(reason, ":")
		f := engine.Finding{Code: engine.Code(code), Outcome: record.Decision, Reason: reason}
		if i < len(record.Findings) {
			of := &record.Findings[i]
			f = engine.Finding{Code: engine.Code(of.Code), Outcome: of.Outcome, Reason: reason, RuleID: of.RuleID,
				RuleRevision: of.RuleRevision, Cause: of.Cause, Field: of.Field}
		}
		what := ""
		switch {
		case strings.HasPrefix(code, "approval."):
			what = "approval"
		case f.Code == engine.CodeBatchRefused:
			what = "batch"
		case len(record.Findings) == 0 && f.Code != engine.CodePolicyAllowed: // of an earlier version of writ
			what = "findings"
		}
		if what != "" && !slices.Contains(rec.Lacking, what) {
			rec.Lacking, rec.Overruled = append(rec.Lacking, what), true
		}
		rec.Findings = append(rec.Findings, f)
	}
	return rec
}

// withKeys returns the metadata of a row with all its keys. A value that is not kept is empty.
func withKeys(record *storage.Record) map[string]string {
	if record.Metadata == nil && len(record.MetadataKeys) == 0 {
		return nil
	}
	metadata := make(map[string]string, len(record.MetadataKeys))
	for _, key := range record.MetadataKeys {
		metadata[key] = record.Metadata[key]
	}
	return metadata
}

// decided returns the intent of a row, and whether all of it is known: its digest is then the row's. The
// row may have another name of the agent than the intent, so decided tries the names under which the agent
// is registered.
func (s *Server) decided(r *request, record *storage.Record) (in *engine.Intent, known bool, err error) {
	in = record.Intent()
	if ledger.IntentDigest(in) == record.IntentDigest {
		return in, true, nil
	}
	_, names, err := s.decisions.Sets.Agent(r.ctx, &r.slot, r.who.org, in.AgentID)
	if err != nil {
		return nil, false, fmt.Errorf("loading the names of an agent that explain a decision: %w", err)
	}
	other := *in
	for _, other.AgentID = range [...]string{names.ID, names.ExternalID} {
		if other.AgentID != "" && ledger.IntentDigest(&other) == record.IntentDigest {
			return &other, true, nil
		}
	}
	return in, false, nil
}

// explanationOf explains rules until their total size reaches sixteen conditions of the greatest
// length. This bounds the memory of an answer.
func explanationOf(t *engine.Trace) *engine.Explanation {
	return t.ExplainUpTo(16 * condition.MaxCondition)
}
