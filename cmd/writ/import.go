package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"writ/api"
	"writ/internal/scrub"
	"writ/storage"
	"writ/storage/datadir"
	"writ/storage/embedded"
	"writ/storage/evidence"
	"writ/storage/ledger"
	"writ/storage/mongodb"
	"writ/storage/receipt"
	"writ/storage/registry"
	"writ/storage/transfer"
)

type importCmd struct {
	File       string      `arg:"" optional:"" help:"File of writ export."`
	Abandon    bool        `help:"Take back what an unfinished import of --org has stored, instead of importing a file."`
	Org        string      `placeholder:"ID" help:"Organization whose import to abandon."`
	Plans      string      `placeholder:"FILE" help:"JSON object of the plans by name, as for serve: the organization's must be one."`
	Keys       string      `placeholder:"FILE|URL" help:"JSON Web Key Set of the keys of the source that are to be trusted, got another way than with the file."`
	Data       datadir.Dir `default:"./data" help:"Data directory, as for serve; no server may be using it, but with --store mongodb."`
	SigningKey string      `placeholder:"FILE" help:"Private key that signs the import, as for serve."`
	storeFlags `embed:""`
}

func (c *importCmd) Help() string {
	return `Takes in what writ export has written: documents, the history, public keys. First
the whole file is read: each row must be the one of its receipt and its audit
digest, signed by the given keys, and so must its settlement. The first line that
is not ends it, before anything is stored. Keys in the file are never trusted.

The store must have nothing of the organization. Interrupted, the command is run
again with the same file: what is stored stays, and the result is the same.
Imported rows are no part of the store's own chain: they are proved by one signed
entry, which is written last. Until then serve and verify --chain say that the
import is not finished.

What is not signed is as good as the file: documents, what is left of removed rows,
and that no row is missing. Compare the digest that export and import print.

  curl -s https://source.example/.well-known/jwks.json > source.jwks
  writ import acme.ndjson --keys source.jwks --data ./data

With --abandon the organization is as before the import: its rows, documents and
keys go, one signed entry says how many rows, and the removal of each document is
a signed change. What somebody else made or changed meanwhile stays and is named:
an agent that was disabled stays disabled, also for the next import.

  writ import --abandon --org acme --data ./data`
}

func (c *importCmd) Validate() error {
	switch {
	case c.Abandon && (c.Org == "" || c.File != "" || c.Keys != "" || c.Plans != ""):
		return errors.New("--abandon takes --org, and neither a file nor --keys or --plans")
	case !c.Abandon && c.Org != "":
		return errors.New("--org is for --abandon: a file names its organization")
	case !c.Abandon && (c.File == "" || c.Keys == ""):
		return errors.New("want a file and --keys")
	}
	return c.checkURI()
}

// Run checks the file and then stores it, or abandons what was stored.
func (c *importCmd) Run(ctx context.Context, s streams) error {
	if c.Abandon {
		return c.abandon(ctx, s)
	}
	keys, err := readKeys(ctx, s, c.Keys)
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return &inputError{name: c.File, err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // it was read alone
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &inputError{name: c.File,
			err: errors.New("it is no regular file, and is read twice: write it to one first")}
	}
	plans, err := plansIn(c.Plans)
	if err != nil {
		return err
	}
	bar := newProgress(s.err)
	defer bar.end()
	checked, err := transfer.Check(ctx, f, info.Size(), transfer.CheckConfig{
		Keys: keys, Scopes: api.Scopes(), Plans: slices.Sorted(maps.Keys(plans)), Progress: bar.show,
	})
	bar.end()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: interrupted while it was checked, nothing is stored: %w", c.File, err)
	}
	if err != nil {
		return &inputError{name: c.File, err: err}
	}
	entry, err := c.store(ctx, s, f, &checked, bar)
	bar.end()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	c.report(s.out, &checked, entry)
	return nil
}

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

// abandon takes back an import.
func (c *importCmd) abandon(ctx context.Context, s streams) error {
	bar := newProgress(s.err)
	defer bar.end()
	if _, err := os.Stat(c.Data.Store()); err != nil && c.Store == "embedded" {
		return &inputError{name: c.Data.Store(), err: errors.Unwrap(err)} // none is made
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

// target calls f with the store and a ledger on it.
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

// ledger opens a ledger on the store, which decides nothing, and returns what publishes
// keys in the store and the data directory.
func (c *importCmd) ledger(
	ctx context.Context, store storage.Store, log *slog.Logger,
) (l *ledger.Ledger, publish func(context.Context, receipt.Keys) error, err error) {
	signer, own, _, err := c.Data.Signer(c.SigningKey)
	if err != nil {
		return nil, nil, err
	}
	docs := registry.New(store)
	if err := docs.PublishKeys(ctx, own); err != nil {
		return nil, nil, fmt.Errorf("publishing the public keys of receipts: %w", err)
	}
	scrubber, err := scrub.New()
	if err != nil {
		return nil, nil, err
	}
	key := make([]byte, 32) // of tags that are never made
	rand.Read(key)          // never fails: it would crash the process
	tagger, err := scrubber.Tagger(key)
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

// report says what was imported, and what was not verified.
func (c *importCmd) report(w io.Writer, found *transfer.Checked, entry ledger.Import) {
	fmt.Fprintf(w, "%s: imported: organization %q: %s\n", c.File, entry.OrganizationID, carriedCounts(found.Footer))
	fmt.Fprintf(w, "%s: entry %s of %s, root %s\n", c.File, entry.ID, entry.ImportedAt.Format(time.RFC3339), entry.Root)
	fmt.Fprintf(w,
		"%s: %s: compare it with what the export printed: documents are not signed, nor is it that no row is missing\n",
		c.File, found.Footer.Digest)
	if found.Older > 0 {
		fmt.Fprintf(w,
			"%s: not verified: agent, action, resource, cost, metadata and times of %s from before there were audit "+
				"digests\n", c.File, evidence.Count(found.Older, "row"))
	}
	if found.Footer.Removed > 0 {
		fmt.Fprintf(w, "%s: not verified: what is left of %s, whose intents stay decided\n", c.File,
			evidence.Count(int(found.Footer.Removed), "removed row"))
	}
	if len(found.Untrusted) > 0 {
		fmt.Fprintf(w, "%s: not published: keys that the file names and --keys does not have: %s\n", c.File,
			strings.Join(found.Untrusted, ", "))
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
