package decision

import (
	"context"
	"errors"

	"writ.example/writ/decision/admission"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// Caller is the party for which intents are decided.
type Caller struct {
	Organization string
	// Credential is the credential of the request: see [ledger.Entry].
	Credential string
	// Slot is the slot that the request holds, or nil if it holds none. Decide pauses the slot
	// while it waits for loads. It gives the slot back before it waits for the commit.
	Slot *admission.Slot
}

// Request is an intent to decide. It has passed [engine.Intent.Validate].
type Request struct {
	Intent *engine.Intent
	// ApprovalID is the id of the held decision whose approval the intent uses. It is empty if
	// the intent uses none.
	ApprovalID string
}

// Decide decides requests independently of each other and commits them together. It returns the
// decision that stands for each request, in order. An Outcome without an error survives a
// crash. The errors are the ledger's errors, [*CoreError] and the errors of loading. If there
// is no such policy, the error is [storage.ErrNotFound]. If there is no such session, it is a
// [*SessionError] with [storage.ErrNotFound].
func (s *Service) Decide(ctx context.Context, who Caller, requests []Request) []ledger.Outcome {
	outs := s.each(ctx, who, requests)
	for i := range outs {
		// A verdict was committed in the meantime, so the intent is decided again under that
		// verdict. The recursion ends, because an approval has at most two verdicts.
		if errors.Is(outs[i].Err, ledger.ErrRaced) {
			outs[i] = s.Decide(ctx, who, requests[i:i+1])[0]
		}
	}
	return outs
}

func (s *Service) each(ctx context.Context, who Caller, requests []Request) []ledger.Outcome {
	b, outs, err := s.begin(ctx, who, requests)
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

// batch decides the requests of one call.
type batch struct {
	*Service
	who   Caller
	plan  engine.Plan
	items []item       // the items to commit
	input engine.Input // the input of the request that is being decided

	one struct { // the memory for a single request
		item  [1]item
		entry [1]*ledger.Entry
	}
}

// begin returns a batch for requests and a slice for their outcomes. It returns the slice
// also if there is an error. The caller must call end on the batch.
func (s *Service) begin(ctx context.Context, who Caller, requests []Request) (*batch, []ledger.Outcome, error) {
	n := len(requests)
	b, _ := s.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	b.Service, b.who = s, who
	if b.items = b.one.item[:0]; n > 1 {
		b.items = make([]item, 0, n) // the items must not move, because the ledger gets pointers to their entries
	}
	if n > 0 {
		s.first(ctx, who.Slot, who.Organization, requests[0])
	}
	var err error
	b.plan, err = s.Plans.Of(ctx, who.Slot, who.Organization)
	return b, make([]ledger.Outcome, n), err
}

// end settles the items. Then it lets another batch use b's memory, unless there is a core,
// which may still read the input in b.
func (b *batch) end(ctx context.Context) {
	b.settle(ctx, b.items)
	if s := b.Service; s.cfg.Core == nil {
		*b = batch{}
		s.batches.Put(b)
	}
}

// commit commits the items and puts the decisions that stand into outs.
func (b *batch) commit(ctx context.Context, outs []ledger.Outcome, whole bool) error {
	if len(b.items) == 0 {
		return nil
	}
	ctx, span := b.span(ctx, "commit")
	defer span.End()
	if err := b.keepDetails(ctx); err != nil {
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
	b.setOutcomes(maybeStored)
	b.who.Slot.Leave() // from here on the request only waits for the store
	stand := outs
	if len(b.items) < len(outs) {
		stand = make([]ledger.Outcome, len(b.items))
	}
	if err := pending.Wait(ctx, stand); err != nil {
		if ctx.Err() == nil && !errors.Is(err, storage.ErrUnknown) {
			b.setOutcomes(notStored)
		}
		return err
	}
	for n, out := range stand {
		it := &b.items[n]
		outs[it.index] = out
		if it.outcome = notStored; out.Err == nil && !out.Replayed {
			it.outcome = stored
		}
		b.metrics.decided(b.plan.Name, it, out)
		if it.sample != nil && it.outcome == stored {
			it.sample.decisionID = out.Record.DecisionID
			b.verifier.put(it.sample)
		}
	}
	return nil
}

// keepDetails stores the details of held items for their approvers.
func (b *batch) keepDetails(ctx context.Context) error {
	var held []*storage.Details
	for i := range b.items {
		if details := b.items[i].held; details != nil {
			held = append(held, details)
		}
	}
	if len(held) == 0 {
		return nil
	}
	b.who.Slot.Leave() // the write only waits for the store
	return b.Approvals.Keep(ctx, b.who.Organization, held)
}

// setOutcomes sets the outcome of all items.
func (b *batch) setOutcomes(o outcome) {
	for i := range b.items {
		b.items[i].outcome = o
	}
}
