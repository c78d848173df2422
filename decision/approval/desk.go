package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
)

// MaxTTL is the longest time that a decision can be held. It is well below the shortest
// retention of a plan, because a held decision must not be removed before somebody has decided
// about it. An approval is valid for at most a third of MaxTTL, because an action that was
// right a day ago may not be right today.
const MaxTTL = 72 * time.Hour

// Detail says how much of a held intent is kept for the approver.
type Detail string

const (
	// Scrubbed keeps the scrubbed values of metadata until the approval has ended. It is the
	// default.
	Scrubbed Detail = "scrubbed"
	// Keys keeps no values of metadata. The row in the history has the keys.
	Keys Detail = "keys"
)

// Config configures a Desk. Ledger, Store and Scrub are required.
type Config struct {
	Ledger *ledger.Ledger
	Store  Store
	Scrub  Scrubber
	// TTL is how long a held decision can be approved or rejected. It is also how long an
	// approval is valid if the approver does not say. Zero means DefaultTTL.
	TTL time.Duration
	// Detail is how much is kept for the approver. Empty means Scrubbed.
	Detail Detail
	// Log gets a record for details that could not be erased. If Log is nil, the record is
	// discarded.
	Log *slog.Logger
	// Metrics is the registry in which the desk registers its metrics. If Metrics is nil, they
	// are not registered.
	Metrics prometheus.Registerer
}

// Store is the part of a store that a Desk uses.
type Store interface {
	storage.Documents
	storage.History
}

// Scrubber replaces secrets in texts before the texts are stored.
type Scrubber interface {
	// Text scrubs a text that identifies nobody.
	Text(text string) string
	// Identity scrubs a text that identifies somebody.
	Identity(text string) string
	// Name scrubs the key of an agent: see [ledger.Scrubber].
	Name(raw, folded string) string
	// Values scrubs the values of metadata, under their keys.
	Values(metadata map[string]string) map[string]string
	// Spellings returns every text that the history may hold for an identity.
	Spellings(identity string) []string
	// Stored returns the spellings that shared windows may hold: see [budget.Scrubber].
	Stored(identity string) []string
}

// DefaultTTL is the time to live if Config.TTL is zero.
const DefaultTTL = time.Hour

// Desk keeps the decisions that wait for approval. Its methods are safe for concurrent use.
type Desk struct {
	cfg     Config
	docs    *registry.Registry
	metrics *metrics

	mu      sync.Mutex
	waiting map[name]*wait // the approvals for which there is a call of Await
}

// wait wakes the callers of Await. decided is closed when this process has committed a verdict.
type wait struct {
	decided chan struct{}
	waiters int
}

type name struct{ org, id string }

// New returns a desk for cfg.
func New(cfg Config) (*Desk, error) {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Detail == "" {
		cfg.Detail = Scrubbed
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case cfg.Ledger == nil || cfg.Store == nil || cfg.Scrub == nil:
		return nil, errors.New("approvals without a ledger, a store or a scrubber")
	case cfg.TTL < time.Second || cfg.TTL > MaxTTL:
		return nil, fmt.Errorf("approvals that are pending for %v: want 1s to %v", cfg.TTL, MaxTTL)
	case cfg.Detail != Scrubbed && cfg.Detail != Keys:
		return nil, fmt.Errorf("details %q: want %s or %s", cfg.Detail, Scrubbed, Keys)
	}
	d := &Desk{cfg: cfg, docs: registry.New(cfg.Store), waiting: make(map[name]*wait)}
	d.metrics = newMetrics(cfg.Metrics)
	return d, nil
}

