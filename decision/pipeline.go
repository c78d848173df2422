package decision

import (
	"context"
	"errors"

	"writ/decision/admission"
	"writ/engine"
	"writ/storage"
	"writ/storage/ledger"
)

// Caller is whom intents are decided for.
type Caller struct {
	Organization string
	// Credential is what asked: see [ledger.Entry].
	Credential string
	// Slot is the caller's right to a processor, if it holds one. It is paused while
	// something is waited for, and given back where what is left is waiting.
	Slot *admission.Slot
}

// Request is an intent to decide. It has passed [engine.Intent.Validate].
type Request struct {
	Intent *engine.Intent
	// ApprovalID is the id of the decision that was held and that the intent is to be
	// decided under; empty for none.
	ApprovalID string
}

// Decide decides each request by itself, in one commit, and returns what stands
// for each, in order. An Outcome without an error survives a crash. The errors
// are the ledger's, [*CoreError], and those of what was to be loaded:
// [storage.ErrNotFound] where there is no such policy, and in a [*SessionError] where there
// is no such session.
func (s *Service) Decide(ctx context.Context, who Caller, requests []Request) []ledger.Outcome {
	outs := s.each(ctx, who, requests)
	for i := range outs {
		// A verdict came between: the decision is made under that. It ends, because an
		// approval has two verdicts at most.
		if errors.Is(outs[i].Err, ledger.ErrRaced) {
			outs[i] = s.Decide(ctx, who, requests[i:i+1])[0]
		}
	}
	return outs
}

func (s *Service) each(ctx context.Context, who Caller, requests []Request) []ledger.Outcome {
	b, outs, err := s.begin(ctx, who, len(requests))
	defer b.end(ctx)
	if err == nil {
		for i, req := range requests {
			if outs[i].Err = redeemedBefore(requests[:i], req); outs[i].Err == nil {
				outs[i] = b.decide(ctx, i, req, s.cfg.Core != nil)
			}
		}
		err = b.commit(ctx, outs, false)
	}
	if err != nil {
		for i := range outs {
			if outs[i].Err == nil {
				outs[i] = ledger.Outcome{Err: err}
			}
		}
	}
	return outs
}

// batch is what is decided for a caller together.
type batch struct {
	*Service
	who   Caller
	plan  engine.Plan
	items []item       // what is to be committed
	input engine.Input // of the request that is decided

	one struct { // where they are of one request
		item  [1]item
		entry [1]*ledger.Entry
	}
}

// begin returns a batch for n requests and where their outcomes go, which is there even with
// an error. The batch ends with end.
func (s *Service) begin(ctx context.Context, who Caller, n int) (*batch, []ledger.Outcome, error) {
	b, _ := s.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	b.Service, b.who = s, who
	if b.items = b.one.item[:0]; n > 1 {
		b.items = make([]item, 0, n) // they do not move: the ledger is given their entries
	}
	var err error
	b.plan, err = s.Plans.Of(ctx, who.Slot, who.Organization)
	return b, make([]ledger.Outcome, n), err
}

// end settles what is decided and lets another batch have b's memory, of which a core may
// still read the input.
func (b *batch) end(ctx context.Context) {
	b.settle(ctx, b.items)
	if s := b.Service; s.cfg.Core == nil {
		*b = batch{}
		s.batches.Put(b)
	}
}

// commit makes what was decided final and puts what stands into outs.
func (b *batch) commit(ctx context.Context, outs []ledger.Outcome, whole bool) error {
	if len(b.items) == 0 {
		return nil
	}
	if err := b.keep(ctx); err != nil {
		return err
	}
	entries := b.one.entry[:0]
	for i := range b.items {
		entries = append(entries, &b.items[i].entry)
	}
	pending, err := b.cfg.Ledger.Enqueue(ctx, entries, whole)
	if err != nil {
		return err
	}
	b.turnedOut(inDoubt)
	b.who.Slot.Leave() // the rest is waiting
	stand := outs
	if len(b.items) < len(outs) {
		stand = make([]ledger.Outcome, len(b.items))
	}
	if err := pending.Wait(ctx, stand); err != nil {
		if ctx.Err() == nil && !errors.Is(err, storage.ErrUnknown) {
			b.turnedOut(refused)
		}
		return err
	}
	for n, out := range stand {
		it := &b.items[n]
		outs[it.index] = out
		if it.outcome = refused; out.Err == nil && !out.Replayed {
			it.outcome = stands
		}
		b.metrics.decided(b.plan.Name, it, out)
		if it.sample != nil && it.outcome == stands {
			it.sample.decisionID = out.Record.DecisionID
			b.verifier.put(it.sample)
		}
	}
	return nil
}

// keep stores what approvers need of what is held.
func (b *batch) keep(ctx context.Context) error {
	var held []*storage.Details
	for i := range b.items {
		if details := b.items[i].held; details != nil {
			held = append(held, details)
		}
	}
	if len(held) == 0 {
		return nil
	}
	b.who.Slot.Leave() // writing them is waiting
	return b.Approvals.Keep(ctx, b.who.Organization, held)
}

// turnedOut says of all items what became of them.
func (b *batch) turnedOut(o outcome) {
	for i := range b.items {
		b.items[i].outcome = o
	}
}
