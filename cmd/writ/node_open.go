package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"writ.example/writ/api"
	"writ.example/writ/api/operator"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// openNode opens the data directory and listens, so that the caller can print the addresses. It
// does not serve yet.
//
// openNode makes keys last, after everything else that can fail. If a start fails because a
// port or the directory is in use, the next start still counts as the first.
//
// prepare prepares the queries that c.VerifyEngine needs.
func openNode(
	ctx context.Context, c *serveCmd, s streams, prepare prepareQuery,
) (_ *node, err error) {
	plans, err := plansIn(c.Plans)
	if err != nil {
		return nil, err
	}
	n := &node{drain: c.DrainTimeout, registry: newRegistry(), level: new(slog.LevelVar), lost: make(chan error, 1)}
	scrubber, err := scrub.New()
	if err != nil {
		return nil, err
	}
	n.level.Set(c.LogLevel)
	n.log = c.logger(io.MultiWriter(s.err, &n.lines), n.level, scrubber)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close(ctx))
		}
	}()
	if n.tls, err = c.TLS.open(); err != nil {
		return nil, err
	}
	if err := n.listen(ctx, c); err != nil {
		return nil, err
	}
	n.warnOfPlainHTTP(c)
	if err := c.Data.Create(); err != nil {
		return nil, err
	}
	if n.store, err = c.openStore(ctx, n.log, n.registry, func(err error) { n.lost <- err }); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	n.docs = registry.New(n.store)
	made := c.missing(c.Data)
	if n.secret, err = c.Data.Secret(c.OperatorSecret); err != nil {
		return nil, err
	}
	if n.scrub, err = c.tagger(scrubber); err != nil {
		return nil, err
	}
	if err := c.shareKeys(ctx, n.store, n.secret); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	var signer *receipt.Signer
	if signer, n.trusted, err = c.Data.Signer(c.SigningKey); err != nil {
		return nil, err
	}
	n.made = made
	for _, name := range c.exposed(c.Data) {
		n.log.Warn("others than its owner can read a secret: run chmod 600 on it", "file", name)
	}
	if err := n.wire(ctx, c, signer, plans, prepare, s.out); err != nil {
		return nil, err
	}
	return n, nil
}

// logger returns the log of the server. Its lines are scrubbed.
func (c *serveCmd) logger(w io.Writer, level slog.Leveler, scrubber *scrub.Scrubber) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: scrubber.ReplaceAttr}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// tagger returns a Tagger for scrubber, with the keys of its tags.
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
	if n.tls != nil {
		n.api, n.admin = n.tls.Listener(n.api), n.tls.Listener(n.admin)
	}
	return nil
}

func (n *node) hosted(c *serveCmd) api.Hosted {
	h := api.Hosted{APIURL: c.APIURL, PortalURL: c.PortalURL}
	if h.APIURL == "" {
		h.APIURL = n.url()
	}
	return h
}

func (c *serveCmd) auth(secret []byte) operator.Config {
	if c.OperatorAlg == "HS256" {
		return operator.Config{Alg: c.OperatorAlg, Secret: secret}
	}
	return operator.Config{Alg: c.OperatorAlg, JWKS: c.OperatorJWKS}
}

// consoleSecret returns a secret that all replicas share. They share the secret of operator tokens if it verifies
// these, and always the scrub key.
func (c *serveCmd) consoleSecret(operators []byte) ([]byte, error) {
	if c.OperatorAlg == "HS256" {
		return operators, nil
	}
	keys, err := c.Data.ScrubKeys(c.ScrubKey)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}
