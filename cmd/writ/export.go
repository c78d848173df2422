package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/evidence"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

type exportCmd struct {
	Org        string `required:"" placeholder:"ORG" help:"Organization to export."`
	Out        string `required:"" short:"o" name:"out" placeholder:"FILE" help:"File to write, which must not exist."`
	Resume     bool   `help:"Go on with a file that an interrupted export has left."`
	storeFlags `embed:""`
	Data       datadir.Dir `placeholder:"DIR" help:"Data directory to read; no server may be using it. With --store mongodb its keys.jwks is added, if it is given."`
}

func (c *exportCmd) Help() string {
	return `Writes all that an organization has to a file: its policies, rules, agents,
hashes of API keys and plan, every row of its history with its receipt, what is
left of rows that retention has removed, and the public keys of the store. The
file is NDJSON, described in docs/move.md, and as sensitive as the store.

Nothing in the store changes. A directory must not be in use; of --store mongodb
the state of one moment is read while replicas go on. Let nobody decide for the
organization here any more before the export that is imported elsewhere.

  writ export --org acme --data ./data -o acme.ndjson
  writ export --org acme --data ./data -o acme.ndjson --resume`
}

func (c *exportCmd) Validate() error {
	if c.Store != "mongodb" && c.Data == "" {
		return errors.New("want --data DIR (or the variable WRIT_DATA), or --store mongodb")
	}
	return c.checkURI()
}

func (c *exportCmd) Run(ctx context.Context, s streams) (err error) {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	src, err := c.openReader(ctx, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	f, err := c.file()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	bar := newProgress(s.err)
	defer bar.end()
	written, err := transfer.Export(ctx, src, f,
		transfer.ExportConfig{Organization: c.Org, Keys: keys, Now: time.Now, Progress: bar.show})
	bar.end()
	if errors.Is(err, transfer.ErrNothing) {
		err = fmt.Errorf("%w %q", err, c.Org)
		if !c.Resume {
			err = errors.Join(err, os.Remove(c.Out))
		}
		return err
	}
	if err == nil {
		err = datadir.Sync(filepath.Dir(c.Out))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Out, err)
	}
	fmt.Fprintf(s.out, "%s: whole: organization %q: %s\n%s: %s\n", c.Out, c.Org, carriedCounts(written), c.Out,
		written.Digest)
	return nil
}

// keys returns the public keys in the data directory, if there are any.
func (c *exportCmd) keys() (receipt.Keys, error) {
	data, err := os.ReadFile(c.Data.JWKS())
	if c.Data == "" || errors.Is(err, fs.ErrNotExist) {
		return receipt.Keys{}, nil
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return keys, &inputError{name: c.Data.JWKS(), err: err}
	}
	return keys, nil
}

// file opens the file. It makes a new file unless an export is resumed.
func (c *exportCmd) file() (*os.File, error) {
	if c.Resume {
		return os.OpenFile(c.Out, os.O_RDWR, 0)
	}
	f, err := os.OpenFile(c.Out, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf(
			"%s exists: --resume goes on with it if it is an unfinished export, else name another file", c.Out,
		)
	}
	return f, err
}

// carriedCounts formats the numbers of things in a file.
func carriedCounts(f transfer.Footer) string {
	return fmt.Sprintf("%s, %d settled, %s, %s", evidence.Count(int(f.Rows), "row"), f.Settled,
		evidence.Count(int(f.Removed), "removed row"), evidence.Count(int(f.Documents), "document"))
}
