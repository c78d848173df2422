package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
	"writ.example/writ/storage/datadir"
)

type demoCmd struct{}

func (c *demoCmd) Help() string {
	return `Starts a server on a free port with everything in a temporary directory,
registers the policies and rules of examples/, evaluates each sample intent over
HTTP, and verifies each receipt offline. Exits 0 only when every decision is the
expected one and every receipt verifies.`
}

func (c *demoCmd) Run(ctx context.Context, s streams) (err error) {
	dir, err := os.MkdirTemp("", "writ-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	cfg, err := defaultServe()
	if err != nil {
		return err
	}
	cfg.Addr, cfg.AdminAddr, cfg.Data = "127.0.0.1:0", "127.0.0.1:0", datadir.Dir(dir)
	cfg.LogLevel = slog.LevelWarn
	n, err := openNode(ctx, cfg, s, nil)
	if err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- n.serve() }()
	demoErr := n.demo(ctx, s.out)
	return errors.Join(demoErr, n.shutdown(), <-stopped)
}

// demo runs the examples against the node over HTTP.
func (n *node) demo(ctx context.Context, out io.Writer) error {
	operator, err := operator.Sign(n.secret, examples.Organization, "demo", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	set, err := examples.Load()
	if err != nil {
		return err
	}
	d := &demo{out: out, colors: colorsFor(out), operator: newClient(n.url(), operator), trusted: n.trusted,
		set: set}
	d.operator.Transport = n.selfTransport()
	return d.run(ctx)
}
