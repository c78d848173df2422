package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"writ.example/writ/api"
	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// wire makes the ledger and the API on top of the store.
func (n *node) wire(
	ctx context.Context, c *serveCmd, signer *receipt.Signer, plans map[string]engine.Plan, prepare prepareQuery,
	out io.Writer,
) (err error) {
	writer, err := c.writer()
	if err != nil {
		return err
	}
	if n.ledger, err = ledger.Open(ctx, ledger.Config{
		Store: n.store, Signer: signer, TTL: c.ReceiptTTL, Audit: c.Audit, Scrub: n.scrub, Writer: writer, Log: n.log,
		Metrics: n.registry, LeastRest: c.AuditAck.rest(),
	}); err != nil {
		return fmt.Errorf("opening the ledger: %w", err)
	}
	sales, err := c.Billing.open(n.docs, c.PortalURL, n.log)
	if err != nil {
		return err
	}
	decider, err := c.Core.open(n.registry, n.log)
	if err != nil {
		return err
	}
	if err := n.docs.PublishKeys(ctx, n.trusted); err != nil {
		return fmt.Errorf("publishing the public keys of receipts: %w", err)
	}
	tracer, err := n.openTraces(ctx, c.Traces)
	if err != nil {
		return err
	}
	if n.service, err = decision.Open(decision.Config{
		Store:             n.store,
		Ledger:            n.ledger,
		Scrub:             n.scrub,
		Metrics:           n.registry,
		Tracer:            tracer,
		Log:               n.log,
		Plans:             plans,
		RetentionGrace:    c.RetentionGrace,
		RequireRegistered: c.RequireRegisteredAgents,
		IntentAge:         c.IntentAge,
		ApprovalTTL:       c.ApprovalTTL,
		ApprovalDetail:    c.ApprovalDetail,
		CacheBytes:        c.CacheMB << 20,
		Slots:             processors(),
		Queue:             c.QueueDeadline,
		Core:              decider,
		CoreRules:         c.Core.Rules,
		VerifyEvery:       uint64(c.VerifyEngine),
		PrepareQuery:      prepare,
	}); err != nil {
		return err
	}
	cookies, err := c.consoleSecret(n.secret)
	if err != nil {
		return err
	}
	if n.server, err = api.New(api.Config{
		Decisions:    n.service,
		Operators:    c.auth(n.secret),
		JWKS:         n.jwks,
		Registry:     n.registry,
		Scrub:        n.scrub,
		Log:          n.log,
		Tracer:       tracer,
		Hosted:       n.hosted(c),
		ServiceToken: c.ServiceToken,
		Billing:      sales,
		RateLimits:   c.CallerLimits.rateLimits(),
		Webhooks:     c.Webhooks.targets(),
		Limits:       api.Limits{AddressConnections: c.CallerLimits.Connections},

		ConsoleSecret: cookies,
		Reload:        n.reload,
		Backup:        n.backupIn(c),
		Freeze:        n.freeze,
		Inspect:       n.inspect(c),
	}); err != nil {
		return err
	}
	ctx, n.stopWork = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.tellWebhooks(ctx, c.Webhooks, c.ApprovalTTL); err != nil {
		return err
	}
	if err := n.sendRows(ctx, c, out); err != nil {
		return err
	}
	n.work.Go(func() { n.signChanges(ctx) })
	n.work.Go(func() {
		n.nameUnfinished(ctx)
		n.nameUnreadable(ctx)
	})
	n.work.Go(func() { n.rotate(ctx, c.Data, cmp.Or(c.SigningKey, c.Data.SigningKey()), signer.KeyID()) })
	return nil
}
