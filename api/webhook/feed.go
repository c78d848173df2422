package webhook

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"writ/storage"
	"writ/storage/registry"
)

// Source finds facts that are not documents. Facts that are documents need no source, because their updates store the
// events.
type Source interface {
	// Name names the position of the source in the outboxes. It never changes.
	Name() string
	// Wanted reports whether the webhook asks for events of the source.
	Wanted(w *storage.Webhook) bool
	// Since calls tell with the facts of org after position, in the order in which they are to be told. Each call has
	// the position up to which all facts have been told with that call. The first position is empty. Facts before begin
	// are not needed. A fact may be told more than once, but none may be left out. If tell returns an error, Since
	// returns that error at once.
	Since(ctx context.Context, org, position string, begin time.Time,
		tell func(events []storage.Event, position string) error) error
}

// feed makes events of the facts of the sources, for the organizations that want them.
func (d *Deliverer) feed(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failing := false; len(d.cfg.Sources) > 0; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !d.cfg.Leads() {
			continue
		}
		told, err := d.cfg.Outboxes.AllOutboxes(ctx)
		for _, o := range told {
			for _, s := range d.cfg.Sources {
				if e := d.feedFrom(ctx, o, s); e != nil {
					err = e // the loop goes on with the other organizations and sources
				}
			}
		}
		if err != nil && !failing && ctx.Err() == nil {
			d.cfg.Log.Error("facts for webhooks could not be read or stored: they wait",
				slog.String("error", err.Error()))
		}
		failing = err != nil
	}
}

// feedFrom stores the facts that a source finds for one organization.
func (d *Deliverer) feedFrom(ctx context.Context, o registry.Told, s Source) error {
	var begin time.Time // when the first webhook that wants this source was made
	for _, w := range o.Webhooks {
		if s.Wanted(w) && (begin.IsZero() || w.CreatedAt.Before(begin)) {
			begin = w.CreatedAt
		}
	}
	if begin.IsZero() {
		return nil
	}
	position := o.Positions[s.Name()]
	return s.Since(ctx, o.OrganizationID, position, begin, func(events []storage.Event, next string) error {
		err := d.store(ctx, o.OrganizationID, s.Name(), position, next, events)
		if err == nil {
			position = next
		}
		return err
	})
}

// store stores events that are not stored yet. It stores a tenth of a page in one update, because other updates wait
// for it. Only the last update moves the position.
func (d *Deliverer) store(ctx context.Context, org, source, position, next string, events []storage.Event) error {
	at := d.cfg.Now().UTC().Truncate(time.Millisecond)
	events = slices.DeleteFunc(events, func(e storage.Event) bool { return d.fed.has(e.ID(org)) })
	if len(events) == 0 && next == position {
		return nil
	}
	for first := true; first || len(events) > 0; first = false {
		part := events[:min(len(events), storage.MaxPage/10)]
		events = events[len(part):]
		to := position
		if len(events) == 0 {
			to = next
		}
		if err := d.cfg.Outboxes.Feed(ctx, org, source, to, at, part); err != nil {
			return err
		}
		for i := range part {
			d.fed.add(part[i].ID(org))
		}
	}
	d.Wake()
	return nil
}

// recent is a set of the ids that were added last. It holds the ids of one to two hundred pages, which take some 10 MB.
// Its only use is to avoid updates whose events are all stored already.
type recent struct{ now, before map[string]struct{} }

func (r *recent) has(id string) bool {
	_, now := r.now[id]
	_, before := r.before[id]
	return now || before
}

func (r *recent) add(id string) {
	if r.now == nil || len(r.now) == 100*storage.MaxPage {
		r.now, r.before = make(map[string]struct{}), r.now
	}
	r.now[id] = struct{}{}
}
