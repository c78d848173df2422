// Package retention removes old history in the background. The plan of an organization says how
// long its history is kept.
//
// Of all replicas on a store, only the leader removes history. It makes a pass over all
// organizations, waits for [Config.Every], and makes the next pass. For each organization it
// first commits to the signed audit log how many records it will remove. Then it removes the
// oldest records in small writes with pauses, so that decisions hardly wait. Each pass reads the
// retention of each organization again. If the retention is unknown, nothing of that organization
// is removed. While the store is not healthy, nothing is removed at all: the clock may be wrong. A
// shorter retention takes effect with the next pass. The removal cannot be undone.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage"
)

// Store is the part of a store that a Sweeper uses.
type Store interface {
	storage.Retention
	// Leads reports whether this process is the leader: see [storage.Documents].
	Leads() bool
	// Healthy returns an error while nothing may be removed, for example because this process has another time than
	// the store: see [storage.Store].
	Healthy(ctx context.Context) error
}

// Config configures a Sweeper. Store, Announce and Keep are required.
type Config struct {
	Store Store
	// Announce commits an entry that announces the removal of an organization's records. The entry
	// has the number of records, and the time before which they were decided. If Announce fails,
	// nothing is removed.
	Announce func(ctx context.Context, org string, before time.Time, count storage.Expired) error
	// Keep returns how long an organization's history is kept. 0 means for ever. If Keep fails,
	// the history is kept until the next pass.
	Keep func(ctx context.Context, org string) (time.Duration, error)
	// Forget forgets intents of an organization's removed records, at most max. It returns how many it has
	// forgotten. If it is nil, none are forgotten.
	Forget func(ctx context.Context, org string, max int) (int, error)
	// Sessions removes an organization's expired sessions. A session counts if it has expired by
	// the time at. Sessions returns the number of removed sessions. If it is nil, no sessions are
	// removed.
	Sessions func(ctx context.Context, org string, at time.Time) (int, error)
	// Revised calls a function for each organization that keeps revisions of rules, lists or libraries.
	// Revisions removes those that no record needs which was decided at or after a time. If Revised is
	// nil, no revisions are removed.
	Revised   func(ctx context.Context, f func(org string) error) error
	Revisions func(ctx context.Context, org string, before time.Time) (int, error)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Log gets a line for each pass that removed records or failed. Nil discards the lines.
	Log *slog.Logger
	// Metrics registers the sweeper's metrics. If Metrics is nil, they are not registered.
	Metrics prometheus.Registerer
	// Every is the pause between passes. Zero means an hour.
	Every time.Duration
	// Wait waits for d. If ctx ends first, it returns ctx's error. Nil means a wait with a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	every = time.Hour
	// look is the time between two checks whether this process has become the leader.
	look = time.Second
	// batch is the number of records that one write removes. Such a write takes a few
	// milliseconds. pause is the wait after each write. So at most 10,000 records a second are
	// removed.
	batch = 250
	pause = 25 * time.Millisecond
	// announced bounds the records that one entry announces.
	announced = 100_000
)

// Sweeper removes history that is older than its organization's retention.
type Sweeper struct {
	cfg      Config
	removed  prometheus.Counter
	failures prometheus.Counter
	last     prometheus.Gauge
}

// New returns a sweeper. It does nothing before Run.
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

// Run makes a pass as soon as this process is the leader. Further passes follow, with a pause
// before each, until ctx ends. Close the store only after Run has returned.
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

// errFollows ends the pass of a process that is no longer the leader. The new leader begins a new
// pass.
var errFollows = errors.New("another replica leads")

// pass sweeps every organization. If one organization fails, the pass continues with the next.
func (s *Sweeper) pass(ctx context.Context) {
	start := s.cfg.Now()
	removed, orgs, failed := 0, 0, 0
	each := func(sweep func(context.Context, string) (int, error)) func(org string) error {
		return func(org string) error {
			if !s.cfg.Store.Leads() {
				return errFollows
			}
			if err := s.cfg.Store.Healthy(ctx); err != nil {
				return err
			}
			n, err := sweep(ctx, org)
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
		}
	}
	err := s.cfg.Store.Organizations(ctx, each(s.sweep))
	if err == nil && s.cfg.Revised != nil {
		err = s.cfg.Revised(ctx, each(s.sweepRevisions))
	}
	if removed > 0 || failed > 0 {
		s.cfg.Log.Info("history past its retention was removed", slog.Int("records", removed),
			slog.Int("organizations", orgs),
			slog.Int("failed", failed), slog.Duration("took", s.cfg.Now().Sub(start)))
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, errFollows):
	case err != nil:
		s.failures.Inc()
		s.cfg.Log.Error("a pass over the organizations has failed: the history of the others is kept",
			slog.String("error", err.Error()))
	default:
		s.last.Set(float64(s.cfg.Now().Unix()))
	}
}

// sweep removes org's expired sessions and records, and forgets intents. It returns the number of removed records.
func (s *Sweeper) sweep(ctx context.Context, org string) (removed int, err error) {
	if s.cfg.Sessions != nil {
		if _, err := s.cfg.Sessions(ctx, org, s.cfg.Now()); err != nil {
			return 0, fmt.Errorf("removing sessions: %w", err)
		}
	}
	removed, err = s.sweepRecords(ctx, org)
	for err == nil && s.cfg.Forget != nil {
		var n int
		if n, err = s.cfg.Forget(ctx, org, batch); err != nil {
			err = fmt.Errorf("forgetting intents: %w", err)
		}
		if n < batch {
			break
		}
		err = s.cfg.Wait(ctx, pause)
	}
	return removed, err
}

func (s *Sweeper) sweepRecords(ctx context.Context, org string) (removed int, err error) {
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

// sweepRevisions removes the revisions of org's rules, lists and libraries that no record needs any more.
// While a record is left that this pass could not remove, it removes none. It removes no record, so it
// returns 0.
func (s *Sweeper) sweepRevisions(ctx context.Context, org string) (int, error) {
	keep, err := s.cfg.Keep(ctx, org)
	if err != nil {
		return 0, fmt.Errorf("asking how long to keep revisions: %w", err)
	}
	if keep <= 0 {
		return 0, nil
	}
	before := s.cfg.Now().Add(-keep)
	left, err := s.cfg.Store.CountExpired(ctx, org, before, 1)
	if err == nil && left.Records == 0 {
		_, err = s.cfg.Revisions(ctx, org, before)
	}
	if err != nil {
		return 0, fmt.Errorf("removing revisions: %w", err)
	}
	return 0, nil
}

// remove removes the announced records and returns their number.
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
