package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"writ.example/writ/storage"
)

const (
	// PerSecond is how many rows a second become events.
	PerSecond = 20
	// queueRows is how many events wait for a live viewer that does not take them.
	queueRows = 2 * PerSecond
	// partRows and partHeads bound a part, which one call of CatchUp reads. A part has whole heads, so it may
	// have more rows.
	partRows  = 256
	partHeads = 4096
)

// Event is a row, or the number of rows that were skipped.
type Event struct {
	ID      string // the place after the event
	Row     *Row
	Skipped *Skipped // nil if the event is a row
}

// Skipped counts rows that did not become events. From is the earliest DecidedAt of the rows; it is
// zero if retention has removed all of them.
type Skipped struct {
	Count int       `json:"count"`
	From  time.Time `json:"from,omitzero"`
}

// Viewer is a reader of the history of an organization. One goroutine uses it.
type Viewer struct {
	hub     *Hub
	org     string
	selects func(*storage.Record) bool
	alike   string // viewers with the same text select the same rows, unless it is empty
	missed  Place  // all rows up to here become events
	live    bool
	renamed atomic.Bool
	wake    chan struct{}

	// mu guards the rest, which the hub changes too.
	mu     sync.Mutex
	at     Place
	events []Event
	behind Skipped   // the rows that were skipped after the last event
	second time.Time // the begin of the current second
	in     int       // how many rows have become events in it
}

// Select sets which rows v sees. It must be called once, before CatchUp. Viewers of an organization with the
// same alike select the same rows, so that selects is called for one of them. It is empty if others may
// select other rows.
func (v *Viewer) Select(alike string, selects func(*storage.Record) bool) {
	v.alike, v.selects = alike, selects
}

// Renamed reports whether names of the organization's agents may have changed since v was opened.
func (v *Viewer) Renamed() bool { return v.renamed.Load() }

// Wake has a value when there may be events, or when Renamed has become true.
func (v *Viewer) Wake() <-chan struct{} { return v.wake }

// Close ends v.
func (v *Viewer) Close() { v.hub.leave(v) }

// ID returns the id of the place after all events that were taken. ok is false if events wait to be taken,
// or if rows were skipped since the last event.
func (v *Viewer) ID() (id string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.events) > 0 || v.behind.Count > 0 {
		return "", false
	}
	return v.at.ID(v.org), true
}

func (v *Viewer) place() Place {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.at)
}

func (v *Viewer) call() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Take returns the events that have come.
func (v *Viewer) Take() []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	events := v.events
	v.events = nil
	return events
}

// CatchUp reads some of the rows that v has missed. It returns true once v has them all. From then on the
// hub adds the events.
func (v *Viewer) CatchUp(ctx context.Context) (live bool, err error) {
	if v.live = v.live || v.hub.join(v); v.live {
		return true, nil
	}
	tips, err := v.hub.tips(ctx)
	if err != nil {
		return false, err
	}
	full, heads := errors.New("the part is full"), 0
	for _, tip := range tips {
		from := v.place()[tip.ID].Heads + 1
		if from > tip.Seq {
			continue
		}
		err := v.hub.cfg.History.Rows(ctx, storage.RowQuery{Chain: tip.ID, From: from, Org: v.org},
			func(head storage.HeadRows) error {
				v.head(tip.ID, newHeadRows(&head), v.hub.cfg.Now())
				if heads++; heads >= partHeads || v.waiting() >= partRows {
					return full
				}
				return nil
			})
		switch {
		case errors.Is(err, full):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading rows: %w", err)
		}
	}
	v.live = v.hub.join(v)
	return v.live, nil
}

func (v *Viewer) waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.events)
}

// head adds the rows of a head. Heads of a chain come in their order, and may come twice.
func (v *Viewer) head(chain [16]byte, head *headRows, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.at[chain]
	if !at.before(head.Seq) {
		return
	}
	if at.Heads != head.Seq-1 {
		at.Leaves = 0
	}
	missed := !v.missed[chain].before(head.Seq)
	rows := head.selected(v)
	for n, r := range rows {
		if at.Leaves > 0 && leafOf(r.Record) < at.Leaves {
			continue
		}
		if !missed && !v.hasRoom(now) { // nor is there for the rest
			v.skip(len(rows)-n, earliest(rows[n:]))
			break
		}
		index := leafOf(r.Record)
		v.at[chain] = At{head.Seq - 1, index}
		v.tellSkipped()
		v.at[chain] = At{head.Seq - 1, index + 1}
		v.events = append(v.events, Event{ID: v.at.ID(v.org), Row: r})
		v.hub.events.Inc()
	}
	// If v has had rows of this head before, they may be among the removed ones. Then no removed row is counted.
	if removed := head.Count - len(head.Records); removed > 0 && at.Leaves == 0 {
		v.skip(removed, time.Time{})
	}
	v.at[chain] = At{Heads: head.Seq}
	if len(v.events) > 0 {
		v.call()
	}
}

// leafOf returns the index of a row among the leaves of its head.
func leafOf(r *storage.Record) uint64 {
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	if err != nil {
		return 0 // cannot happen: the store has made the receipt. The row is sent again after a resume
	}
	return uint64(leaf.Index)
}

// hasRoom reports whether another row may become an event, and counts it.
func (v *Viewer) hasRoom(now time.Time) bool {
	// The seconds of all viewers begin together. So they have the same rows, which are encoded once.
	if second := now.Truncate(time.Second); !second.Equal(v.second) {
		v.second, v.in = second, 0
	}
	if v.in >= PerSecond || len(v.events) >= queueRows {
		return false
	}
	v.in++
	return true
}

func (v *Viewer) skip(n int, decided time.Time) {
	v.behind.Count += n
	if !decided.IsZero() && (v.behind.From.IsZero() || decided.Before(v.behind.From)) {
		v.behind.From = decided
	}
	v.hub.skipped.Add(float64(n))
}

// tellSkipped adds an event for the rows that were skipped since the last event, if there are any.
func (v *Viewer) tellSkipped() {
	if v.behind.Count == 0 {
		return
	}
	skipped := v.behind
	v.behind = Skipped{}
	v.events = append(v.events, Event{ID: v.at.ID(v.org), Skipped: &skipped})
}

// settle adds an event for skipped rows once the second in which they were skipped is over.
func (v *Viewer) settle(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Sub(v.second) < time.Second || v.behind.Count == 0 || len(v.events) >= queueRows {
		return
	}
	v.tellSkipped()
	v.call()
}
