package transfer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/storage"
)

// tombstoneChunk is the number of tombstones in memory. They take about 20 MiB.
const tombstoneChunk = 1 << 16

// tombstones has the next tombstones, sorted by id. A tombstone records a removed row. A source
// lists its tombstones in any order, so each chunk needs a read of all tombstones.
type tombstones struct {
	most     int                  // the maximum length of some
	some     []*storage.Tombstone // sorted by id
	all      bool                 // no tombstones remain beyond some
	greatest string               // the greatest id of all tombstones
	// forgotten is the greatest id of a decision whose intent the source has forgotten, and forgottenAt is when it
	// has last forgotten one.
	forgotten   string
	forgottenAt time.Time
}

// nextTombstone returns the next tombstone, or nil after the last.
func (e *exporter) nextTombstone() (*storage.Tombstone, error) {
	if len(e.some) == 0 && !e.all {
		if err := e.refill(); err != nil {
			return nil, err
		}
	}
	if len(e.some) == 0 {
		return nil, nil
	}
	return e.some[0], nil
}

// refill reads the next chunk, which follows the last line of the file.
func (e *exporter) refill() error {
	g, n, bound := &e.tombstones, 0, ""
	g.some = g.some[:0:0]
	err := e.src.EachTombstone(e.ctx, e.cfg.Organization, func(t *storage.Tombstone) error {
		if !t.Forgotten.IsZero() {
			g.forgotten = max(g.forgotten, t.DecisionID)
			if t.Forgotten.After(g.forgottenAt) {
				g.forgottenAt = t.Forgotten
			}
			return nil
		}
		g.greatest = max(g.greatest, t.DecisionID)
		if t.DecisionID <= e.state.last || bound != "" && t.DecisionID > bound {
			return nil
		}
		n++
		if g.some = append(g.some, t); len(g.some) == 2*g.most {
			g.first()
			bound = g.some[g.most-1].DecisionID
		}
		return nil
	})
	if g.first(); err != nil {
		return err
	}
	if h := e.state.header; h != nil && !g.forgottenAt.IsZero() {
		begun, _ := storage.ParseID(h.ID)
		if g.forgottenAt.After(storage.IDTime(begun).Add(-storage.MaxSkew)) {
			return errors.New("the store has forgotten removed decisions since the export was begun: begin another")
		}
	}
	g.all = bound == "" && len(g.some) == n
	return nil
}

// first sorts the tombstones and keeps the g.most least ids.
func (g *tombstones) first() {
	slices.SortFunc(g.some, func(a, b *storage.Tombstone) int { return strings.Compare(a.DecisionID, b.DecisionID) })
	if len(g.some) > g.most {
		clear(g.some[g.most:])
		g.some = g.some[:g.most]
	}
}

// forgottenBefore returns a time that is later than all intents were issued whose removed decisions the source has
// forgotten, or a store before it. It is zero if there is none.
func (e *exporter) forgottenBefore(r storage.Reader) (before time.Time, err error) {
	if id, ok := storage.ParseID(e.forgotten); ok {
		age, err := storage.IntentAges.Get(r, "", "")
		if err != nil {
			return before, fmt.Errorf("reading the age of intents: %w", err)
		}
		before = storage.IDTime(id).Add(storage.MaxSkew + age.Widest()).UTC()
	}
	q := storage.Query{Org: e.cfg.Organization}
	err = storage.Origins.Scan(r, q, func(_ []byte, o *storage.Origin) (bool, error) {
		if o.Forgotten.After(before) {
			before = o.Forgotten
		}
		return true, nil
	})
	return before, err
}
