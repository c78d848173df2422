package webhook

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// Source makes events of facts that are not documents. Documents need no source: the update of a
// document also stores its events.
type Source interface {
	// Name identifies the source. The outboxes store the source's position under this name, so
	// the name never changes.
	Name() string
	// Wanted reports whether w subscribes to events of the source.
	Wanted(w *storage.Webhook) bool
	// Since passes the facts of org after position to tell. It passes them in the order in which
	// they are to be delivered. Each call also passes a new position: all facts up to it have
	// been passed to tell. The first position is empty. Facts before begin are not needed. A fact
	// may be passed twice, but none may be left out. If tell returns an error, Since returns that
	// error at once.
	Since(ctx context.Context, org, position string, begin time.Time,
		tell func(events []storage.Event, position string) error) error
}

// feed stores the events of all sources, for the organizations with a webhook that wants them.
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
					err = e // the loop continues with the next organization or source
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

// feedFrom stores the events of one source for one organization.
func (d *Deliverer) feedFrom(ctx context.Context, o registry.Told, s Source) error {
	var begin time.Time // the creation time of the first webhook that wants this source
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

// store stores the events that are not stored yet. Each update stores at most a tenth of a page,
// because other updates wait for it. Only the last update changes the position.
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

// recent is a set of ids that were added recently. It holds the last one to two hundred pages of
// ids, about 10 MB. It only saves updates whose events are all stored already.
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
