package decision

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
)

// ItemError says which request in a list of requests caused an error.
type ItemError struct {
	Index int
	Err   error
}

// Error implements error.
func (e *ItemError) Error() string { return fmt.Sprintf("intent %d: %v", e.Index, e.Err) }

// Unwrap returns the error of the request.
func (e *ItemError) Unwrap() error { return e.Err }

// DecideAll decides requests as [Service.Decide] does, but it allows either all of them or
// none. If one request is not allowed, DecideAll denies with [engine.CodeBatchRefused] each
// request that would be allowed. For an intent that was decided before, the first answer
// counts. No two requests may have the same intent id.
//
// If DecideAll returns an error, nothing is stored. If one request caused the error, it is an
// [*ItemError].
func (s *Service) DecideAll(ctx context.Context, who Caller, requests []Request) ([]ledger.Outcome, error) {
	for {
		outs, err := s.all(ctx, who, requests)
		if !errors.Is(err, ledger.ErrRaced) {
			return outs, err
		}
		// Another call has decided an intent in the meantime. The next round finds that
		// decision. So the loop ends after at most as many rounds as there are requests.
	}
}

func (s *Service) all(ctx context.Context, who Caller, requests []Request) ([]ledger.Outcome, error) {
	b, outs, err := s.begin(ctx, who, requests)
	defer b.end(ctx)
	if err != nil {
		return nil, err
	}
	allowed := true
	for i := range requests {
		if outs[i] = b.decide(ctx, i, requests[i], true); outs[i].Err != nil {
			return nil, &ItemError{i, outs[i].Err}
		}
		if r := outs[i].Record; r != nil {
			allowed = allowed && r.Decision == engine.Allow
		} else {
			allowed = allowed && b.items[len(b.items)-1].entry.Result.Decision == engine.Allow
		}
	}
	if !allowed {
		b.refuse()
	}
	return outs, b.commit(ctx, outs, true)
}

// refuse denies the items that would be allowed.
func (b *batch) refuse() {
	for i := range b.items {
		if r := &b.items[i].entry.Result; r.Decision == engine.Allow {
			r.Decision = engine.Deny
			r.Findings = []engine.Finding{{
				Code: engine.CodeBatchRefused, Outcome: engine.Deny,
				Reason: string(engine.CodeBatchRefused) +
					": another intent of the same batch was not allowed, and one is allowed only with all",
			}}
		}
	}
}
