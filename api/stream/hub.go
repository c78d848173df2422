package stream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// every is the time between two looks at the chains. With a longer one the rows of more decisions are read
// at once, and decisions wait for a processor meanwhile.
const every = 100 * time.Millisecond

// History has the rows. It is a part of [storage.Log].
type History interface {
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
	Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) error
}

// Config configures a Hub. History, Now and Log are required.
type Config struct {
	History History
	Now     func() time.Time
	// Log gets a line when reading begins to fail.
	Log *slog.Logger
}

// Hub reads new rows for viewers. Run must run while there are viewers.
type Hub struct {
	cfg             Config
	viewers         prometheus.Gauge
	events, skipped prometheus.Counter
	failing         bool // only Run uses it

	// mu is held while rows are read for live viewers. live has them by organization.
	mu   sync.Mutex
	live map[string]*audience

	// open has all viewers. No other mutex is taken and no store is called while openMu is held.
	openMu sync.Mutex
	open   map[*Viewer]bool
}

// audience has the live viewers of an organization. Each of them has come as far as at, or further.
type audience struct {
	at  Place
	has map[*Viewer]bool
}

// New returns a hub without viewers. It registers the metrics of the hub.
func New(cfg Config, reg prometheus.Registerer) *Hub {
	h := &Hub{
		cfg: cfg, live: make(map[string]*audience), open: make(map[*Viewer]bool),
		viewers: telemetry.Gauge("writ_stream_viewers", "Streams of the history that are open."),
		events:  telemetry.Counter("writ_stream_rows_total", "Rows that became events of streams of the history."),
		skipped: telemetry.Counter("writ_stream_skipped_total",
			"Rows that streams of the history counted instead of sending them."),
	}
	reg.MustRegister(h.viewers, h.events, h.skipped)
	return h
}

// Run reads new rows until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := h.pass(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != h.failing {
			if h.failing = failed; failed {
				h.cfg.Log.Error("rows cannot be read for streams: they are sent later",
					slog.String("error", err.Error()))
			}
		}
	}
}

// pass gives the live viewers the rows since the last pass.
func (h *Hub) pass(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.live) == 0 {
		return nil
	}
	tips, err := h.tips(ctx)
	if err != nil {
		return err
	}
	for org, a := range h.live {
		for _, tip := range tips {
			if !a.at[tip.ID].before(tip.Seq) {
				continue
			}
			err := h.cfg.History.Rows(ctx, storage.RowQuery{Chain: tip.ID, From: a.at[tip.ID].Heads + 1, Org: org},
				func(head storage.HeadRows) error {
					rows, now := newHeadRows(&head), h.cfg.Now()
					for v := range a.has {
						v.head(tip.ID, rows, now)
					}
					a.at[tip.ID] = At{Heads: head.Seq}
					return nil
				})
			if err != nil {
				return fmt.Errorf("reading rows: %w", err)
			}
		}
		for v := range a.has {
			v.settle(h.cfg.Now())
		}
	}
	return nil
}

func (h *Hub) tips(ctx context.Context) (tips []receipt.Chain, err error) {
	err = h.cfg.History.Chains(ctx, func(tip receipt.Chain) error {
		tips = append(tips, tip)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the ends of the chains: %w", err)
	}
	return tips, nil
}

// Open returns a viewer of an organization's history that begins at a place, or now if at is nil.
// Close must be called.
func (h *Hub) Open(ctx context.Context, org string, at Place) (*Viewer, error) {
	tips, err := h.tips(ctx)
	if err != nil {
		return nil, err
	}
	ends := endsOf(tips)
	if at == nil {
		at = ends
	}
	v := &Viewer{hub: h, org: org, missed: ends, at: at.within(tips), wake: make(chan struct{}, 1)}
	h.openMu.Lock()
	defer h.openMu.Unlock()
	h.open[v] = true
	h.viewers.Set(float64(len(h.open)))
	return v, nil
}

// Renamed ends the viewers that select by the names of an organization's agents. An empty org stands
// for every organization. A viewer that is opened again has the new names.
func (h *Hub) Renamed(org string) {
	h.openMu.Lock()
	defer h.openMu.Unlock()
	for v := range h.open {
		if org == "" || v.org == org {
			v.renamed.Store(true)
			v.call()
		}
	}
}

// join makes v live if it has seen all heads that the hub has read for its organization.
func (h *Hub) join(v *Viewer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.live[v.org]
	if a == nil {
		a = &audience{at: v.place(), has: make(map[*Viewer]bool)}
		h.live[v.org] = a
	} else if !v.place().reaches(a.at) {
		return false
	}
	a.has[v] = true
	return true
}

func (h *Hub) leave(v *Viewer) {
	h.mu.Lock()
	if a := h.live[v.org]; a != nil {
		if delete(a.has, v); len(a.has) == 0 {
			delete(h.live, v.org)
		}
	}
	h.mu.Unlock()
	h.openMu.Lock()
	defer h.openMu.Unlock()
	delete(h.open, v)
	h.viewers.Set(float64(len(h.open)))
}
