package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api"
	"writ.example/writ/decision"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/plugs/envoy"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// node is a running process of a deployment. It has the store, the ledger and the server.
type node struct {
	log       *slog.Logger
	lines     lastLines // of the log
	scrub     *scrub.Tagger
	drain     time.Duration
	store     storage.Store
	docs      *registry.Registry // the documents in store
	registry  *prometheus.Registry
	ledger    *ledger.Ledger
	service   *decision.Service
	server    *api.Server
	api       net.Listener
	admin     net.Listener
	tls       *tlsfiles.Server // nil without TLS
	level     *slog.LevelVar   // of the log
	reloader  *reloader        // nil if the settings are not read again
	secret    []byte           // the secret of operator tokens
	trusted   receipt.Keys     // the keys that verify this deployment's receipts, and those in withdrawn
	withdrawn sync.Map         // ids of retired keys that no row needs, which are not published
	made      []ownKey         // the keys that this start has made
	lost      chan error       // receives the reason why the store cannot be used any more; then the process must exit

	envoy    *envoy.Server    // nil if Envoy is not served
	envoyTLS *tlsfiles.Server // nil if it is served without TLS

	endTraces func(context.Context) error // sends the last spans; nil without traces

	work     sync.WaitGroup // the work in the background
	stopWork context.CancelFunc
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

// shutdown finishes the accepted requests and closes everything.
func (n *node) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.drain)
	defer cancel()
	return n.close(ctx)
}

// close releases everything that was opened, in an order that lets accepted requests end. First
// it stops new requests, then the work in the background, then new decisions, and last the
// store.
func (n *node) close(ctx context.Context) error {
	var errs []error
	if n.envoy != nil {
		n.envoy.Shutdown(ctx) // it asks the server
	}
	if n.server != nil {
		errs = append(errs, n.server.Shutdown(ctx))
	}
	if n.service != nil {
		n.service.Close()
	}
	if n.stopWork != nil {
		n.stopWork()
		n.work.Wait()
	}
	if n.ledger != nil {
		errs = append(errs, n.ledger.Close(ctx))
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	if n.endTraces != nil {
		if err := n.endTraces(ctx); err != nil {
			n.log.Warn("the last spans are lost", "error", err)
		}
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
