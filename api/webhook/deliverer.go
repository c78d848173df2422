package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// Outboxes stores deliveries. [registry.Registry] implements it.
type Outboxes interface {
	AllOutboxes(ctx context.Context) ([]registry.Told, error)
	DueDeliveries(ctx context.Context, org, webhookID string, from, at time.Time, max int) ([]*storage.Delivery, error)
	EndAttempts(ctx context.Context, org string, at time.Time, attempts []*storage.Delivery) error
	Feed(ctx context.Context, org, source, position string, at time.Time, events []storage.Event) error
	SumUp(ctx context.Context, org string, at time.Time) error
	Tidy(ctx context.Context, org string, at time.Time, max int) (removed int, err error)
}

// Config configures a Deliverer. Outboxes and Leads are required.
type Config struct {
	Outboxes Outboxes
	// Leads reports whether this process is the leader of the store's replicas. Only the leader
	// delivers. Leads is a method of [storage.Documents].
	Leads func() bool
	// Sources make events of facts that are not documents.
	Sources []Source
	Targets Targets
	// Agent is the User-Agent of attempts.
	Agent string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Log receives failures to read or store deliveries. Nil discards them.
	Log *slog.Logger
	// Metrics is where the deliverer registers its metrics. If it is nil, the metrics are not registered.
	Metrics prometheus.Registerer
}

const (
	// every bounds the time until a due delivery is found without a call of Wake.
	every = time.Second
	// tidyEvery is the time between two removals of old deliveries.
	tidyEvery = time.Minute
	// batch is the number of deliveries that are stored at a time. turn is the number of batches
	// that one webhook sends before the next webhook.
	batch = 64
	turn  = 16
	// firstRetry and lastRetry bound the time until the next attempt. That time doubles with each attempt.
	firstRetry = 5 * time.Second
	lastRetry  = time.Hour
	// longestPause bounds how long nothing is sent to a webhook that does not answer.
	longestPause = 5 * time.Minute
	// giveUp is the time after which a delivery is no longer attempted.
	giveUp = 24 * time.Hour
)

// Deliverer sends the deliveries that are due. [New] makes it.
type Deliverer struct {
	cfg     Config
	sender  *sender
	metrics *metrics
	wake    chan struct{}
	fed     recent // the ids of events that feed stored recently; only feed uses this field

	mu sync.Mutex
	// at has the webhooks with work in progress or with pending deliveries.
	at      map[place]*target
	working int
	next    int // the index of the organization that pass serves first
}

type place struct{ org, webhook string }

// target is the state of a webhook. It exists only in the leader's memory.
type target struct {
	working bool
	failing bool // whether the last attempt failed
	silent  int  // the number of batches in a row without any answer
	paused  time.Time
}

// New returns a deliverer. It sends nothing before Run.
func New(cfg Config) (*Deliverer, error) {
	if cfg.Outboxes == nil || cfg.Leads == nil {
		return nil, errors.New("webhook: no outboxes, or nothing that says who leads")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of webhooks: %w", err)
	}
	return &Deliverer{
		cfg: cfg, wake: make(chan struct{}, 1), at: make(map[place]*target), metrics: m,
		sender: &sender{secure: transport(cfg.Targets, true), plain: transport(cfg.Targets, false), agent: cfg.Agent},
	}, nil
}

// Wake makes the Deliverer look for due deliveries at once. It never blocks.
func (d *Deliverer) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Changed wakes the Deliverer if c may have made events. Pass it to the method Watch of
// [storage.Documents].
func (d *Deliverer) Changed(c storage.Change) {
	switch c.Kind {
	case storage.AgentKind, storage.PolicyKind, storage.EverythingChanged:
		d.Wake()
	}
}

// Run delivers until ctx ends, while this process is the leader. It returns after the last
// attempt has ended. The store must stay open until then.
func (d *Deliverer) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { d.feed(ctx) })
	defer d.sender.close()
	defer all.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var tidied time.Time
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.wake:
		}
		if !d.cfg.Leads() {
			d.metrics.show(0, 0)
			continue
		}
		err := d.pass(ctx, &all, &tidied)
		if err != nil && !failing && ctx.Err() == nil {
			d.cfg.Log.Error("webhook deliveries could not be read: they wait", slog.String("error", err.Error()))
		}
		failing = err != nil
	}
}

