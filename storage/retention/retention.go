// Package retention removes history past the retention of the organizations' plans, in the
// background.
//
// The handle that leads goes through all organizations once in [Config.Every]. It announces
// in the chain how many records of each it is about to remove, and removes the oldest in
// small writes with pauses between them, so that decisions hardly wait. It asks for the
// retention of each organization in each pass, and removes nothing if that is unknown. A
// shorter retention takes effect with the next pass and cannot be undone.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/internal/telemetry"
	"writ/storage"
)

// Store is the part of a store that a Sweeper uses.
type Store interface {
	storage.Retention
	// Leads is a method of [storage.Documents].
	Leads() bool
}

// Config is what a Sweeper works with. Store, Announce and Keep are required.
type Config struct {
	Store Store
	// Announce commits an entry that so many records of an organization, decided before
	// a time, are about to be removed. If it fails nothing is removed.
	Announce func(ctx context.Context, org string, before time.Time, count storage.Expired) error
	// Keep returns how long an organization's history is kept: 0 means for good.
	// An error keeps it until the next pass.
	Keep func(ctx context.Context, org string) (time.Duration, error)
	// Sessions removes the sessions of an organization that have expired by a time, and
	// returns how many. Nil removes none.
	Sessions func(ctx context.Context, org string, at time.Time) (int, error)
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Log gets a line for each pass that removed records. Nil discards.
	Log *slog.Logger
	// Metrics is where the sweeper registers its metrics. Nil registers nowhere.
	Metrics prometheus.Registerer
	// Every is the pause between passes, an hour if zero.
	Every time.Duration
	// Wait waits for d, or returns ctx's error; nil uses a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	every = time.Hour
	// look is how often a handle that does not lead asks again.
	look = time.Second
	// batch is how many records one write removes, which takes a few
	// milliseconds, and pause what follows it: at most 10,000 a second.
	batch = 250
	pause = 25 * time.Millisecond
	// announced is how many records are announced at a time.
	announced = 100_000
)

// Sweeper removes what is past its retention.
type Sweeper struct {
	cfg      Config
	removed  prometheus.Counter
	failures prometheus.Counter
	last     prometheus.Gauge
}

// New returns a sweeper that has done nothing yet.
func New(cfg Config) (*Sweeper, error) {
	if cfg.Store == nil || cfg.Announce == nil || cfg.Keep == nil {
		return nil, errors.New("retention: no store, nobody to announce to, or nothing that says how long to keep")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Every == 0 {
		cfg.Every = every
	}
	if cfg.Wait == nil {
		cfg.Wait = wait
	}
	s := &Sweeper{
		cfg: cfg,
		removed: telemetry.Counter("writ_retention_removed_records_total",
			"History records removed after their retention."),
		failures: telemetry.Counter("writ_retention_failures_total",
			"Organizations whose history could not be swept, a pass at a time."),
		last: telemetry.Gauge("writ_retention_last_pass_timestamp_seconds",
			"When the last pass over all organizations ended."),
	}
	if _, err := telemetry.Register(cfg.Metrics, s.removed, s.failures, s.last); err != nil {
		return nil, fmt.Errorf("registering the metrics of retention: %w", err)
	}
	return s, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run makes a pass as soon as the handle leads and then one after each pause, until
// ctx ends. The store must not be closed before Run has returned.
func (s *Sweeper) Run(ctx context.Context) {
	for {
		pause := look
		if s.cfg.Store.Leads() {
			s.pass(ctx)
			pause = s.cfg.Every
		}
		if s.cfg.Wait(ctx, pause) != nil {
			return
		}
	}
}

// errFollows ends the pass of a handle that no longer leads. Its successor begins another.
var errFollows = errors.New("another replica leads")

// pass sweeps every organization. An organization that fails does not end the pass.
func (s *Sweeper) pass(ctx context.Context) {
	start := s.cfg.Now()
	removed, orgs, failed := 0, 0, 0
	err := s.cfg.Store.Organizations(ctx, func(org string) error {
		if !s.cfg.Store.Leads() {
			return errFollows
		}
		n, err := s.sweep(ctx, org)
		removed += n
		if n > 0 {
			orgs++
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if failed++; failed == 1 {
				s.cfg.Log.Error("history could not be swept: it is kept", slog.String("organization", org),
					slog.String("error", err.Error()))
			}
			s.failures.Inc()
		}
		return nil
	})
	if removed > 0 || failed > 0 {
		s.cfg.Log.Info("history past its retention was removed", slog.Int("records", removed),
			slog.Int("organizations", orgs),
			slog.Int("failed", failed), slog.Duration("took", s.cfg.Now().Sub(start)))
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, errFollows):
	case err != nil:
		s.failures.Inc()
		s.cfg.Log.Error("the organizations to sweep could not be read", slog.String("error", err.Error()))
	default:
		s.last.Set(float64(s.cfg.Now().Unix()))
	}
}

// sweep removes org's expired sessions and records, and returns how many records.
func (s *Sweeper) sweep(ctx context.Context, org string) (removed int, err error) {
	if s.cfg.Sessions != nil {
		if _, err := s.cfg.Sessions(ctx, org, s.cfg.Now()); err != nil {
			return 0, fmt.Errorf("removing sessions: %w", err)
		}
	}
	keep, err := s.cfg.Keep(ctx, org)
	if err != nil {
		return 0, fmt.Errorf("asking how long to keep history: %w", err)
	}
	if keep <= 0 {
		return 0, nil
	}
	before := s.cfg.Now().Add(-keep)
	for {
		count, err := s.cfg.Store.CountExpired(ctx, org, before, announced)
		if err != nil {
			return removed, fmt.Errorf("counting history: %w", err)
		}
		if count.Records == 0 {
			return removed, nil
		}
		if err := s.cfg.Announce(ctx, org, before, count); err != nil {
			return removed, fmt.Errorf("announcing a removal: %w", err)
		}
		n, err := s.remove(ctx, org, before, count)
		removed += n
		if err != nil || count.Records < announced || n == 0 {
			return removed, err
		}
	}
}

// remove removes the announced records and returns how many.
func (s *Sweeper) remove(
	ctx context.Context, org string, before time.Time, left storage.Expired,
) (removed int, err error) {
	for {
		n, err := s.cfg.Store.RemoveRecords(ctx, org, before,
			storage.Expired{Records: min(batch, left.Records), Settled: left.Settled})
		if err != nil {
			return removed, fmt.Errorf("removing history: %w", err)
		}
		removed += n.Records
		left.Records, left.Settled = left.Records-n.Records, left.Settled-n.Settled
		s.removed.Add(float64(n.Records))
		if n.Records < batch || left.Records == 0 {
			return removed, nil
		}
		if err := s.cfg.Wait(ctx, pause); err != nil {
			return removed, err
		}
	}
}
