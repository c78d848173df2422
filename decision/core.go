package decision

import (
	"context"
	"errors"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Core decides intents in place of the built-in engine. Its decisions can only be made
// stricter: see [engine.Policy.Restrict]. An error means that nothing was decided. If the error
// has a method RetryAfter, callers are told when to try again. If it has a method Unanswered that
// returns true, the core gave no answer at all. Evaluate must not modify or keep in.
type Core interface {
	Evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error)
}

// CoreError is an error of the core. It has no Unwrap, because its cause must not determine how
// the caller answers.
type CoreError struct {
	err        error
	after      time.Duration
	unanswered bool
}

// Error implements error.
func (e *CoreError) Error() string { return "the evaluation core: " + e.err.Error() }

// RetryAfter returns how long to wait before the next try, or 0 if that is unknown.
func (e *CoreError) RetryAfter() time.Duration { return e.after }

// Unanswered reports whether the core gave no answer. Otherwise it gave one that decides nothing.
func (e *CoreError) Unanswered() bool { return e.unanswered }

// ask lets the core decide.
//
// While the core decides, somebody may stop the organization, throw the kill switch or close the
// session. So ask loads all three again afterwards. If the policy or the rules have changed since, ask
// returns an error.
func (b *batch) ask(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
	if !condition.AllKnown(in.Counts) {
		err := errors.New("the counter of a new rule is still being filled from the history")
		return engine.Result{}, &CoreError{err: err, after: time.Second, unanswered: true}
	}
	b.who.Slot.Leave() // nobody else has to wait for the core
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
			&CoreError{err: errors.New("the policy or the rules changed while the core decided"), after: time.Second}
	}
	in.Stopped, in.Agent = now.Stopped, now.Agent
	if in.Session, err = b.session(ctx, in.Intent); err != nil {
		return engine.Result{}, err
	}
	return b.withoutSecrets(set.Policy.Restrict(result, in)), nil
}

// withoutSecrets returns result with the secrets in its reasons replaced. Reasons are stored
// and signed, and a core may repeat text of the intent in them.
func (s *Service) withoutSecrets(result engine.Result) engine.Result {
	result.Findings = slices.Clone(result.Findings)
	for i := range result.Findings {
		f := &result.Findings[i]
		f.Reason = s.cfg.Scrub.Text(f.Reason)
	}
	return result
}

// notDecided returns err as a [*CoreError], or the context's error if the request has ended.
func notDecided(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &CoreError{err: err}
	var later interface{ RetryAfter() time.Duration }
	if errors.As(err, &later) {
		e.after = later.RetryAfter()
	}
	var silent interface{ Unanswered() bool }
	if errors.As(err, &silent) && silent.Unanswered() {
		e.unanswered, e.after = true, max(e.after, time.Second)
	}
	return e
}
