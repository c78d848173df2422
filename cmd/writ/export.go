package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/evidence"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

type exportCmd struct {
	Org         string `required:"" placeholder:"ORG" help:"Organization to export."`
	Out         string `required:"" short:"o" name:"out" placeholder:"FILE" help:"File to write, which must not exist."`
	Resume      bool   `help:"Go on with a file that an interrupted export has left."`
	storeFlags  `embed:""`
	serverFlags `embed:""`
	Data        datadir.Dir `placeholder:"DIR" help:"Data directory to read; no server may be using it. With --store mongodb its keys.jwks is added, if it is given."`
}

func (c *exportCmd) Help() string {
	return `Writes all that an organization has to a file: its policies, rules, agents,
hashes of API keys and plan, every row of its history with its receipt, what is
left of rows that retention has removed, and the public keys of the store. The
file is NDJSON, described in docs/move.md, and as sensitive as the store.

Nothing in the store changes. A directory must not be in use; of --store mongodb
the state of one moment is read while replicas go on, or newer ones where reading takes
longer than MongoDB keeps a state. A server that runs exports the
organization of an operator's credential with --url. Let nobody decide for the
organization here any more before the export that is imported elsewhere.

  writ export --org acme --data ./data -o acme.ndjson
  writ export --org acme --data ./data -o acme.ndjson --resume
  writ export --org acme --url https://writ.example -o acme.ndjson`
}

func (c *exportCmd) Validate() error {
	if c.URL == os.Getenv(envPrefix+"URL") && (c.Data != "" || c.Store == "mongodb") {
		c.URL = "" // the variable is for the other clients
	}
	switch server := c.URL != "" || c.Profile != ""; {
	case server && (c.Data != "" || c.Store == "mongodb"):
		return errors.New("want one of --data, --store mongodb and --url")
	case !server && c.Store != "mongodb" && c.Data == "":
		return errors.New("want --data DIR (or the variable WRIT_DATA), --store mongodb, or --url URL of a server")
	}
	return c.checkURI()
}

func (c *exportCmd) Run(ctx context.Context, s streams) (err error) {
	write, end, err := c.source(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	f, err := c.file()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	bar := newProgress(s.err)
	defer bar.end()
	written, err := write(f, bar)
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

// source returns a function that exports to a file, and one that releases what it reads.
func (c *exportCmd) source(
	ctx context.Context, s streams,
) (write func(*os.File, *progress) (transfer.Footer, error), end func() error, err error) {
	if c.URL != "" || c.Profile != "" {
		o, err := c.organization(s)
		return func(f *os.File, bar *progress) (transfer.Footer, error) { return c.receive(ctx, o, f, bar) },
			func() error { return nil }, err
	}
	keys, err := c.keys()
	if err != nil {
		return nil, nil, err
	}
	src, err := c.openReader(ctx, c.Data)
	if err != nil {
		return nil, nil, err
	}
	return func(f *os.File, bar *progress) (transfer.Footer, error) {
		return transfer.Export(ctx, src, f,
			transfer.ExportConfig{Organization: c.Org, Keys: keys, Now: time.Now, Progress: bar.show})
	}, src.Close, nil
}

// receive exports from a server.
func (c *exportCmd) receive(ctx context.Context, o organization, f *os.File, bar *progress) (transfer.Footer, error) {
	footer, err := transfer.Receive(ctx, f, c.Org, func(rows int) { bar.show("rows", rows, 0) },
		func(ctx context.Context, begun *transfer.Begun) (io.ReadCloser, error) {
			path := "/v1/organization/export"
			if begun != nil {
				path += "?" + url.Values{"export": {begun.ID}, "last": {begun.Last}, "after": {begun.After}}.Encode()
			}
			return o.Open(ctx, path)
		})
	var answer *workspace.AnswerError
	switch {
	case errors.Is(err, transfer.ErrNothing):
	case errors.As(err, &answer) && answer.Status == http.StatusForbidden:
		err = fmt.Errorf("an operator's token exports an organization: %w", err)
	case err != nil:
		err = fmt.Errorf("%w: --resume goes on", err)
	}
	return footer, err
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
