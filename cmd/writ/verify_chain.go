package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/evidence"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

// chain verifies a whole history. An error that was not reported means that the history could
// not be read. That must not look like a broken history.
func (c *verifyCmd) chain(ctx context.Context, s streams) error {
	name, err := c.checkChain()
	if err != nil {
		return err
	}
	proof, err := c.prove(ctx, s)
	if broken := (*storage.BreakError)(nil); errors.As(err, &broken) {
		fmt.Fprintf(s.out, "%s: BROKEN: %v\n", name, broken)
		return errReported
	}
	if invalid := (*inputError)(nil); errors.As(err, &invalid) {
		return err
	}
	if err != nil {
		return &inputError{name: name, err: err}
	}
	anchored := proof.Unanchored < len(proof.Ends)
	if c.Resume != "" && len(proof.Ends) > 0 {
		var heads []byte
		if heads, err = evidence.Anchors(proof.Ends); err == nil {
			err = datadir.WriteFile(c.Resume, heads, os.Rename)
		}
		if err != nil {
			return err
		}
	}
	return evidence.Report(s.out, name, proof, evidence.Given{Remote: c.URL != "", Anchors: anchored,
		Resumed: anchored && c.Resume != "", Keys: c.Keys != ""})
}

// checkChain returns the name of the history. It returns an error if flags do not fit together.
func (c *verifyCmd) checkChain() (name string, err error) {
	if c.URL == os.Getenv(envPrefix+"URL") && (c.Data != "" || c.Store == "mongodb") {
		c.URL = "" // the variable is for the other clients
	}
	switch {
	case c.Anchor != "" && c.Resume != "":
		return "", &usageError{"--chain: want either --anchor or --resume"}
	case len(c.Receipts) > 0 || c.Intent != "" || c.Policy != "":
		return "", &usageError{"--chain verifies a whole history: want no receipts, --intent or --policy"}
	case c.checkURI() != nil:
		return "", &usageError{c.checkURI().Error()}
	case c.Store == "mongodb" && c.URL != "":
		return "", &usageError{"--chain: want either --url or --store mongodb"}
	case c.Store == "mongodb" && c.Keys == "" && c.Data == "":
		return "", &usageError{"--store mongodb: want --keys=FILE|URL, such as a replica's /.well-known/jwks.json"}
	case c.Store == "mongodb":
		return "MongoDB", nil
	case (c.Data == "") == (c.URL == "" && c.Profile == ""):
		return "", &usageError{"--chain: want either --data DIR or --url URL (or the variable WRIT_DATA or " +
			"WRIT_URL), or --store mongodb"}
	case c.Data != "":
		return string(c.Data), nil
	case c.Keys == "":
		return "", &usageError{"--url: want --keys=FILE|URL: which keys to trust is not for the server to say"}
	}
	p, err := c.profile()
	c.URL, c.APIKey = p.URL, p.Key
	return c.URL, err
}

// wholeHistory is a complete history. A server shows only a part.
type wholeHistory interface {
	ledger.History
	transfer.Source
	io.Closer
}

func (c *verifyCmd) prove(ctx context.Context, s streams) (_ ledger.Proof, err error) {
	cfg := ledger.ProveConfig{Partial: c.URL != ""}
	if cfg.Keys, err = c.trusted(ctx, s); err != nil {
		return ledger.Proof{}, err
	}
	if cfg.Anchors, err = c.anchors(s); err != nil {
		return ledger.Proof{}, err
	}
	cfg.Resume = c.Resume != "" && len(cfg.Anchors) > 0
	bar := newProgress(s.err)
	defer bar.end()
	cfg.Progress = bar.show
	if c.URL != "" {
		remote := &evidence.Remote{Each: newClient(c.URL, c.APIKey).Each}
		if cfg.Resume {
			remote.From = cfg.Anchors
		}
		return ledger.Prove(ctx, remote, cfg)
	}
	r, err := c.openReader(ctx, c.Data)
	if err != nil {
		return ledger.Proof{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return ledger.Prove(ctx, r, cfg)
}

// anchors returns the heads that were kept. A file to resume from may not be there yet.
func (c *verifyCmd) anchors(s streams) ([]receipt.SignedHead, error) {
	name := c.Anchor + c.Resume // one of them is empty
	if _, err := os.Stat(c.Resume); name == "" || c.Resume != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	data, err := readInput(s, name)
	if err != nil {
		return nil, err
	}
	heads, err := evidence.ParseAnchors(data)
	if err != nil {
		return nil, &inputError{name: name, err: err}
	}
	return heads, nil
}
