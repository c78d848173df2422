package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/storage"
)

// changeOutbox stores org's outbox after f has changed it. If f returns an error, changeOutbox
// stores nothing and returns the error.
func changeOutbox(tx storage.Tx, org string, f func(*storage.Outbox) error) error {
	o, err := storage.Outboxes.Get(tx, org, "")
	isNew := errors.Is(err, storage.ErrNotFound)
	if isNew {
		o, err = &storage.Outbox{OrganizationID: org}, nil
	}
	if err != nil {
		return err
	}
	before := *o
	before.Gone, before.Positions = slices.Clone(o.Gone), maps.Clone(o.Positions)
	before.Heads, before.Tallies = maps.Clone(o.Heads), maps.Clone(o.Tallies)
	if err := f(o); err != nil || !isNew && reflect.DeepEqual(&before, o) {
		return err
	}
	return storage.Outboxes.Put(tx, org, o)
}

// sorter adds events to an organization's outbox.
type sorter struct {
	tx  storage.Tx
	org string
	at  time.Time
	box *storage.Outbox
}

func (s *sorter) sort(hooks []*storage.Webhook, events []storage.Event) error {
	for i := range events {
		for _, w := range hooks {
			if !w.Wants(&events[i]) {
				continue
			}
			if err := s.add(w.ID, &events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add stores the delivery of e to a webhook. The same fact can be found twice, so add does nothing
// for a delivery that is already stored.
func (s *sorter) add(webhookID string, e *storage.Event) error {
	id := e.ID(s.org)
	_, err := s.tx.Get(storage.DeliveryKind, s.org, storage.DeliveryID(webhookID, id))
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{e.Type, e.At.UTC(), e.Data}, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding an event of type %s: %w", e.Type, err)
	}
	s.box.Seq++
	return s.await(&storage.Delivery{
		WebhookID: webhookID, MessageID: id, Type: e.Type, Subject: e.Subject, Seq: s.box.Seq, Body: body,
		CreatedAt: s.at,
	})
}

// await makes d pending. d is due now. If an earlier delivery of the same subject is pending, d
// waits for that delivery.
func (s *sorter) await(d *storage.Delivery) error {
	d.Status, d.Since, d.DueAt, d.RemoveAt = storage.DeliveryPending, s.at, s.at, time.Time{}
	if s.box.Pending > 0 {
		before, err := s.inLane(d)
		if err != nil {
			return err
		}
		if before != nil {
			d.DueAt = time.Time{}
			s.box.Blocked++
		}
	}
	s.box.Pending++
	return storage.Deliveries.Put(s.tx, s.org, d)
}

// inLane returns the first pending delivery to d's webhook with d's subject, or nil.
func (s *sorter) inLane(d *storage.Delivery) (*storage.Delivery, error) {
	first, err := first(s.tx, storage.Deliveries, storage.Query{
		Org: s.org, Index: storage.ByName, Prefix: storage.LaneOf(d.WebhookID, d.Subject),
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // no such delivery; this is not an error
	}
	return first, err
}

// Told is an organization's outbox and its webhooks.
type Told struct {
	*storage.Outbox
	Webhooks []*storage.Webhook
}

// AllOutboxes returns the outbox of every organization that has or had webhooks.
func (r *Registry) AllOutboxes(ctx context.Context) ([]Told, error) {
	return read(ctx, r, func(tx storage.Reader) (told []Told, err error) {
		outboxes, err := every(tx, storage.Outboxes, storage.Query{Every: true})
		if err != nil || len(outboxes) == 0 {
			return nil, err
		}
		hooks := make(map[string][]*storage.Webhook)
		q := storage.Query{Kind: storage.WebhookKind, Every: true}
		err = tx.Scan(q, func(_ []byte, d storage.Document) (bool, error) {
			w, err := storage.Webhooks.Parse(d)
			if err == nil {
				hooks[d.Org] = append(hooks[d.Org], w)
			}
			return true, err
		})
		for _, o := range outboxes {
			told = append(told, Told{o, hooks[o.OrganizationID]})
		}
		return told, err
	})
}

// Tidy removes deliveries of org and returns their number. It removes deliveries of deleted
// webhooks, and ended deliveries whose RemoveAt has passed. If too many ended deliveries remain,
// it removes those with the earliest RemoveAt. One call is one write and removes at most max
// deliveries.
func (r *Registry) Tidy(ctx context.Context, org string, at time.Time, max int) (removed int, err error) {
	err = r.update(ctx, org, func(tx storage.Tx) error {
		removed = 0
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			for len(o.Gone) > 0 && removed < max {
				n, err := removeAll(tx, org, o,
					storage.Query{Org: org, Prefix: []byte(storage.DeliveryID(o.Gone[0], ""))}, max-removed,
					all)
				if removed += n; err != nil {
					return err
				}
				if removed < max {
					o.Gone = o.Gone[1:]
				}
			}
			n, err := removeAll(tx, org, o, storage.Query{Org: org, Index: storage.ByExpiry}, max-removed,
				func(d *storage.Delivery) bool { return !d.RemoveAt.After(at) || o.Ended > maxPending/5 })
			removed += n
			return err
		})
	})
	return removed, err
}

// removeAll removes the deliveries that q selects, in order. It stops after max deliveries, or at
// the first that accept refuses.
func removeAll(
	tx storage.Tx, org string, o *storage.Outbox, q storage.Query, max int, accept func(*storage.Delivery) bool,
) (removed int, err error) {
	var found []*storage.Delivery
	err = storage.Deliveries.Scan(tx, q, func(_ []byte, d *storage.Delivery) (bool, error) {
		if len(found) == max || !accept(d) {
			return false, nil
		}
		found = append(found, d)
		switch {
		case d.Status != storage.DeliveryPending:
			o.Ended--
		case d.DueAt.IsZero():
			o.Blocked--
			fallthrough
		default:
			o.Pending--
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	for _, d := range found {
		if err := tx.Delete(storage.DeliveryKind, org, storage.DeliveryID(d.WebhookID, d.MessageID)); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
