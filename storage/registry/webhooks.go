package registry

import (
	"context"
	"time"

	"writ.example/writ/storage"
)

const (
	// maxWebhooks bounds the webhooks of an organization, because each event is stored once for
	// each webhook that wants it.
	maxWebhooks = 20
	// maxPending bounds an organization's sessions and, separately, its pending deliveries. That
	// many deliveries take about 100 MB. At the bound, further events are not made until
	// deliveries end. The facts remain in the history. At most maxPending/5 ended deliveries are
	// kept.
	maxPending = 100_000
)

// PutWebhook stores a new webhook. It returns a *storage.LimitError if org already has
// maxWebhooks webhooks.
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

// Webhook returns org's webhook with an id, or storage.ErrNotFound.
func (r *Registry) Webhook(ctx context.Context, org, id string) (*storage.Webhook, error) {
	return get(ctx, r, storage.Webhooks, org, id)
}

// ListWebhooks returns org's webhooks by id, which is the order of their creation.
func (r *Registry) ListWebhooks(
	ctx context.Context, org string, p storage.Page,
) (hooks []*storage.Webhook, next string, err error) {
	return list(ctx, r, storage.Webhooks, org, storage.ByID, p, all)
}

func webhooks(tx storage.Reader, org string) ([]*storage.Webhook, error) {
	return every(tx, storage.Webhooks, storage.Query{Org: org})
}

// RotateWebhook gives a webhook of org a new secret and returns the webhook, or
// storage.ErrNotFound. Until the given time, deliveries are signed with the previous secret, too.
// Older secrets are removed.
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

// DeleteWebhook removes a webhook of org, or returns storage.ErrNotFound. Attempts that have begun
// are finished. No new attempts begin. [Registry.Tidy] removes the webhook's deliveries later.
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

// Tell stores a delivery of each event to each webhook of org that wants the event. The events
// must describe the changes that tx commits. Both are committed together, so exactly the
// committed changes are delivered.
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

// TellTest stores a delivery of the test event e to a webhook of org. It returns the event's id, or
// storage.ErrNotFound.
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

// Feed stores the deliveries of a source's events, like [Tell]. It also stores position: all
// facts of the source up to position have become events. If org then had too many pending
// deliveries, Feed stores nothing and returns a *storage.LimitError.
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
