package decision

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/admission"
	"writ/approval"
	"writ/decision/budget"
	"writ/engine"
	"writ/engine/condition"
	"writ/ledger"
	"writ/storage"
)

// Config is what a Pipeline works with. All but Core, Verifier, Windows and Spellings are
// required.
type Config struct {
	// Sets gives the compiled policies and rules.
	Sets *engine.Sets
	// Ledger makes decisions final.
	Ledger *ledger.Ledger
	// Plan returns an organization's plan.
	Plan func(ctx context.Context, org string) (engine.Plan, error)
	// Plans are the names of all plans.
	Plans []string
	// Core decides in place of the built-in engine; nil is the built-in one.
	Core Core
	// Verifier verifies what the built-in engine decides; nil verifies nothing.
	Verifier *Verifier
	// Approvals is where held decisions wait; nil keeps nothing for an approver, and
	// every approval is one that is not there.
	Approvals *approval.Desk
	// Scrub returns a core's reason with its secrets replaced.
	Scrub func(reason string) string
	// History is what the counters of rules are read from, Windows where this process counts
	// with others, nil if it decides alone, and Spellings returns how the history may name
	// an agent.
	History   storage.History
	Windows   storage.Windows
	Spellings func(agentID string) []string
	// RequireRegistered denies agents that the organization has not registered.
	RequireRegistered bool
	// Now is the clock.
	Now func() time.Time
	// Metrics is where the pipeline registers its metrics.
	Metrics prometheus.Registerer
}

// Pipeline decides intents. It is safe for concurrent use.
type Pipeline struct {
	cfg      Config
	metrics  *metrics
	counters *budget.Counters
	batches  sync.Pool // of *batch
}

// New returns a pipeline for cfg.
func New(cfg Config) *Pipeline {
	return &Pipeline{
		cfg: cfg, metrics: newMetrics(cfg.Metrics, cfg.Plans),
		counters: budget.New(budget.Config{History: cfg.History, Windows: cfg.Windows, Spellings: cfg.Spellings}),
	}
}

