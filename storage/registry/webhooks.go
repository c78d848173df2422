package registry

import (
	"context"
	"time"

	"writ/storage"
)

const (
	// maxWebhooks is how many webhooks an organization may have: an event is stored once
	// for each that wants it.
	maxWebhooks = 20
	// maxPending is how much of one kind an organization may have that time will remove:
	// sessions that are not swept yet, and deliveries that are pending, some 100 MB, from
	// which on its facts wait in the history. It keeps a fifth of it of deliveries that
	// ended, whatever their age.
	maxPending = 100_000
)

// PutWebhook stores a new webhook. It returns a *storage.LimitError when org has as many
// as it may.
func (r *Registry) PutWebhook(ctx context.Context, org string, w *storage.Webhook) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		err := recount(tx, org, func(c *storage.Counts) error { return raise(&c.Webhooks, 1, "webhooks", maxWebhooks) })
		if err != nil {
			return err
		}
		if err := storage.Webhooks.Put(tx, org, w); err != nil {
			return err
		}
		return changeOutbox(tx, org, func(*storage.Outbox) error { return nil })
	})
}

// Webhook returns org's webhook of an id, or storage.ErrNotFound.
func (r *Registry) Webhook(ctx context.Context, org, id string) (*storage.Webhook, error) {
	return get(ctx, r, storage.Webhooks, org, id)
}

// ListWebhooks returns org's webhooks by id, which is by creation time.
func (r *Registry) ListWebhooks(
	ctx context.Context, org string, p storage.Page,
) (hooks []*storage.Webhook, next string, err error) {
	return list(ctx, r, storage.Webhooks, org, storage.ByID, p, all)
}

func webhooks(tx storage.Reader, org string) ([]*storage.Webhook, error) {
	return every(tx, storage.Webhooks, storage.Query{Org: org})
}

// RotateWebhook gives org's webhook of an id a new secret at a time, and returns it as it
// then is. The secret that was the newest signs beside the new one until a time, and older
// ones no longer. It returns storage.ErrNotFound where there is no such webhook.
func (r *Registry) RotateWebhook(
	ctx context.Context, org, id, secret string, until time.Time,
) (*storage.Webhook, error) {
	return change(ctx, r, org, func(tx storage.Tx) (*storage.Webhook, error) {
		w, err := storage.Webhooks.Get(tx, org, id)
		if err != nil {
			return nil, err
		}
		old := w.Secrets[0]
		old.Until = until
		w.Secrets = []storage.WebhookSecret{{Secret: secret}, old}
		return w, storage.Webhooks.Put(tx, org, w)
	})
}

// DeleteWebhook removes org's webhook of an id, or returns storage.ErrNotFound. Nothing
// more is sent to it but what is on its way, and its deliveries are removed by [Registry.Tidy].
func (r *Registry) DeleteWebhook(ctx context.Context, org, id string) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		if err := tx.Delete(storage.WebhookKind, org, id); err != nil {
			return err
		}
		err := recount(tx, org, func(c *storage.Counts) error { return raise(&c.Webhooks, -1, "webhooks", 0) })
		if err != nil {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			o.Gone = append(o.Gone, id)
			return nil
		})
	})
}

// Tell stores the deliveries of events that happened in an update of org, to each of its
// webhooks that wants them. It belongs into the same update: what is committed is told,
// whatever fails afterwards, and nothing else is.
func Tell(tx storage.Tx, org string, at time.Time, events ...storage.Event) error {
	c, err := counts(tx, org)
	if err != nil || c.Webhooks == 0 {
		return err
	}
	hooks, err := webhooks(tx, org)
	if err != nil {
		return err
	}
	return changeOutbox(tx, org, func(o *storage.Outbox) error {
		return (&sorter{tx, org, at, o}).sort(hooks, events)
	})
}

// TellTest stores the delivery of a test to org's webhook of an id, whatever it wants, and
// returns the event's id; storage.ErrNotFound where there is no such webhook.
func (r *Registry) TellTest(ctx context.Context, org, id string, e storage.Event) (messageID string, err error) {
	return e.ID(org), r.update(ctx, org, func(tx storage.Tx) error {
		if _, err := storage.Webhooks.Get(tx, org, id); err != nil {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			return (&sorter{tx, org, e.At, o}).add(id, &e)
		})
	})
}

// Feed stores the deliveries of facts of a source, as [Tell] does, and that org's facts of
// the source have become events up to a position. It returns a *storage.LimitError, and
// stores nothing, while org has too many deliveries that are pending.
func (r *Registry) Feed(ctx context.Context, org, source, position string, at time.Time, events []storage.Event) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		hooks, err := webhooks(tx, org)
		if err != nil {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			if len(events) > 0 && o.Pending >= maxPending {
				return &storage.LimitError{What: "pending deliveries", Limit: maxPending}
			}
			if o.Positions == nil {
				o.Positions = make(map[string]string)
			}
			o.Positions[source] = position
			return (&sorter{tx, org, at, o}).sort(hooks, events)
		})
	})
}
