package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"

	"writ.example/writ/storage"
)

// maxMeters is how many meters without held places are kept in memory. They take about two
// megabytes.
const maxMeters = 10_000

// meter names a meter.
type meter struct {
	org   string
	month storage.Month
}

// quota is a meter in use. Only one process writes, so places are granted in memory.
type quota struct {
	stored     int64 // the stored meter
	held       int64 // places granted and not used
	committing int64 // decisions being written
	tick       int   // place among the ticks of the batch being written, from 1; 0 for none
}

// quotas are the meters in use, in shards, so that reading one from the disk delays few
// others.
type quotas [64]quotaShard

type quotaShard struct {
	mu    sync.Mutex
	byKey map[meter]*quota
	// full is the number of meters at which those without held places are dropped.
	full int
}

var quotaSeed = maphash.MakeSeed()

func (qs *quotas) of(m meter) *quotaShard {
	return &qs[maphash.Comparable(quotaSeed, m)%uint64(len(qs))]
}

// quota returns the quota of m. If m is not in use, its meter is read from the disk. The caller
// holds sh.mu.
func (s *Store) quota(sh *quotaShard, m meter) (*quota, error) {
	if q := sh.byKey[m]; q != nil {
		return q, nil
	}
	stored, err := s.metered(m)
	if err != nil {
		return nil, err
	}
	if sh.byKey == nil {
		sh.byKey, sh.full = make(map[meter]*quota), maxMeters/len(s.quotas)
	}
	if len(sh.byKey) >= sh.full {
		for m, q := range sh.byKey {
			if q.held+q.committing == 0 {
				delete(sh.byKey, m)
			}
		}
		sh.full = max(maxMeters/len(s.quotas), 2*len(sh.byKey))
	}
	q := &quota{stored: stored}
	sh.byKey[m] = q
	return q, nil
}

// Count implements storage.Quotas for meters. The counters of rules are in the process.
func (s *Store) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if err := cmp.Or(ctx.Err(), checkOrg(w.Org)); err != nil {
		return storage.Granted{}, err
	}
	m := meter{w.Org, w.Month}
	sh := s.quotas.of(m)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	q, err := s.quota(sh, m)
	if err != nil {
		return storage.Granted{}, err
	}
	for _, back := range ask.Back {
		if back.N < 0 || back.N > q.held {
			return storage.Granted{},
				fmt.Errorf("returning %d places of %q in %d, of which %d are held", back.N, m.org, m.month, q.held)
		}
		q.held -= back.N
	}
	taken := q.stored + q.held + q.committing
	n := max(0, min(ask.Want, ask.Limit-taken))
	if n < ask.Need {
		n = 0
	}
	q.held += n
	return storage.Granted{N: n, At: ask.At, Total: taken + n}, nil
}

// Scarce implements storage.Quotas. Only one process writes, so idle places are missed by nobody.
func (s *Store) Scarce(ctx context.Context, meters []storage.Window) ([]bool, error) {
	return make([]bool, len(meters)), ctx.Err()
}

// tick is a batch's increase of a meter.
type tick struct {
	meter
	shard  *quotaShard
	quota  *quota // not dropped while decisions are being written
	n      int64
	used   int64 // held places that the tick uses
	stored int64 // the meter after the tick
}

// ticks counts records. The caller passes the result to endTicks, and holds s.commits.
func (s *Store) ticks(fresh []*storage.Record) (ticks []tick, err error) {
	for _, r := range fresh {
		if !r.Metered() {
			continue
		}
		if ticks, err = s.tick(ticks, meter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}); err != nil {
			break
		}
	}
	return ticks, err
}

// tick counts a decision.
func (s *Store) tick(ticks []tick, m meter) ([]tick, error) {
	sh := s.quotas.of(m)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	q, err := s.quota(sh, m)
	if err != nil {
		return ticks, err
	}
	if q.tick == 0 {
		ticks = append(ticks, tick{meter: m, shard: sh, quota: q})
		q.tick = len(ticks)
	}
	t := &ticks[q.tick-1]
	if q.held > 0 {
		q.held--
		t.used++
	}
	q.committing++
	t.n++
	t.stored = q.stored + t.n
	return ticks, nil
}

// endTicks counts ticks as decided if their batch was stored, and otherwise takes them back.
func endTicks(ticks []tick, stored bool) {
	for i := range ticks {
		t, q := &ticks[i], ticks[i].quota
		t.shard.mu.Lock()
		q.committing -= t.n
		if stored {
			q.stored += t.n
		} else {
			q.held += t.used
		}
		q.tick = 0
		t.shard.mu.Unlock()
	}
}

// Metered implements storage.Quotas.
func (s *Store) Metered(_ context.Context, org string, month storage.Month) (int64, error) {
	if err := checkOrg(org); err != nil {
		return 0, err
	}
	return s.metered(meter{org, month})
}

// Windows implements storage.Quotas. No other process writes, so the process counts by itself.
func (s *Store) Windows() storage.Windows { return nil }

// Meters implements storage.Quotas. It reads the meters of all months, which are
// few: an organization has one a month.
func (s *Store) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	return s.eachMeter(ctx, func(m meter, n int64) error {
		if m.month != month {
			return nil
		}
		return f(m.org, n)
	})
}

// eachMeter calls f for each meter.
func (s *Store) eachMeter(ctx context.Context, f func(m meter, n int64) error) error {
	s.pending.mu.Lock()
	here := maps.Clone(s.pending.meters)
	s.pending.mu.Unlock()
	err := s.scanKind(ctx, kindMeter, func(org string, month, n []byte) error {
		if len(month) != 4 || len(n) != 8 {
			return &storage.BreakError{OrganizationID: org,
				Err: fmt.Errorf("a meter has a month of %d bytes and a value of %d", len(month), len(n))}
		}
		m := meter{org, storage.Month(binary.BigEndian.Uint32(month))}
		stored := max(here[m], int64(binary.BigEndian.Uint64(n))) //nolint:gosec // it counts
		delete(here, m)
		return f(m, stored)
	})
	for m, n := range here {
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = f(m, n)
		}
	}
	return err
}