// Caller is whom intents are decided for.
type Caller struct {
	Organization string
	// Credential is what asked: see [ledger.Entry].
	Credential string
	// Slot is the caller's right to a processor, if it holds one. Others may get it while
	// something is waited for. It is given back where what is left is waiting.
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
func (p *Pipeline) Decide(ctx context.Context, who Caller, requests []Request) []ledger.Outcome {
	b, outs, err := p.begin(ctx, who, len(requests))
	defer b.end()
	if err == nil {
		for i := range requests {
			if outs[i].Err = redeemedBefore(requests[:i], requests[i]); outs[i].Err != nil {
				continue
			}
			if outs[i], err = b.decide(ctx, i, requests[i], p.cfg.Core != nil); err != nil {
				outs[i].Err = err
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
	for i := range outs {
		// A verdict came between: the decision is made under that. It ends, because an
		// approval has two verdicts at most.
		if errors.Is(outs[i].Err, ledger.ErrRaced) {
			outs[i] = p.Decide(ctx, who, requests[i:i+1])[0]
		}
	}
	return outs
}

// batch is what is decided for a caller together.
type batch struct {
	*Pipeline
	who  Caller
	plan engine.Plan

	// items are what is to be committed, with the reservation and the entry of each.
	items    []item
	reserved []ledger.Reservation
	entries  []ledger.Entry
	// held are what approvers need of the entries that are held.
	held []*storage.Details
	// samples are what is to be verified once it stands.
	samples []*verification

	input engine.Input // of the request that is decided

	one struct { // where they are of one request
		item        [1]item
		reservation [1]ledger.Reservation
		entry       [1]ledger.Entry
	}
}

// item is what was decided of a request.
type item struct {
	index    int // of the request
	counted  *budget.Reading
	exceeded bool
	errors   condition.CauseCounts
}

// begin returns a batch for n requests and where their outcomes go, which is there even with
// an error. The batch ends with end.
func (p *Pipeline) begin(ctx context.Context, who Caller, n int) (*batch, []ledger.Outcome, error) {
	b, _ := p.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	b.Pipeline, b.who = p, who
	if n == 1 {
		b.items, b.reserved, b.entries = b.one.item[:0], b.one.reservation[:0], b.one.entry[:0]
	} else {
		b.items, b.reserved, b.entries = make([]item, 0, n), make([]ledger.Reservation, 0, n), make([]ledger.Entry, 0, n)
	}
	who.Slot.MayWait()
	var err error
	b.plan, err = p.cfg.Plan(ctx, who.Organization)
	return b, make([]ledger.Outcome, n), err
}

// end lets another batch have b's memory, of which a core may still read the input.
func (b *batch) end() {
	if p := b.Pipeline; p.cfg.Core == nil {
		*b = batch{}
		p.batches.Put(b)
	}
}

// decide adds what is decided of the intent of a request to what is to be
// committed, unless that fails. Where recall is set and the intent was decided
// before, it returns that decision instead; it may do so where it is not.
func (b *batch) decide(ctx context.Context, index int, req Request, recall bool) (earlier ledger.Outcome, err error) {
	in := req.Intent
	if index > 0 && b.who.Slot.Run() { // the slot of the first is new
		b.who.Slot.Yield()
		b.who.Slot.MayWait()
	}
	reservation, err := b.cfg.Ledger.Reserve(ctx, b.who.Organization, b.plan.Evaluations)
	if err != nil {
		return ledger.Outcome{}, err
	}
	n := len(b.reserved)
	b.reserved = append(b.reserved, reservation)
	defer func() {
		if len(b.entries) == n {
			b.reserved[n].Release()
			b.reserved = b.reserved[:n]
		}
	}()
	set, err := b.cfg.Sets.Load(ctx, b.who.Slot, b.who.Organization, in.PolicyID, in.AgentID)
	if err != nil {
		return ledger.Outcome{}, err
	}
	under, status, err := b.under(ctx, req, reservation.Time())
	if err != nil {
		return ledger.Outcome{}, err
	}
	if recall || under != nil {
		if earlier, decided, err := b.cfg.Ledger.Recall(ctx, b.who.Organization, in, req.ApprovalID); decided || err != nil {
			return earlier, err
		}
	}
	if status == approval.Pending {
		return ledger.Outcome{Record: under.Held, Replayed: true}, nil
	}
	session, err := b.session(ctx, in)
	if err != nil {
		return ledger.Outcome{}, err
	}
	b.input = engine.Input{
		Intent:            in,
		Agent:             set.Agent,
		RequireRegistered: b.cfg.RequireRegistered,
		Usage:             engine.Usage{Exceeded: reservation.Exceeded()},
		Session:           session,
		Turn:              b.who.Slot,
	}
	if under != nil {
		b.input.Approval = &engine.Approval{ID: req.ApprovalID, Status: string(status)}
	}
	var verdict *ledger.Verdict
	result, counted, err := b.count(ctx, set, &b.input, reservation.Time(), func(r engine.Result) engine.Result {
		if under != nil {
			r, verdict = under.Redeem(status, reservation.Time(), r, set.Rules)
		}
		return r
	})
	if err != nil {
		return ledger.Outcome{}, err
	}
	if result.Decision == engine.ApprovalRequired && b.cfg.Approvals != nil && under == nil && !recall {
		if earlier, decided, err := b.cfg.Ledger.Recall(ctx, b.who.Organization, in, ""); decided || err != nil {
			return earlier, err
		}
	}
	b.items = append(b.items, item{index, counted, b.input.Usage.Exceeded, result.ConditionErrors})
	b.entries = append(b.entries, ledger.Entry{
		ApprovalID:     req.ApprovalID,
		Verdict:        verdict,
		DetailsDigest:  b.hold(in, &reservation, set.Rules, result),
		Intent:         in,
		PolicyVersion:  set.Policy.Document().Version,
		Result:         result,
		Credential:     b.who.Credential,
		PolicyRevision: set.Revisions.Policy, RulesRevision: set.Revisions.Rules, AgentRevision: set.Revisions.Agent,
	})
	return ledger.Outcome{}, nil
}

// evaluate evaluates an intent, or has the core do so.
func (b *batch) evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
	if b.cfg.Core != nil && !set.Policy.Unreadable() {
		return b.ask(ctx, set, in)
	}
	if b.who.Slot.Run() {
		defer b.who.Slot.MayWait()
	}
	result := b.metrics.evaluate(set, in, b.cfg.Now)
	if b.cfg.Verifier != nil {
		b.sample(set, in, result)
	}
	return result, nil
}

// sample has what was decided of the next entry verified, if it is its turn.
func (b *batch) sample(set engine.Set, in *engine.Input, result engine.Result) {
	if d := b.cfg.Verifier.sample(set, in, result); d != nil {
		d.organization, d.entry = b.who.Organization, len(b.entries)
		b.samples = append(b.samples, d)
	}
}

// verify has what stands of the samples verified. A replay is another decision.
func (b *batch) verify(stand []ledger.Outcome) {
	for _, d := range b.samples {
		if out := stand[d.entry]; out.Err == nil && !out.Replayed {
			d.decisionID = out.Record.DecisionID
			b.cfg.Verifier.put(d)
		}
	}
}

// commit makes what was decided final and puts what stands into outs.
func (b *batch) commit(ctx context.Context, outs []ledger.Outcome, whole bool) error {
	if len(b.items) == 0 {
		return nil
	}
	if len(b.held) > 0 {
		b.who.Slot.Leave() // writing them is waiting
		if err := b.cfg.Approvals.Keep(ctx, b.who.Organization, b.held); err != nil {
			b.uncount()
			return err
		}
	}
	b.who.Slot.Run()
	pending, err := b.cfg.Ledger.Enqueue(ctx, b.reserved, b.entries, whole)
	if err != nil {
		b.uncount()
		b.drop(ctx, nil)
		return err
	}
	b.who.Slot.Leave() // the rest is waiting
	stand := outs
	if len(b.items) < len(outs) {
		stand = make([]ledger.Outcome, len(b.items))
	}
	if err := pending.Wait(ctx, stand); err != nil {
		b.doubt(ctx, err)
		if errors.Is(err, ledger.ErrRaced) {
			b.drop(ctx, nil)
		}
		return err
	}
	b.drop(ctx, stand)
	for n := range b.items {
		it := &b.items[n]
		outs[it.index] = stand[n]
		it.count(stand[n])
		b.metrics.decided(b.plan.Name, *it, b.entries[n].Result.Findings, stand[n])
	}
	b.verify(stand)
	return nil
}

// release gives back the reservations that were not committed.
func (b *batch) release() {
	b.uncount()
	for i := range b.reserved {
		b.reserved[i].Release()
	}
}
