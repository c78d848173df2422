package webhook

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"writ/storage"
	"writ/storage/registry"
)

// Source finds facts that are not documents, whose updates tell of them themselves.
type Source interface {
	// Name names its position in the outboxes. It never changes.
	Name() string
	// Wanted reports whether a webhook asks for its events.
	Wanted(w *storage.Webhook) bool
	// Since calls tell with org's facts after a position, in the order in which they are
	// told, and each time with the position up to which all were told then. The position is
	// empty at first; nothing is asked for from before a time. Facts may be told more than
	// once, none may be left out. An error of tell ends it, and is returned.
	Since(ctx context.Context, org, position string, begin time.Time,
		tell func(events []storage.Event, position string) error) error
}

// feed makes events of the facts of the sources, for organizations that want them.
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
					err = e // the others go on
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

// feedFrom stores what a source finds of one organization.
func (d *Deliverer) feedFrom(ctx context.Context, o registry.Told, s Source) error {
	var begin time.Time // when the first of those that ask was made
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

// store stores events that were not stored before, in parts, of which only the last moves
// the position: a tenth of a page in one update, which others wait for.
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

// recent is a set of the last ids that were added, of one to two hundred pages: some 10 MB. It
// spares updates that would find everything stored, no more.
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
