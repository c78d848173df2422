package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// found sums up rows and tombstones, to be compared with the store's indexes and meters.
type found struct {
	mu     sync.Mutex
	rows   map[string]storage.RowSums
	months map[month]monthly
	// vanished is the number of leaves whose rows were removed while rows were read. Their months are not known.
	vanished int64
}

type month struct {
	org   string
	month storage.Month
}

// monthly counts decisions of a month. The month of a removed row is known only from its
// id, and the time in the id may be wrong by [storage.MaxSkew]. Near the end of a month
// such a row may belong to either month, so both months count it as possible.
type monthly struct{ certain, possible int64 }

// read sums up the rows of an organization that one goroutine has read.
type read struct {
	storage.RowSums
	n      int
	months map[storage.Month]int64
}

// partLeaves is the least number of leaves for each part into which rows are divided.
const partLeaves = 64

// readRows proves all rows. Several goroutines read at the same time. Each reads another
// organization, or another part of an organization.
//
// r, if it is not nil, is renewed when its state is no longer kept. Each reader then goes on after the last row that it
// has proved.
func (p *prover) readRows(ctx context.Context, h History, r Renewable) error {
	var orgs []string
	if err := h.Organizations(ctx, func(org string) error {
		orgs = append(orgs, org)
		return nil
	}); err != nil || len(orgs) == 0 {
		return err
	}
	n := min(4*runtime.GOMAXPROCS(0)/len(orgs), p.leaves/partLeaves)
	if p.cfg.Partial { // a server lists all rows, whatever the bounds
		n = 1
	}
	if p.cfg.Resume {
		return p.readLaterRows(ctx, h, r, orgs, n)
	}
	return p.readParts(ctx, h, r, partsOf(orgs, p.bounds(n)))
}

// partsOf divides the rows of organizations by bounds.
func partsOf(orgs, bounds []string) []*readPart {
	parts := make([]*readPart, 0, len(orgs)*(len(bounds)-1))
	for _, org := range orgs {
		for i, upTo := range bounds[1:] {
			parts = append(parts, &readPart{org: org, after: bounds[i], upTo: upTo})
		}
	}
	return parts
}

// readParts proves the rows of parts.
func (p *prover) readParts(ctx context.Context, h History, r Renewable, parts []*readPart) error {
	for {
		before := p.read.Load()
		err := inParallel(len(parts), func(i int) error { return parts[i].read(ctx, h, p) })
		if r == nil || !errors.Is(err, storage.ErrPast) || p.read.Load() == before {
			return err
		}
		if err := p.renew(ctx, h, r); err != nil {
			return err
		}
	}
}

// readPart is a part of an organization's rows. The rows up to after are proved.
type readPart struct {
	org, after, upTo string
	only             string // if it is not empty, the only row that is proved
	of               read
	done             bool
}

func (w *readPart) read(ctx context.Context, h History, p *prover) error {
	if w.done {
		return nil
	}
	err := h.EachRow(ctx, w.org, w.after, w.upTo, func(r *storage.Record) error {
		if w.only != "" && r.DecisionID != w.only {
			return nil
		}
		err := p.row(r, &w.of)
		if err == nil {
			w.after = r.DecisionID
			p.read.Add(1)
		}
		return err
	})
	if w.done = err == nil; w.done && w.of.n > 0 {
		p.found.add(w.org, &w.of)
	}
	return err
}

// bounds returns ids that divide the rows into about n parts of equal size. It uses the
// times of the heads.
func (p *prover) bounds(n int) []string {
	var heads []provenHead
	for _, c := range p.order {
		heads = append(heads, c.heads...)
	}
	slices.SortFunc(heads, func(a, b provenHead) int { return cmp.Compare(a.at, b.at) })
	bounds, leaves := []string{""}, 0
	for _, h := range heads {
		if leaves += int(h.size); n > 1 && leaves >= p.leaves/n {
			bounds, leaves = append(bounds, storage.IDAt(time.UnixMilli(h.at)).String()), 0
		}
	}
	return append(bounds, "")
}

func (f *found) add(org string, of *read) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sums := f.rows[org]
	sums.ByIntent.Merge(of.ByIntent)
	sums.ByDecision.Merge(of.ByDecision)
	f.rows[org] = sums
	for m, n := range of.months {
		f.count(org, m, monthly{certain: n})
	}
}

// removed counts a row that retention has removed.
func (f *found) removed(org string, id uuid.UUID) {
	at := storage.IDTime(id)
	first, last := storage.MonthOf(at.Add(-storage.MaxSkew)), storage.MonthOf(at.Add(storage.MaxSkew))
	if first == last {
		f.count(org, first, monthly{certain: 1})
		return
	}
	f.count(org, first, monthly{possible: 1})
	f.count(org, last, monthly{possible: 1})
}

func (f *found) count(org string, m storage.Month, n monthly) {
	of := month{org, m}
	f.months[of] = monthly{f.months[of].certain + n.certain, f.months[of].possible + n.possible}
}

// meter compares a meter with the rows.
func (f *found) meter(org string, m storage.Month, n int64) error {
	of := month{org, m}
	want := f.months[of]
	delete(f.months, of)
	if n >= want.certain && n <= want.certain+want.possible+f.vanished {
		return nil
	}
	return brokenOrg(org, fmt.Errorf("its meter of %d says %d, and %d decisions are of that month", m, n, want.certain))
}

// unmetered returns an error if there are decisions that no meter counts.
func (f *found) unmetered() error {
	for _, of := range slices.SortedFunc(maps.Keys(f.months), func(a, b month) int {
		return cmp.Or(strings.Compare(a.org, b.org), cmp.Compare(a.month, b.month))
	}) {
		if err := f.meter(of.org, of.month, 0); err != nil {
			return err
		}
	}
	return nil
}
