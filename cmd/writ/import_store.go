package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/evidence"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

func (c *importCmd) store(
	ctx context.Context, s streams, f io.ReadSeeker, checked *transfer.Checked, bar *progress,
) (entry ledger.Import, err error) {
	if err := c.Data.Create(); err != nil {
		return entry, err
	}
	err = c.target(ctx, s, bar, func(t transfer.Target) (err error) {
		entry, err = transfer.Import(ctx, t, f, checked)
		return err
	})
	return entry, err
}

// abandon removes what an import has stored.
func (c *importCmd) abandon(ctx context.Context, s streams) error {
	bar := newProgress(s.err)
	defer bar.end()
	if _, err := os.Stat(c.Data.Store()); err != nil && c.Store == "embedded" {
		return &inputError{name: c.Data.Store(), err: errors.Unwrap(err)} // no store is made
	}
	var done transfer.Abandoned
	err := c.target(ctx, s, bar, func(t transfer.Target) (err error) {
		done, err = transfer.Abandon(ctx, t, c.Org)
		return err
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("organization %q: %w", c.Org, err)
	}
	fmt.Fprintf(s.out,
		"organization %q: the import of the export %s is abandoned: %s, what was left of %s, and %s are removed\n",
		c.Org, done.Signed.ExportID,
		evidence.Count(int(done.Signed.Rows), "row"), evidence.Count(int(done.Signed.Removed), "removed row"),
		evidence.Count(done.Documents, "document"))
	fmt.Fprintf(s.out, "organization %q: entry %s of %s\n", c.Org, done.Signed.ID,
		done.Signed.AbandonedAt.Format(time.RFC3339))
	for _, k := range done.Kept {
		fmt.Fprintf(s.out, "organization %q: the %s %q stays: %s has changed it\n", c.Org, k.Kind, k.ID, k.Actor)
	}
	return nil
}

// target opens the store and a ledger on it, and calls f with both.
func (c *importCmd) target(ctx context.Context, s streams, bar *progress, f func(transfer.Target) error) (err error) {
	log := quietLogger(s.err)
	store, err := c.open(ctx, c.Data, embedded.Options{Log: log}, mongodb.Options{Log: log})
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	l, publish, err := c.ledger(ctx, store, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	return f(transfer.Target{Store: store, Ledger: l, Publish: publish, Now: time.Now, Progress: bar.show})
}

// ledger opens a ledger that makes no decisions. It also returns a function that publishes keys
// in the store and in the data directory.
func (c *importCmd) ledger(
	ctx context.Context, store storage.Store, log *slog.Logger,
) (l *ledger.Ledger, publish func(context.Context, receipt.Keys) error, err error) {
	signer, own, err := c.Data.Signer(c.SigningKey)
	if err != nil {
		return nil, nil, err
	}
	docs := registry.New(store)
	if err := docs.PublishKeys(ctx, own); err != nil {
		return nil, nil, fmt.Errorf("publishing the public keys of receipts: %w", err)
	}
	tagger, err := untagged()
	if err != nil {
		return nil, nil, err
	}
	l, err = ledger.Open(ctx, ledger.Config{Store: store, Signer: signer, Scrub: tagger, Log: log})
	return l, func(ctx context.Context, keys receipt.Keys) error {
		if _, err := c.Data.Trust(keys); err != nil {
			return err
		}
		return docs.PublishKeys(ctx, keys)
	}, err
}

// untagged returns a Tagger that finds secrets. Its tags are of no use, because its key is random.
func untagged() (*scrub.Tagger, error) {
	scrubber, err := scrub.New()
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails: a failure would crash the process
	return scrubber.Tagger(key)
}
