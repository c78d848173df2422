package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"writ/engine"
	"writ/ledger"
)

// Core decides intents in place of the built-in engine. What it decides can be
// tightened here, never loosened: see [engine.Policy.Restrict]. An error of any
// kind means that nothing was decided; where it has a method RetryAfter, that
// tells callers when to try again. in must not be modified or kept.
type Core interface {
	Evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error)
}

// decideElsewhere has the configured core decide.
//
// A replay gets its first answer without the core, which may be gone by then.
// The core's answer takes a while, in which the kill switch can be thrown: it
// is looked up again, and what was not asked for is not answered.
func (s *Server) decideElsewhere(r *request, turn *ledger.Turn, q *question) (ledger.Outcome, error) {
	out, decided, err := s.cfg.Ledger.Recall(r.ctx, turn, q.in.Intent)
	if err != nil || decided {
		return out, err
	}
	r.slot.Leave() // others need not wait for the core
	result, err := s.cfg.Core.Evaluate(r.ctx, q.set, q.in)
	if err != nil {
		return ledger.Outcome{}, notDecided(r.ctx, err)
	}
	now, err := s.cfg.Sets.Load(r.ctx, r.who.org, q.in.Intent.PolicyID, q.in.Intent.AgentID)
	if err != nil {
		return ledger.Outcome{}, about("policy", err)
	}
	if now.Policy.Digest() != q.set.Policy.Digest() || now.Rules.Digest() != q.set.Rules.Digest() {
		return ledger.Outcome{}, &coreError{errors.New("the policy or the rules changed while the core decided"), time.Second}
	}
	q.in.Agent = now.Agent
	result = s.withoutSecrets(q.set.Policy.Restrict(result, q.in))
	return s.commit(r, turn, q, &result)
}

// withoutSecrets returns result with the secrets in its reasons replaced: the
// built-in engine's repeat nothing of an intent, a core's may, and reasons are
// stored and signed.
func (s *Server) withoutSecrets(result engine.Result) engine.Result {
	result.Findings = slices.Clone(result.Findings)
	for i := range result.Findings {
		f := &result.Findings[i]
		f.Reason = s.cfg.Scrub.Text(f.Reason)
	}
	return result
}

// coreError is an error of the core's. What it wraps chooses no status: it has
// no Unwrap.
type coreError struct {
	err   error
	after time.Duration
}

func (e *coreError) Error() string { return "the evaluation core: " + e.err.Error() }

// notDecided returns err as the core's, unless the request has ended.
func notDecided(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &coreError{err: err}
	var later interface{ RetryAfter() time.Duration }
	if errors.As(err, &later) {
		e.after = later.RetryAfter()
	}
	return e
}

// coreProblem is not logged for each request: the core does so, at a bounded
// rate.
func coreProblem(e *coreError) *problem {
	return &problem{
		Status: http.StatusInternalServerError, Code: codeCoreUnavailable,
		Detail:     "The evaluation core of this deployment made no decision. Nothing was allowed.",
		retryAfter: int((e.after + time.Second - 1) / time.Second),
	}
}
