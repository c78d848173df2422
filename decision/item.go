package decision

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/decision/approval"
	"writ.example/writ/decision/budget"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// item is the decision of one request. Until it is settled, it has the reservations that were
// made for it.
type item struct {
	index    int // the index of the request
	entry    ledger.Entry
	approval *approval.Approval // the approval that the request names, or nil
	status   approval.Status    // the status of approval when it was read
	exceeded bool               // whether the limit of the meter is exceeded
	counted  *budget.Reading
	held     *storage.Details // for the approver of a held decision; otherwise nil
	sample   *verification    // nil if the decision is not verified
	outcome  outcome
}

// outcome says whether an item is stored.
type outcome uint8

const (
	notStored outcome = iota
	maybeStored
	stored
)

// settle ends the reservations of items according to their outcomes. An item that may be stored
// stays counted.
func (b *batch) settle(ctx context.Context, items []item) {
	var erase []string
	for i := range items {
		it := &items[i]
		it.entry.Reservation.Release()
		if it.outcome != notStored && it.entry.Result.Decision == engine.Allow {
			it.counted.Commit()
		} else {
			it.counted.Release()
		}
		if it.outcome == notStored && it.held != nil {
			erase = append(erase, it.held.DecisionID)
		}
		if v := it.entry.Verdict; v != nil && it.outcome == stored {
			b.Approvals.Ended(v)
			erase = append(erase, v.ApprovalID)
		}
	}
	if len(erase) > 0 {
		b.Approvals.Drop(ctx, b.who.Organization, erase...)
	}
}

// decide decides a request and adds an item to the items to commit. It adds nothing if it
// returns an error or an earlier decision. With recall, an intent that was decided before is
// not evaluated again. Without recall, possibly only the commit finds the earlier decision.
func (b *batch) decide(ctx context.Context, index int, req Request, recall bool) ledger.Outcome {
	if index > 0 { // at the first request the slot is still new
		b.who.Slot.Yield()
	}
	n := len(b.items)
	b.items = append(b.items, item{index: index, entry: ledger.Entry{
		Intent: req.Intent, ApprovalID: req.ApprovalID, Credential: b.who.Credential,
	}})
	earlier, err := b.fill(ctx, &b.items[n], recall)
	if err != nil || earlier.Record != nil {
		b.settle(ctx, b.items[n:])
		b.items = b.items[:n]
	}
	earlier.Err = err
	return earlier
}

// fill completes the entry of an item, or returns an earlier decision.
func (b *batch) fill(ctx context.Context, it *item, recall bool) (earlier ledger.Outcome, err error) {
	set, err := b.load(ctx, it)
	if err != nil {
		return earlier, err
	}
	if earlier, err = b.aged(ctx, it); err != nil || earlier.Record != nil {
		return earlier, err
	}
	if recall || it.approval != nil {
		if earlier, err = b.recall(ctx, it); err != nil || earlier.Record != nil {
			return earlier, err
		}
	}
	if it.status == approval.Pending {
		return ledger.Outcome{Record: it.approval.Held, Replayed: true}, nil
	}
	if err := b.count(ctx, set, it); err != nil {
		return earlier, err
	}
	if it.isHeld() && it.approval == nil && !recall {
		if earlier, err = b.recall(ctx, it); err != nil || earlier.Record != nil {
			return earlier, err
		}
	}
	b.record(set, it)
	return earlier, nil
}

// load reserves the item's place in the meter. Then it loads the policy, the rules and the
// approval. The reservation comes first because it has the time of the decision.
func (b *batch) load(ctx context.Context, it *item) (set engine.Set, err error) {
	ctx, span := b.span(ctx, "load")
	defer span.End()
	in := it.entry.Intent
	if it.entry.Reservation, err = b.cfg.Ledger.Reserve(ctx, b.who.Slot, b.who.Organization,
		b.plan.Evaluations); err != nil {
		return set, err
	}
	it.exceeded = it.entry.Reservation.Exceeded()
	if set, err = b.Sets.Load(ctx, b.who.Slot, b.who.Organization, in.PolicyID, in.AgentID); err != nil {
		return set, err
	}
	return set, b.findApproval(ctx, it)
}

// recall returns the earlier decision of an item's intent, if there is one.
func (b *batch) recall(ctx context.Context, it *item) (ledger.Outcome, error) {
	defer condition.Paused(b.who.Slot)()
	return b.cfg.Ledger.Recall(ctx, b.who.Organization, it.entry.Intent, it.entry.ApprovalID)
}

// evaluate evaluates an item's intent. If there is a core, the core evaluates it, unless the organization
// is stopped: a core that does not answer delays no stop.
func (b *batch) evaluate(ctx context.Context, set engine.Set, it *item) (engine.Result, error) {
	if b.cfg.Core != nil && !set.Policy.Unreadable() && !set.Stopped {
		return b.ask(ctx, set, &b.input)
	}
	result := b.metrics.evaluate(set, &b.input, b.cfg.Now)
	if result.Err != nil {
		return result, b.unfinished(ctx, result)
	}
	if b.verifier != nil {
		it.sample = b.verifier.sample(b.who.Organization, set, &b.input, result)
	}
	return result, nil
}

// unfinished logs and counts an evaluation that its request's end interrupted. It returns the error
// of the request. Such an intent is not decided, and the same request may be sent again.
func (b *batch) unfinished(ctx context.Context, result engine.Result) error {
	b.metrics.failed(&result)
	ended := &EndedError{cause: context.Cause(ctx)}
	if of := (*engine.EndedError)(nil); errors.As(result.Err, &of) {
		ended.RuleID = of.RuleID
	}
	b.cfg.Log.WarnContext(ctx, "a request ended while a rule's condition was running: nothing was decided",
		"organization", b.who.Organization, "rule", ended.RuleID)
	return ended
}

// EndedError means that a request ended while the condition of a rule was running. Nothing was
// decided, stored or metered.
type EndedError struct {
	RuleID string
	cause  error
}

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the request ended while the condition of the rule %s was running: %v", e.RuleID, e.cause)
}

// Unwrap returns the error of the request's context.
func (e *EndedError) Unwrap() error { return e.cause }

// isHeld reports whether the decision waits for an approver.
func (it *item) isHeld() bool { return it.entry.Result.Decision == engine.ApprovalRequired }

// record completes the entry of an item.
func (b *batch) record(set engine.Set, it *item) {
	e := &it.entry
	e.Names = set.Names
	e.PolicyVersion = set.Policy.Document().Version
	e.PolicyRevision, e.RulesRevision, e.AgentRevision = set.Revisions.Policy, set.Revisions.Rules, set.Revisions.Agent
	if it.isHeld() {
		it.held = b.Approvals.Details(e)
		e.DetailsDigest = it.held.Digest()
	}
}

// SessionError means that the session of an intent could not be loaded.
type SessionError struct{ Err error }

// Error implements error.
func (e *SessionError) Error() string { return "the session of an intent: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SessionError) Unwrap() error { return e.Err }

// session loads the session of an intent, if it names one.
func (b *batch) session(ctx context.Context, in *engine.Intent) (engine.InSession, error) {
	if in.SessionID == "" {
		return engine.InSession{}, nil
	}
	s, err := b.Sets.Session(ctx, b.who.Slot, b.who.Organization, in.SessionID)
	if err != nil {
		return engine.InSession{}, &SessionError{err}
	}
	return engine.InSession{CompiledSession: s, Expired: s.Expired(b.cfg.Now())}, nil
}
