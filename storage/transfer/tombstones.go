package transfer

import (
	"slices"
	"strings"

	"writ/storage"
)

// tombstoneChunk is the number of tombstones in memory. They take about 20 MiB.
const tombstoneChunk = 1 << 16

// tombstones has the next tombstones in the order of their ids. A source lists its tombstones in
// any order. So each chunk reads all tombstones of the source.
type tombstones struct {
	most     int                  // largest length of some
	some     []*storage.Tombstone // sorted by id
	all      bool                 // some has all remaining tombstones
	greatest string               // the greatest id of all tombstones
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

// refill reads the next chunk. It begins after the last line that was written.
func (e *exporter) refill() error {
	g, n, bound := &e.tombstones, 0, ""
	g.some = g.some[:0:0]
	err := e.src.EachTombstone(e.ctx, e.cfg.Organization, func(t *storage.Tombstone) error {
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
	g.all = bound == "" && len(g.some) == n
	return nil
}

// first sorts the tombstones and keeps those with the least ids, at most g.most.
func (g *tombstones) first() {
	slices.SortFunc(g.some, func(a, b *storage.Tombstone) int { return strings.Compare(a.DecisionID, b.DecisionID) })
	if len(g.some) > g.most {
		clear(g.some[g.most:])
		g.some = g.some[:g.most]
	}
}
