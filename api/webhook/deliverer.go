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

	"writ/storage"
	"writ/storage/registry"
)

// Outboxes keeps deliveries: see the methods of [registry.Registry].
type Outboxes interface {
	AllOutboxes(ctx context.Context) ([]registry.Told, error)
	DueDeliveries(ctx context.Context, org, webhookID string, from, at time.Time, max int) ([]*storage.Delivery, error)
	EndAttempts(ctx context.Context, org string, at time.Time, attempts []*storage.Delivery) error
	Feed(ctx context.Context, org, source, position string, at time.Time, events []storage.Event) error
	Tidy(ctx context.Context, org string, at time.Time, max int) (removed int, err error)
}

// Config is what a Deliverer works with. Outboxes and Leads are required.
type Config struct {
	Outboxes Outboxes
	// Leads is the method of [storage.Documents]: only the leader delivers.
	Leads func() bool
	// Sources find the facts that are not documents.
	Sources []Source
	Targets Targets
	// Agent is the User-Agent of attempts.
	Agent string
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Log hears of what could not be read or stored. Nil discards.
	Log *slog.Logger
	// Metrics is where the deliverer registers its metrics. Nil registers nowhere.
	Metrics prometheus.Registerer
}

const (
	// every is how long it takes at most until a delivery is found that nothing announced.
	every = time.Second
	// tidyEvery is how often deliveries are removed that were kept long enough.
	tidyEvery = time.Minute
	// batch is how many deliveries are stored at a time, and turn how many batches a
	// webhook has before others have theirs.
	batch = 64
	turn  = 16
	// firstRetry and lastRetry bound the time to the next attempt, which doubles.
	firstRetry = 5 * time.Second
	lastRetry  = time.Hour
	// longestPause is for how long nothing is sent where nothing answers.
	longestPause = 5 * time.Minute
	// giveUp is for how long a delivery is attempted.
	giveUp = 24 * time.Hour
)

// Deliverer sends what is due. It is made by [New].
type Deliverer struct {
	cfg     Config
	sender  *sender
	metrics *metrics
	wake    chan struct{}
	fed     recent // of feed

	mu sync.Mutex
	// at are the webhooks that are worked on, or had something undelivered last.
	at      map[place]*target
	working int
	next    int // the organization whose turn is first
}

type place struct{ org, webhook string }

// target is what is known of a webhook on this handle alone.
type target struct {
	working bool
	failing bool // the last attempt failed
	silent  int  // how many batches in a row nothing answered
	paused  time.Time
}

// New returns a deliverer that has sent nothing yet.
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

// Changed is a watcher of [storage.Documents]: what it tells of may have made events.
func (d *Deliverer) Changed(c storage.Change) {
	switch c.Kind {
	case storage.AgentKind, storage.PolicyKind, storage.EverythingChanged:
		d.Wake()
	}
}

// Run delivers while the handle leads, until ctx ends, and returns when no attempt is under
// way. The store must not be closed before.
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

// pass starts work on each webhook that may have something due, the organizations in turn.
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

// tidy removes what an organization keeps no longer.
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

// start works on a webhook in a goroutine of its own. It reports false where too many are
// worked on already.
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

// forget drops what is known of webhooks that are gone, and returns how many fail.
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

// work has a turn of a webhook.
func (d *Deliverer) work(ctx context.Context, org string, w *storage.Webhook, t *target) error {
	var from time.Time // nothing was due before that when the turn began
	for range turn {
		most := batch
		if t.silent > 0 {
			most = 1 // to see whether it answers again
		}
		due, err := d.cfg.Outboxes.DueDeliveries(ctx, org, w.ID, from, d.cfg.Now(), most)
		if err != nil || len(due) == 0 {
			return err
		}
		from = due[0].DueAt
		answered := d.attempt(ctx, w, due)
		stopped := ctx.Err() != nil
		if stopped { // which ended attempts
			due = slices.DeleteFunc(due, func(v *storage.Delivery) bool { return v.Problem != "" })
		}
		if err := d.cfg.Outboxes.EndAttempts(context.WithoutCancel(ctx), org,
			d.cfg.Now().UTC().Truncate(time.Millisecond), due); err != nil {
			return err
		}
		d.count(due)
		if stopped || d.note(t, due, answered) {
			return nil //nolint:nilerr // to be stopped is no failure
		}
	}
	d.Wake()
	return nil
}
