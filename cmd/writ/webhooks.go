package main

import (
	"context"
	"net/netip"
	"time"

	"writ.example/writ/api/webhook"
	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
)

// webhookFlags say in which networks webhooks may be.
type webhookFlags struct {
	Allow []netip.Prefix `name:"webhook-allow" sep:"," placeholder:"NETWORK" help:"Network that webhooks may be in though it is not public, such as 10.1.0.0/16, with plain HTTP, too. Can be given more than once."`

	Decisions int `name:"webhook-decisions" default:"60" help:"How many events decision.denied, and decision.approved_by_rule, an organization's webhooks get in a minute. The decisions beyond are one event with their number."`
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
	decisions := webhook.NewDecisions(n.docs, f.Decisions, nil)
	follower, err := decisionlog.Open(ctx, decisionlog.Config{
		History: n.store, Positions: n.docs, Sink: decisions, Name: "webhooks", Wanted: decisions.Wanted, Log: n.log,
		Encode: func(*storage.Record) ([]byte, error) { return nil, nil }, // only the row is used
	})
	if err != nil {
		return err
	}
	n.work.Go(func() { follower.Run(ctx) })
	unwatch := n.store.Watch(d.Changed)
	n.work.Go(func() {
		defer unwatch()
		d.Run(ctx)
	})
	return nil
}
