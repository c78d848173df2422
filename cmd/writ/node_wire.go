package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"writ/api"
	"writ/decision"
	"writ/engine"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

// wire puts the ledger and the API on top of the store.
func (n *node) wire(
	ctx context.Context, c *serveCmd, signer *receipt.Signer, plans map[string]engine.Plan, prepare prepareQuery,
) (err error) {
	writer, err := c.writer()
	if err != nil {
		return err
	}
	if n.ledger, err = ledger.Open(ctx, ledger.Config{
		Store: n.store, Signer: signer, TTL: c.ReceiptTTL, Audit: c.Audit, Scrub: n.scrub, Writer: writer, Log: n.log,
		Metrics: n.registry,
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
	if n.service, err = decision.Open(decision.Config{
		Store:             n.store,
		Ledger:            n.ledger,
		Scrub:             n.scrub,
		Metrics:           n.registry,
		Log:               n.log,
		Plans:             plans,
		RetentionGrace:    c.RetentionGrace,
		RequireRegistered: c.RequireRegisteredAgents,
		ApprovalTTL:       c.ApprovalTTL,
		ApprovalDetail:    c.ApprovalDetail,
		CacheBytes:        c.CacheMB << 20,
		Slots:             processors(),
		Queue:             c.QueueDeadline,
		Core:              decider,
		VerifyEvery:       uint64(c.VerifyEngine),
		PrepareQuery:      prepare,
	}); err != nil {
		return err
	}
	if n.server, err = api.New(api.Config{
		Decisions:    n.service,
		Operators:    c.auth(n.secret),
		JWKS:         n.jwks,
		Registry:     n.registry,
		Scrub:        n.scrub,
		Log:          n.log,
		Hosted:       n.hosted(c),
		ServiceToken: c.ServiceToken,
		Billing:      sales,
		RateLimits:   c.CallerLimits.rateLimits(),
		Webhooks:     c.Webhooks.targets(),
		Limits:       api.Limits{AddressConnections: c.CallerLimits.Connections},
	}); err != nil {
		return err
	}
	ctx, n.stopWork = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.tellWebhooks(ctx, c.Webhooks, c.ApprovalTTL); err != nil {
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

// jwks returns the public keys that any process on this store has published. While the
// store can't be read, it returns the keys of this data directory.
func (n *node) jwks() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	published, err := n.docs.PublicKeys(ctx)
	if err != nil {
		n.log.Warn("the public keys that others sign with could not be read", "problem", err)
	}
	return n.trusted.With(published).JWKS()
}

// nameUnreadable logs every policy whose newest version an older writ accepted
// and this one does not compile: it denies until somebody registers another.
func (n *node) nameUnreadable(ctx context.Context) {
	err := n.docs.EachPolicy(ctx, func(p *engine.ActionPolicy) error {
		if _, err := engine.CompilePolicy(p); err != nil {
			n.log.Error("a stored policy no longer compiles and denies everything: register a version that does",
				"organization", p.OrganizationID, "policy", p.PolicyID, "version", p.Version, "problem", err)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		n.log.Error("could not look for stored policies that no longer compile", "error", err)
	}
}

// nameUnfinished logs every organization whose import is not finished: decisions that
// it had elsewhere may be missing, and an intent of one be decided again.
func (n *node) nameUnfinished(ctx context.Context) {
	err := n.store.View(ctx, func(r storage.Reader) error {
		return r.Scan(storage.Query{Kind: storage.ImportKind, Every: true},
			func(_ []byte, d storage.Document) (bool, error) {
				n.log.Error("the import of an organization is not finished: run writ import again, or with --abandon",
					"organization", d.Org)
				return true, nil
			})
	})
	if err != nil && ctx.Err() == nil {
		n.log.Error("could not look for imports that are not finished", "error", err)
	}
}
