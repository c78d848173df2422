package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/api"
	"writ/decision"
	"writ/engine"
	"writ/internal/scrub"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
	"writ/storage/registry"
)

// node is a running process of a deployment: its store, ledger and server.
type node struct {
	log      *slog.Logger
	scrub    *scrub.Tagger
	drain    time.Duration
	store    storage.Store
	docs     *registry.Registry // of store
	registry *prometheus.Registry
	ledger   *ledger.Ledger
	service  *decision.Service
	server   *api.Server
	signing  *task // of changes of documents
	namer    *task // of imports that are not finished, and of stored policies that no longer compile
	rotation *task // of the signing key
	webhooks *task // delivers events
	api      net.Listener
	admin    net.Listener
	secret   []byte       // of operator tokens
	trusted  receipt.Keys // that verify this deployment's receipts
	first    bool         // this start has made the signing key
	lost     chan error   // receives why the store cannot be used any more: the process must exit
}

// openNode opens the data directory and listens, so that the caller can print the
// addresses. It does not serve yet.
//
// Keys are made after everything else that can fail: after a start that fails because a
// port or the directory is in use, the next start is still the first.
//
// Prepare prepares the queries that c.VerifyEngine asks for.
func openNode(
	ctx context.Context, c *serveCmd, log io.Writer, level slog.Level, prepare prepareQuery,
) (_ *node, err error) {
	plans, err := plansIn(c.Plans)
	if err != nil {
		return nil, err
	}
	n := &node{drain: c.DrainTimeout, registry: newRegistry(), lost: make(chan error, 1)}
	scrubber, err := scrub.New()
	if err != nil {
		return nil, err
	}
	n.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level, ReplaceAttr: scrubber.ReplaceAttr}))
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close(ctx))
		}
	}()
	if err := n.listen(ctx, c); err != nil {
		return nil, err
	}
	if err := c.Data.Create(); err != nil {
		return nil, err
	}
	if n.store, err = c.openStore(ctx, n.log, n.registry, func(err error) { n.lost <- err }); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	n.docs = registry.New(n.store)
	if n.secret, err = c.Data.Secret(c.OperatorSecret); err != nil {
		return nil, err
	}
	if n.scrub, err = c.tagger(scrubber); err != nil {
		return nil, err
	}
	var signer *receipt.Signer
	if signer, n.trusted, n.first, err = c.Data.Signer(c.SigningKey); err != nil {
		return nil, err
	}
	for _, name := range c.exposed(c.Data) {
		n.log.Warn("others than its owner can read a secret: take it away from them with chmod 600", "file", name)
	}
	if err := n.wire(ctx, c, signer, plans, prepare); err != nil {
		return nil, err
	}
	return n, nil
}

// tagger returns scrubber with the keys of the tags that it writes.
func (c *serveCmd) tagger(scrubber *scrub.Scrubber) (*scrub.Tagger, error) {
	keys, err := c.Data.ScrubKeys(c.ScrubKey)
	if err != nil {
		return nil, err
	}
	t, err := scrubber.Tagger(keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(c.ScrubKey, c.Data.ScrubKey()), err)
	}
	return t, nil
}

func (n *node) listen(ctx context.Context, c *serveCmd) (err error) {
	var listen net.ListenConfig
	if n.api, err = listen.Listen(ctx, "tcp", c.Addr); err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	if n.admin, err = listen.Listen(ctx, "tcp", c.AdminAddr); err != nil {
		return fmt.Errorf("--admin-addr: %w", err)
	}
	return nil
}

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
		Auth:         c.auth(n.secret),
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
	if err := n.tellWebhooks(ctx, c.Webhooks, c.ApprovalTTL); err != nil {
		return err
	}
	n.signing = inBackground(ctx, n.signChanges)
	n.namer = inBackground(ctx, func(ctx context.Context) {
		n.nameUnfinished(ctx)
		n.nameUnreadable(ctx)
	})
	n.rotation = inBackground(ctx, func(ctx context.Context) {
		n.rotate(ctx, c.Data, cmp.Or(c.SigningKey, c.Data.SigningKey()), signer.KeyID())
	})
	return nil
}

// jwks returns the public keys that any process on this store has published; while
// the store can't be read, those of this one's data directory.
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

func (n *node) hosted(c *serveCmd) api.Hosted {
	h := api.Hosted{APIURL: c.APIURL, PortalURL: c.PortalURL}
	if h.APIURL == "" {
		h.APIURL = n.url()
	}
	return h
}

func (c *serveCmd) auth(secret []byte) api.AuthConfig {
	if c.OperatorAlg == "HS256" {
		return api.AuthConfig{Alg: c.OperatorAlg, Secret: secret}
	}
	return api.AuthConfig{Alg: c.OperatorAlg, JWKS: c.OperatorJWKS}
}

// serve answers requests until shutdown.
func (n *node) serve() error {
	failed := make(chan error, 2)
	go func() { failed <- n.server.Serve(n.api) }()
	go func() { failed <- n.server.ServeAdmin(n.admin) }()
	if err := <-failed; err != nil {
		return err
	}
	return <-failed
}

// shutdown finishes what was accepted and closes everything.
func (n *node) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.drain)
	defer cancel()
	return n.close(ctx)
}

// close releases what was opened, in the order that lets accepted requests end:
// no new requests, then no work in the background, then no new decisions, then the
// store.
func (n *node) close(ctx context.Context) error {
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Shutdown(ctx))
	}
	if n.service != nil {
		n.service.Close()
	}
	for _, background := range []*task{n.signing, n.namer, n.rotation, n.webhooks} {
		if background != nil {
			background.close()
		}
	}
	if n.ledger != nil {
		errs = append(errs, n.ledger.Close(ctx))
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	for _, ln := range []net.Listener{n.api, n.admin} {
		if ln != nil {
			if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
