package main

import (
	"context"
	"net/netip"
	"time"

	"writ/api/webhook"
)

// webhookFlags say in which networks webhooks may be.
type webhookFlags struct {
	Allow []netip.Prefix `name:"webhook-allow" sep:"," placeholder:"NETWORK" help:"Network that webhooks may be in though it is not public, such as 10.1.0.0/16, with plain HTTP, too. Can be given more than once."`
}

func (f webhookFlags) targets() webhook.Targets { return webhook.Targets{Allow: f.Allow} }

// tellWebhooks delivers events while this replica leads. approvalTTL is how long decisions are
// held.
func (n *node) tellWebhooks(ctx context.Context, f webhookFlags, approvalTTL time.Duration) error {
	approvals := webhook.NewApprovals(webhook.ApprovalsConfig{
		History: n.store, Entries: n.store.Entries, TTL: approvalTTL,
		Decided: func(ctx context.Context, org, id string) (bool, error) {
			v, err := n.ledger.Verdicts(ctx, org, id)
			return v.First != nil, err
		},
	})
	d, err := webhook.New(webhook.Config{
		Outboxes: n.docs, Leads: n.store.Leads, Targets: f.targets(), Agent: "writ", Log: n.log, Metrics: n.registry,
		Sources: []webhook.Source{approvals, webhook.NewUsage(n.service.Evaluations, nil)},
	})
	if err != nil {
		return err
	}
	unwatch := n.store.Watch(d.Changed)
	n.work.Go(func() {
		defer unwatch()
		d.Run(ctx)
	})
	return nil
}
