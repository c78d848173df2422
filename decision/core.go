package decision

import (
	"context"
	"errors"
	"slices"
	"time"

	"writ/engine"
)

// Core decides intents in place of the built-in engine. What it decides can be
// tightened here, never loosened: see [engine.Policy.Restrict]. An error of any
// kind means that nothing was decided; where it has a method RetryAfter, that
// tells callers when to try again. in must not be modified or kept.
type Core interface {
	Evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error)
}

// CoreError is an error of the core's. What it is about chooses nothing that a
// caller is told: it has no Unwrap.
type CoreError struct {
	err   error
	after time.Duration
}

// Error implements error.
func (e *CoreError) Error() string { return "the evaluation core: " + e.err.Error() }

// RetryAfter is when to try again, 0 where that is not known.
func (e *CoreError) RetryAfter() time.Duration { return e.after }

// ask has the core decide.
//
// The core's answer takes a while, in which the kill switch can be thrown and the session be
// closed: they are looked up again, and what was not asked for is not answered.
func (b *batch) ask(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
	b.who.Slot.Leave() // others need not wait for the core
	result, err := b.cfg.Core.Evaluate(ctx, set, in)
	if err != nil {
		return engine.Result{}, notDecided(ctx, err)
	}
	now, err := b.Sets.Load(ctx, nil, b.who.Organization, in.Intent.PolicyID, in.Intent.AgentID)
	if err != nil {
		return engine.Result{}, err
	}
	if now.Revisions.Policy != set.Revisions.Policy || now.Revisions.Rules != set.Revisions.Rules {
		return engine.Result{},
			&CoreError{errors.New("the policy or the rules changed while the core decided"), time.Second}
	}
	in.Agent = now.Agent
	if in.Session, err = b.session(ctx, in.Intent); err != nil {
		return engine.Result{}, err
	}
	return b.withoutSecrets(set.Policy.Restrict(result, in)), nil
}

// withoutSecrets returns result with the secrets in its reasons replaced: the
// built-in engine's repeat nothing of an intent, a core's may, and reasons are
// stored and signed.
func (s *Service) withoutSecrets(result engine.Result) engine.Result {
	result.Findings = slices.Clone(result.Findings)
	for i := range result.Findings {
		f := &result.Findings[i]
		f.Reason = s.cfg.Scrub.Text(f.Reason)
	}
	return result
}

// notDecided returns err as the core's, unless the request has ended.
func notDecided(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &CoreError{err: err}
	var later interface{ RetryAfter() time.Duration }
	if errors.As(err, &later) {
		e.after = later.RetryAfter()
	}
	return e
}
