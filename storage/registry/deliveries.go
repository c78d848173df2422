package registry

import (
	"bytes"
	"context"
	"errors"
	"time"

	"writ.example/writ/storage"
)

// deliveredFor and deadFor are the retention of deliveries that have ended with success and
// without.
const (
	deliveredFor = 24 * time.Hour
	deadFor      = 7 * 24 * time.Hour
)

// EndAttempts stores the results of attempts. Pass each delivery as [Registry.DueDeliveries]
// returned it, with a new Attempts, Answer, Problem, and Status or DueAt. If the stored delivery
// has changed since then, another process has attempted it too, and the stored delivery remains.
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
	stored, err := s.tx.Get(storage.DeliveryKind, s.org, storage.DeliveryID(d.WebhookID, d.MessageID))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // the delivery was removed with its webhook
	case err != nil || stored.Revision != d.Revision:
		return err
	}
	d.AttemptedAt = s.at
	if d.Status == storage.DeliveryPending {
		return storage.Deliveries.Put(s.tx, s.org, d)
	}
	d.DueAt, d.RemoveAt = time.Time{}, s.at.Add(deliveredFor)
	if d.Status == storage.DeliveryDead {
		d.RemoveAt = s.at.Add(deadFor)
	}
	s.box.Pending--
	s.box.Ended++
	if err = storage.Deliveries.Put(s.tx, s.org, d); err != nil || s.box.Blocked == 0 {
		return err
	}
	next, err := s.inLane(d)
	if err != nil || next == nil || !next.DueAt.IsZero() {
		return err
	}
	next.DueAt = s.at
	s.box.Blocked--
	return storage.Deliveries.Put(s.tx, s.org, next)
}

// ReplayDelivery makes an ended delivery of org pending again and resets its count of attempts. A
// pending delivery stays unchanged. It returns storage.ErrNotFound if the delivery or its webhook
// is missing.
func (r *Registry) ReplayDelivery(
	ctx context.Context, org, webhookID, messageID string, at time.Time,
) (*storage.Delivery, error) {
	return change(ctx, r, org, func(tx storage.Tx) (*storage.Delivery, error) {
		if _, err := storage.Webhooks.Get(tx, org, webhookID); err != nil {
			return nil, err
		}
		d, err := storage.Deliveries.Get(tx, org, storage.DeliveryID(webhookID, messageID))
		if err != nil || d.Status == storage.DeliveryPending {
			return d, err
		}
		return d, changeOutbox(tx, org, func(o *storage.Outbox) error {
			o.Ended--
			d.Attempts, d.AttemptedAt, d.Answer, d.Problem = 0, time.Time{}, 0, ""
			return (&sorter{tx, org, at, o}).await(d)
		})
	})
}

// DueDeliveries returns the deliveries to a webhook of org that are due in the given interval,
// the earliest first. It returns at most max deliveries, and at most one for each subject. Start
// the interval at the earliest due time that the last call returned. Then the store need not skip
// removed keys.
func (r *Registry) DueDeliveries(
	ctx context.Context, org, webhookID string, from, at time.Time, max int,
) ([]*storage.Delivery, error) {
	prefix := storage.Text(webhookID)
	q := storage.Query{Org: org, Index: storage.ByDue, Prefix: prefix,
		From: append(bytes.Clone(prefix), storage.Time(from)...)}
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

// ListDeliveries returns the deliveries to a webhook of org that have a status, newest first. An
// empty status selects all deliveries. One call skips at most 2*[storage.MaxPage] deliveries of
// another status. A page may therefore be short although more deliveries follow.
func (r *Registry) ListDeliveries(
	ctx context.Context, org, webhookID, status string, p storage.Page,
) (deliveries []*storage.Delivery, next string, err error) {
	q := storage.Query{Org: org, Index: storage.ByAge, Prefix: storage.Text(webhookID)}
	return page(ctx, r, storage.Deliveries, byte(storage.DeliveryKind), q, p, 2*storage.MaxPage,
		func(d *storage.Delivery) bool {
			return status == "" || d.Status == status
		})
}
