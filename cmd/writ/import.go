package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"writ.example/writ/api"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/transfer"
)

type importCmd struct {
	File       string      `arg:"" optional:"" help:"File of writ export."`
	Abandon    bool        `env:"-" help:"Take back what an unfinished import of --org has stored, instead of importing a file."`
	Org        string      `placeholder:"ID" help:"Organization whose import to abandon."`
	Unreadable bool        `env:"-" help:"Import stored policies and rules that do not compile, too: they deny or tighten, as at the source."`
	Plans      string      `placeholder:"FILE" help:"JSON object of the plans by name, as for serve: the organization's must be one."`
	Keys       string      `placeholder:"FILE|URL" help:"JSON Web Key Set of the source's keys to trust, from another place than the file."`
	Data       datadir.Dir `default:"./data" help:"Data directory, as for serve; no server may be using it, but with --store mongodb."`
	SigningKey string      `placeholder:"FILE" help:"Private key that signs the import, as for serve."`
	storeFlags `embed:""`
}

func (c *importCmd) Help() string {
	return `Takes in what writ export has written: documents, the history, public keys. First
the whole file is read: each row must be the one of its receipt and its audit
digest, signed by the given keys, and so must its settlement. The first line that
is not ends it, before anything is stored. Keys in the file are never trusted.

A document passes the checks of its endpoint, or the import ends before anything is
stored: an unknown member, a bad id, a pattern that does not compile. Policies and
rules that an older writ has accepted may not compile any more: with --unreadable
they are imported as they are, and named.

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
	case c.Abandon && (c.Org == "" || c.File != "" || c.Keys != "" || c.Plans != "" || c.Unreadable):
		return errors.New("--abandon takes --org, and neither a file nor --keys, --plans or --unreadable")
	case !c.Abandon && c.Org != "":
		return errors.New("--org is for --abandon: a file names its organization")
	case !c.Abandon && (c.File == "" || c.Keys == ""):
		return errors.New("want a file and --keys")
	}
	return c.checkURI()
}

// Run checks the file and then stores it. With --abandon, Run removes what an import has
// stored.
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
	defer f.Close() //nolint:errcheck // the file was only read
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
	tagger, err := untagged()
	if err != nil {
		return err
	}
	checked, err := transfer.Check(ctx, f, info.Size(), transfer.CheckConfig{
		Keys: keys, Unreadable: c.Unreadable,
		Validate: (&api.Imported{Scrub: tagger, Conditions: conditions()}).Validate,
		Plans:    slices.Sorted(maps.Keys(plans)), Progress: bar.show,
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