// pass starts work on each webhook that may have due deliveries. Each pass begins with another
// organization.
func (d *Deliverer) pass(ctx context.Context, all *sync.WaitGroup, tidied *time.Time) error {
	told, err := d.cfg.Outboxes.AllOutboxes(ctx)
	if err != nil {
		return err
	}
	now := d.cfg.Now()
	if now.Sub(*tidied) >= tidyEvery {
		*tidied = now
		for _, o := range told {
			if err := d.tidy(ctx, o, now); err != nil {
				return err
			}
		}
	}
	for _, o := range told {
		for _, t := range o.Tallies {
			if !t.Over(now) {
				continue
			}
			if err := d.cfg.Outboxes.SumUp(ctx, o.OrganizationID, now.UTC().Truncate(time.Millisecond)); err != nil {
				return err
			}
			d.Wake()
			break
		}
	}
	var pending int64
	there := make(map[place]bool)
	for i := range told {
		o := told[(i+d.next)%len(told)]
		pending += o.Pending
		for _, w := range o.Webhooks {
			there[place{o.OrganizationID, w.ID}] = true
			if o.Pending > 0 && !d.start(ctx, all, o.OrganizationID, w) {
				d.next = (i + d.next) % len(told)
			}
		}
	}
	d.metrics.show(pending, d.forget(there))
	return nil
}

// tidy removes an organization's ended deliveries that are older than their retention.
func (d *Deliverer) tidy(ctx context.Context, o registry.Told, now time.Time) error {
	if o.Ended == 0 && len(o.Gone) == 0 {
		return nil
	}
	for {
		n, err := d.cfg.Outboxes.Tidy(ctx, o.OrganizationID, now, batch)
		if err != nil || n < batch {
			return err
		}
	}
}

// start works on a webhook in a new goroutine. It returns false if the limit of concurrent
// webhooks is reached.
func (d *Deliverer) start(ctx context.Context, all *sync.WaitGroup, org string, w *storage.Webhook) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := place{org, w.ID}
	t := d.at[at]
	if t != nil && (t.working || d.cfg.Now().Before(t.paused)) {
		return true
	}
	if d.working == maxWorking {
		return false
	}
	if t == nil {
		t = &target{}
		d.at[at] = t
	}
	t.working = true
	d.working++
	all.Go(func() {
		err := d.work(ctx, org, w, t)
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("webhook deliveries could not be read or stored: they are attempted again",
				slog.String("organization", org), slog.String("webhook", w.ID), slog.String("error", err.Error()))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		t.working = false
		d.working--
	})
	return true
}

// forget drops the state of webhooks that no longer exist. It returns the number of failing
// webhooks.
func (d *Deliverer) forget(there map[place]bool) (failing int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, t := range d.at {
		switch {
		case !there[at] && !t.working:
			delete(d.at, at)
		case t.failing:
			failing++
		}
	}
	return failing
}

// work delivers at most turn batches to a webhook.
func (d *Deliverer) work(ctx context.Context, org string, w *storage.Webhook, t *target) error {
	var from time.Time // no delivery was due before this time when work began
	for range turn {
		most := batch
		if t.silent > 0 {
			most = 1 // one delivery is enough to find out whether the webhook answers again
		}
		due, err := d.cfg.Outboxes.DueDeliveries(ctx, org, w.ID, from, d.cfg.Now(), most)
		if err != nil || len(due) == 0 {
			return err
		}
		from = due[0].DueAt
		answered := d.attempt(ctx, w, due)
		stopped := ctx.Err() != nil
		if stopped { // Run's end has cancelled attempts, which do not count as failures
			due = slices.DeleteFunc(due, func(v *storage.Delivery) bool { return v.Problem != "" })
		}
		if err := d.cfg.Outboxes.EndAttempts(context.WithoutCancel(ctx), org,
			d.cfg.Now().UTC().Truncate(time.Millisecond), due); err != nil {
			return err
		}
		d.count(due)
		if stopped || d.note(t, due, answered) {
			return nil //nolint:nilerr // a stop is not a failure
		}
	}
	d.Wake()
	return nil
}
