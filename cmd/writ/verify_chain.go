package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/mattn/go-isatty"

	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
	"writ/storage/transfer"
)

// chain verifies a whole history. Every error but the reported ones is that the
// history could not be read, which must not look like a broken one.
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
	return c.report(s.out, name, proof)
}

// checkChain returns what the history is called, or which flags make no sense.
func (c *verifyCmd) checkChain() (name string, err error) {
	switch {
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
	case (c.Data == "") == (c.URL == ""):
		return "", &usageError{"--chain: want either --data DIR or --url URL (or the variable WRIT_DATA or " +
			"WRIT_URL), or --store mongodb"}
	case c.Data != "":
		return string(c.Data), nil
	case c.APIKey == "":
		return "", &usageError{"--url: want a key of the scope history:read in WRIT_API_KEY"}
	case c.Keys == "":
		return "", &usageError{"--url: want --keys=FILE|URL: which keys to trust is not for the server to say"}
	}
	return c.URL, nil
}

// wholeHistory is one that is all there, not what a server shows of it.
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
	if c.Anchor != "" {
		if cfg.Anchors, err = c.readAnchors(s); err != nil {
			return ledger.Proof{}, err
		}
	}
	bar := newProgress(s.err)
	defer bar.end()
	cfg.Progress = bar.show
	if c.URL != "" {
		return ledger.Prove(ctx, &remote{client: client{base: strings.TrimRight(c.URL, "/"), token: c.APIKey}}, cfg)
	}
	r, err := c.openReader(ctx, c.Data)
	if err != nil {
		return ledger.Proof{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return ledger.Prove(ctx, r, cfg)
}

// readAnchors reads heads, one a line, or the one that a receipt stands under.
func (c *verifyCmd) readAnchors(s streams) (heads []receipt.SignedHead, err error) {
	data, err := readInput(s, c.Anchor)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var h receipt.SignedHead
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if h, err = receipt.ParseHead(line); err != nil {
			break
		}
		heads = append(heads, h)
	}
	if err == nil && len(heads) > 0 {
		return heads, nil
	}
	d, receiptErr := parseHeld(data)
	if receiptErr == nil {
		var h receipt.SignedHead
		if h, receiptErr = d.receipt.SignedHead(); receiptErr == nil {
			return []receipt.SignedHead{h}, nil
		}
	}
	return nil, &inputError{name: c.Anchor, err: fmt.Errorf(
		"want heads, one a line, a receipt or what holds one: %w", cmp.Or(err, receiptErr),
	)}
}

// report says what was proved and what was not. Its last lines are the last head of
// each chain, to be kept as anchors.
func (c *verifyCmd) report(w io.Writer, name string, p ledger.Proof) error {
	note := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(w, "%s: %s\n", name, fmt.Sprintf(format, args...))
		}
	}
	note(true, "whole: %s", counts(p))
	note(c.URL == "", "of %s", count(p.Organizations, "organization"))
	note(c.Anchor == "", "not proved: that this is not an older copy, or one that was signed anew: give --anchor")
	note(c.Anchor != "" && p.Unanchored > 0,
		"not proved: that %d of %s are no older copies: --anchor takes a head of each, one a line",
		p.Unanchored, count(len(p.Ends), "chain"))
	note(c.Keys == "", "not proved: that the keys are the right ones: they are the directory's own; give --keys")
	note(p.Waiting > 0,
		"not proved: %s of documents that the server had not signed yet, the newest of %s %q of organization %q",
		count(p.Waiting, "change"), p.NewestWaiting.Kind, p.NewestWaiting.ID, p.NewestWaiting.OrganizationID)
	note(p.Older > 0,
		"not proved: agent, action, resource, cost, metadata and times of %s from before there were audit digests",
		count(p.Older, "row"))
	note(p.Verdicts > 0, "not proved: what %s, but for the decisions that they are on", say(p.Verdicts, "verdict"))
	note(c.URL != "", "not proved: that no row is missing: a server shows the rows of one organization")
	note(p.Unlisted > 0, "%s under heads that are not listed, young ones or other stores': each verified by itself",
		count(p.Unlisted, "row"))
	f := p.Foreign
	note(f.Organizations > 0,
		"%s that %s imported, with %s, under heads of other stores, and what was left of %s: all that their import "+
			"entries sign",
		count(f.Rows, "row"), count(f.Organizations, "organization"), count(f.Settled, "settlement"),
		count(f.Removed, "removed row"))
	for _, org := range p.Unfinished {
		note(
			true, "not proved: that no imported row of organization %q is missing or one too many: its import is "+
				"not finished: run writ import again", org,
		)
	}
	note(p.Removed > 0, "%s that retention removed, as it had announced, the newest decided at %s",
		count(p.Removed, "row"), decidedAt(p.NewestRemoved))
	for _, end := range p.Ends {
		head, err := json.Marshal(end)
		if err != nil {
			return fmt.Errorf("encoding the last head: %w", err)
		}
		fmt.Fprintf(w, "%s\n", head)
	}
	return nil
}

// decidedAt returns the time in a decision id.
func decidedAt(decisionID string) string {
	id, err := uuid.Parse(decisionID)
	if err != nil {
		return "an unknown time"
	}
	return time.Unix(id.Time().UnixTime()).UTC().Format(time.RFC3339)
}

// counts says what was proved, in few words: a line of 100 columns has room for the
// name and a history of 1,000,000 decisions. A removal is a retention entry and what it
// is of are the rows that left a tombstone.
func counts(p ledger.Proof) string {
	said := fmt.Sprintf("%s, %s, %s, %d settled, %s, %s of %d", count(len(p.Ends), "chain"), count(p.Heads, "head"),
		count(p.Rows, "decision"),
		p.Settled, count(p.Changes, "change"), count(p.Removals, "removal"), p.Removed)
	if p.Verdicts > 0 {
		said += ", " + count(p.Verdicts, "verdict")
	}
	return said
}

// say is count with a verb.
func say(n int, what string) string {
	if n == 1 {
		return "1 " + what + " says"
	}
	return count(n, what) + " say"
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	shown bool // on a terminal

	mu   sync.Mutex
	next time.Time // when to draw again
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, shown: ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"}
}

const (
	barWidth   = 30
	eraseLine  = "\r\x1b[K"
	drawnEvery = 100 * time.Millisecond
)

// show draws the bar, at most ten times a second.
func (p *progress) show(what string, done, total int) {
	if !p.shown {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(drawnEvery)
	if total <= done {
		fmt.Fprintf(p.w, "%s%-5s %d", eraseLine, what, done)
		return
	}
	full := done * barWidth / total
	fmt.Fprintf(p.w, "%s%-5s %s%s %d of %d", eraseLine, what, strings.Repeat("█", full),
		strings.Repeat("░", barWidth-full), done, total)
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, eraseLine)
	}
}
