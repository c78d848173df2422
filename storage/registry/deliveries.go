package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"writ/storage"
)

// deliveredFor and deadFor are how long deliveries are kept after they ended.
const (
	deliveredFor = 24 * time.Hour
	deadFor      = 7 * 24 * time.Hour
)

// changeOutbox changes org's outbox, or returns f's error.
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
	if err := f(o); err != nil || !isNew && reflect.DeepEqual(&before, o) {
		return err
	}
	_, err = storage.Outboxes.Put(tx, org, o)
	return err
}

// sorter puts events into the outbox of an organization.
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

// add stores the delivery of e to a webhook, unless it is there: a fact can be found twice.
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
		WebhookID: webhookID, MessageID: id, Type: e.Type, Subject: e.Subject, Seq: s.box.Seq, Body: string(body), CreatedAt: s.at,
	})
}

// await makes d pending: due, or behind another of its subject.
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
	_, err := storage.Deliveries.Put(s.tx, s.org, d)
	return err
}

// inLane returns the first pending delivery of d's subject to its webhook, nil if there is
// none.
func (s *sorter) inLane(d *storage.Delivery) (*storage.Delivery, error) {
	first, err := first(s.tx, storage.Deliveries, storage.Query{
		Org: s.org, Index: storage.ByName, Prefix: storage.LaneOf(d.WebhookID, d.Subject),
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // none is no error
	}
	return first, err
}

// EndAttempts stores how attempts went at a time: each as [Registry.DueDeliveries] gave it,
// with Attempts, Answer and Problem of what followed, and Status, or DueAt of the next
// attempt. What has changed meanwhile is left as it is: another handle has attempted it, too.
func (r *Registry) EndAttempts(ctx context.Context, org string, at time.Time, attempts []*storage.Delivery) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			s := &sorter{tx, org, at, o}
			for _, d := range attempts {
				if err := s.end(d); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (s *sorter) end(d *storage.Delivery) error {
	stored, err := storage.Deliveries.Get(s.tx, s.org, storage.DeliveryID(d.WebhookID, d.MessageID))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // with its webhook
	case err != nil:
		return err
	case stored.Status != storage.DeliveryPending || stored.Attempts != d.Attempts-1 || !stored.Since.Equal(d.Since):
		return nil
	}
	d.AttemptedAt = s.at
	if d.Status == storage.DeliveryPending {
		_, err = storage.Deliveries.Put(s.tx, s.org, d)
		return err
	}
	d.DueAt, d.RemoveAt = time.Time{}, s.at.Add(deliveredFor)
	if d.Status == storage.DeliveryDead {
		d.RemoveAt = s.at.Add(deadFor)
	}
	s.box.Pending--
	s.box.Ended++
	if _, err = storage.Deliveries.Put(s.tx, s.org, d); err != nil || s.box.Blocked == 0 {
		return err
	}
	next, err := s.inLane(d)
	if err != nil || next == nil || !next.DueAt.IsZero() {
		return err
	}
	next.DueAt = s.at
	s.box.Blocked--
	_, err = storage.Deliveries.Put(s.tx, s.org, next)
	return err
}

// ReplayDelivery makes a delivery of org that ended pending again, as if it were new. One
// that is pending is attempted as it would have been. It returns storage.ErrNotFound where
// there is no such delivery or no such webhook any more.
func (r *Registry) ReplayDelivery(ctx context.Context, org, webhookID, messageID string, at time.Time) (d *storage.Delivery, err error) {
	err = r.update(ctx, org, func(tx storage.Tx) error {
		if _, err := storage.Webhooks.Get(tx, org, webhookID); err != nil {
			return err
		}
		if d, err = storage.Deliveries.Get(tx, org, storage.DeliveryID(webhookID, messageID)); err != nil || d.Status == storage.DeliveryPending {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			o.Ended--
			d.Attempts, d.AttemptedAt, d.Answer, d.Problem = 0, time.Time{}, 0, ""
			return (&sorter{tx, org, at, o}).await(d)
		})
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// DueDeliveries returns deliveries to org's webhook of an id that are due at a time, the
// longest first, at most max. No two are of one subject.
func (r *Registry) DueDeliveries(ctx context.Context, org, webhookID string, at time.Time, max int) ([]*storage.Delivery, error) {
	prefix := storage.Text(webhookID)
	q := storage.Query{Org: org, Index: storage.ByDue, Prefix: prefix}
	end := append(bytes.Clone(prefix), storage.Time(at.Add(1))...)
	return read(ctx, r, func(tx storage.Reader) (due []*storage.Delivery, err error) {
		err = storage.Deliveries.Scan(tx, q, func(position []byte, d *storage.Delivery) (bool, error) {
			if bytes.Compare(position, end) >= 0 {
				return false, nil
			}
			due = append(due, d)
			return len(due) < max, nil
		})
		return due, err
	})
}

// ListDeliveries returns the deliveries to org's webhook of an id that have a status, or
// any if it is empty, the newest first. A page may be short though more follows.
func (r *Registry) ListDeliveries(
	ctx context.Context, org, webhookID, status string, p storage.Page,
) (deliveries []*storage.Delivery, next string, err error) {
	after, err := p.Start(byte(storage.DeliveryKind))
	if err != nil {
		return nil, "", err
	}
	prefix := storage.Text(webhookID)
	if after != nil && !bytes.HasPrefix(after, prefix) {
		return nil, "", storage.ErrBadCursor
	}
	if after != nil {
		after = append(after, 0)
	}
	q := storage.Query{Org: org, Index: storage.ByAge, Prefix: prefix, From: after}
	deliveries, err = read(ctx, r, func(tx storage.Reader) (found []*storage.Delivery, err error) {
		var last []byte
		skipped := 0
		next = ""
		err = storage.Deliveries.Scan(tx, q, func(position []byte, d *storage.Delivery) (bool, error) {
			if len(found) == p.Limit || skipped == maxSkipped {
				next = storage.Cursor(byte(storage.DeliveryKind), last)
				return false, nil
			}
			if status == "" || d.Status == status {
				found = append(found, d)
			} else {
				skipped++
			}
			last = append(last[:0], position...)
			return true, nil
		})
		return found, err
	})
	return deliveries, next, err
}

// Told is what an organization has to be told, and where.
type Told struct {
	*storage.Outbox
	Webhooks []*storage.Webhook
}

// AllOutboxes returns the outbox of each organization that has or had webhooks.
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

// Tidy removes, in one write, at most max of org's deliveries: those that ended and were
// kept long enough at a time, or are too many, and those of webhooks that were deleted. It
// returns how many.
func (r *Registry) Tidy(ctx context.Context, org string, at time.Time, max int) (removed int, err error) {
	err = r.update(ctx, org, func(tx storage.Tx) error {
		removed = 0
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			for len(o.Gone) > 0 && removed < max {
				n, err := removeAll(tx, org, o, storage.Query{Org: org, Prefix: []byte(storage.DeliveryID(o.Gone[0], ""))}, max-removed,
					func(*storage.Delivery) bool { return true })
				if removed += n; err != nil {
					return err
				}
				if removed < max {
					o.Gone = o.Gone[1:]
				}
			}
			n, err := removeAll(tx, org, o, storage.Query{Org: org, Index: storage.ByExpiry}, max-removed,
				func(d *storage.Delivery) bool { return !d.RemoveAt.After(at) || o.Ended > maxEnded })
			removed += n
			return err
		})
	})
	return removed, err
}

// removeAll removes the first documents that q selects and ended accepts, at most max.
func removeAll(
	tx storage.Tx, org string, o *storage.Outbox, q storage.Query, max int, accept func(*storage.Delivery) bool,
) (removed int, err error) {
	var found []*storage.Delivery
	counted := *o
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
		*o = counted
		return 0, err
	}
	for _, d := range found {
		if err := tx.Delete(storage.DeliveryKind, org, storage.DeliveryID(d.WebhookID, d.MessageID)); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