// Find returns the approval with the given id. It returns storage.ErrNotFound if no decision of
// the organization was held under that id.
func (d *Desk) Find(ctx context.Context, org, id string) (*Approval, error) {
	held, err := d.cfg.Ledger.Held(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return d.find(ctx, held)
}

func (d *Desk) find(ctx context.Context, held *storage.Record) (*Approval, error) {
	details, err := d.docs.Details(ctx, held.OrganizationID, held.DecisionID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("looking up the details of a decision: %w", err)
	}
	return d.of(ctx, held, details)
}

// of returns the approval of a held decision. details are the details of the decision, or nil
// if they are erased. Details are erased after the verdict is committed, so the caller must
// read the details before of reads the verdicts.
func (d *Desk) of(ctx context.Context, held *storage.Record, details *storage.Details) (_ *Approval, err error) {
	if details != nil && details.Digest() != held.DetailsDigest {
		return nil, fmt.Errorf("the details of decision %s are not those of its row", held.DecisionID)
	}
	a := &Approval{Held: held, Details: details}
	a.Verdicts, err = d.cfg.Ledger.Verdicts(ctx, held.OrganizationID, held.DecisionID)
	return a, err
}

// Details returns the details of a held decision that are to be kept for its approver.
func (d *Desk) Details(e *ledger.Entry) *storage.Details {
	in, t := e.Intent, e.Reservation
	var values map[string]string
	if d.cfg.Detail == Scrubbed && len(in.Metadata) > 0 {
		values = make(map[string]string, len(in.Metadata))
		for key, value := range d.cfg.Scrub.Values(in.Metadata) {
			values[d.cfg.Scrub.Text(key)] = value
		}
	}
	kept := storage.NewDetails(t.DecisionID(), values)
	kept.AgentID, kept.PolicyID = e.Agent(d.cfg.Scrub), in.PolicyID
	kept.ExpiresAt = t.Time().Add(d.cfg.TTL)
	kept.Findings = heldFindings(e.Result)
	return kept
}

// Keep stores details. Afterwards the caller must either commit their decisions or call
// [Desk.Drop].
func (d *Desk) Keep(ctx context.Context, org string, all []*storage.Details) error {
	if err := d.docs.PutDetails(ctx, org, all...); err != nil {
		return fmt.Errorf("storing the details of held decisions: %w", err)
	}
	return nil
}

// Ended counts a verdict that was committed with a decision. It wakes the callers of Await for
// that approval.
func (d *Desk) Ended(v *ledger.Verdict) {
	if v.Verdict == ledger.Expired {
		d.metrics.judged(ledger.Expired)
	}
	d.tell(name{v.OrganizationID, v.ApprovalID})
}

// Drop erases the details of decisions whose approvals have ended, and of decisions that were
// not committed. If Drop fails, a sweep erases the details later.
func (d *Desk) Drop(ctx context.Context, org string, ids ...string) {
	if len(ids) == 0 {
		return
	}
	if err := d.docs.EraseDetails(context.WithoutCancel(ctx), org, ids...); err != nil {
		d.cfg.Log.WarnContext(ctx, "details of held decisions could not be erased yet", "decisions", ids, "error",
			err)
	}
}

// ExpiresAt returns the time from which a can no longer be approved or rejected. If the details
// of a are erased, ExpiresAt computes the time from the time at which the decision was held.
func (d *Desk) ExpiresAt(a *Approval) time.Time {
	if a.Details != nil {
		return a.Details.ExpiresAt
	}
	return a.Held.DecidedAt.Add(d.cfg.TTL)
}

// Now returns the time of the ledger's clock. Approvals expire by this clock.
func (d *Desk) Now() time.Time { return d.cfg.Ledger.Now() }

// poll is how often Await looks for verdicts that other processes have committed.
const poll = time.Second

// Await waits until the approval is no longer pending or ctx ends. It then returns the
// approval.
func (d *Desk) Await(ctx context.Context, org, id string) (*Approval, error) {
	lookup := context.WithoutCancel(ctx)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	n := name{org, id}
	for {
		w := d.join(n)
		a, err := d.Find(lookup, org, id)
		ended := err != nil || a.Status(d.Now()) != Pending
		if !ended {
			select {
			case <-w.decided:
			case <-tick.C:
			case <-ctx.Done():
				ended = true
			}
		}
		if d.leave(n, w); ended {
			return a, err
		}
	}
}

func (d *Desk) join(n name) *wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.waiting[n]
	if w == nil {
		w = &wait{decided: make(chan struct{})}
		d.waiting[n] = w
	}
	w.waiters++
	return w
}

func (d *Desk) leave(n name, w *wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.waiters--; w.waiters == 0 && d.waiting[n] == w {
		delete(d.waiting, n)
	}
}

// tell wakes the callers of Await for an approval.
func (d *Desk) tell(n name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.waiting[n]; w != nil {
		close(w.decided)
		delete(d.waiting, n)
	}
}
