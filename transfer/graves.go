package transfer

import (
	"slices"
	"strings"

	"writ/storage"
)

// graveRun is how many removed rows are held at a time: some 20 MiB.
const graveRun = 1 << 16

// graves are the removed rows that come next. A source gives them in any order, so as
// many as there is room for are chosen in a pass over all.
type graves struct {
	most     int                  // of some
	some     []*storage.Tombstone // in the order of their ids
	all      bool                 // no others are left
	greatest string               // id of all
}

// nextGrave returns the next removed row, nil after the last one.
func (e *exporter) nextGrave() (*storage.Tombstone, error) {
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

// refill chooses the first removed rows after the last line.
func (e *exporter) refill() error {
	g, n, bound := &e.graves, 0, ""
	g.some = g.some[:0:0]
	err := e.src.TombstonesOf(e.ctx, e.cfg.Organization, func(t *storage.Tombstone) error {
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

// first keeps the first ones.
func (g *graves) first() {
	slices.SortFunc(g.some, func(a, b *storage.Tombstone) int { return strings.Compare(a.DecisionID, b.DecisionID) })
	if len(g.some) > g.most {
		clear(g.some[g.most:])
		g.some = g.some[:g.most]
	}
}
