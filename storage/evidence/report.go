package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// ParseAnchors reads heads, one on each line. If data is or contains a receipt, ParseAnchors
// returns the head of that receipt.
func ParseAnchors(data []byte) (heads []receipt.SignedHead, err error) {
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
	held, heldErr := Parse(data)
	if heldErr == nil {
		var h receipt.SignedHead
		if h, heldErr = held.Receipt.SignedHead(); heldErr == nil {
			return []receipt.SignedHead{h}, nil
		}
	}
	return nil, fmt.Errorf("want heads, one a line, a receipt or what holds one: %w", cmp.Or(err, heldErr))
}

// Given says which inputs a proof used.
type Given struct {
	Remote  bool // a server showed the history
	Anchors bool
	Resumed bool // only what was signed after the anchors was verified
	Keys    bool // the caller gave the keys; they are not from the data directory
}

// Report writes which statements about a history were proved, and which were not. name is the name
// of the history. The last lines are the last head of each chain, to be kept as anchors.
func Report(w io.Writer, name string, p ledger.Proof, given Given) error {
	note := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(w, "%s: %s\n", name, fmt.Sprintf(format, args...))
		}
	}
	what := "whole"
	if given.Resumed {
		what = "whole since the anchors"
	}
	note(true, what+": %s", counts(p))
	note(given.Resumed, "not proved: what was signed up to the anchors, meters and indexes: verify without --resume "+
		"from time to time")
	note(given.Resumed && given.Remote, "not proved: settlements since the anchors of rows that were decided earlier")
	note(!given.Remote, "of %s", Count(p.Organizations, "organization"))
	note(!given.Anchors, "not proved: that this is not an older copy, or one that was signed anew: give --anchor")
	note(given.Anchors && p.Unanchored > 0,
		"not proved: that %d of %s are no older copies: --anchor takes a head of each, one a line",
		p.Unanchored, Count(len(p.Ends), "chain"))
	note(p.Renewed > 0, "read in %s, because MongoDB keeps a state for minSnapshotHistoryWindowInSeconds: "+
		"all that was signed before the first is there; the months of rows that were removed meanwhile are not proved",
		Count(p.Renewed+1, "state"))
	note(!given.Keys, "not proved: that the keys are the right ones: they are the directory's own; give --keys")
	note(p.Waiting > 0,
		"not proved: %s of documents that the server had not signed yet, the newest of %s %q of organization %q",
		Count(p.Waiting, "change"), p.NewestWaiting.Kind, p.NewestWaiting.ID, p.NewestWaiting.OrganizationID)
	note(p.Older > 0,
		"not proved: agent, action, resource, cost, metadata and times of %s from before there were audit digests",
		Count(p.Older, "row"))
	say := "say"
	if p.Verdicts == 1 {
		say = "says"
	}
	note(p.Verdicts > 0, "not proved: what %s %s, but for the decisions that they are on", Count(p.Verdicts, "verdict"),
		say)
	note(given.Remote, "not proved: that no row is missing: a server shows the rows of one organization")
	note(p.Unlisted > 0, "%s under heads that are not listed, young ones or other stores': each verified by itself",
		Count(p.Unlisted, "row"))
	f := p.Foreign
	note(f.Organizations > 0,
		"%s that %s imported, with %s, under heads of other stores, and what was left of %s: all that their import "+
			"entries sign",
		Count(f.Rows, "row"), Count(f.Organizations, "organization"), Count(f.Settled, "settlement"),
		Count(f.Removed, "removed row"))
	for _, org := range p.Unfinished {
		note(
			true, "not proved: that no imported row of organization %q is missing or one too many: its import is "+
				"not finished: run writ import again", org,
		)
	}
	note(p.Removed > 0, "%s that retention removed, as it had announced, the newest decided at %s",
		Count(p.Removed, "row"), decidedAt(p.NewestRemoved))
	heads, err := Anchors(p.Ends)
	if err == nil {
		_, err = w.Write(heads)
	}
	return err
}

// Anchors returns heads as [ParseAnchors] reads them.
func Anchors(heads []receipt.SignedHead) (text []byte, err error) {
	for _, h := range heads {
		head, err := json.Marshal(h)
		if err != nil {
			return nil, fmt.Errorf("encoding a head: %w", err)
		}
		text = append(append(text, head...), '\n')
	}
	return text, nil
}

// decidedAt returns the time that is part of a decision id.
func decidedAt(decisionID string) string {
	id, err := uuid.Parse(decisionID)
	if err != nil {
		return "an unknown time"
	}
	return time.Unix(id.Time().UnixTime()).UTC().Format(time.RFC3339)
}

// counts returns the counts of a proof in short form. A line of 100 columns has room for the name
// and for the counts of 1,000,000 decisions. "9 removals of 9999" means nine retention entries for
// 9,999 rows that left a tombstone.
func counts(p ledger.Proof) string {
	said := fmt.Sprintf("%s, %s, %s, %d settled, %s, %s of %d", Count(len(p.Ends), "chain"), Count(p.Heads, "head"),
		Count(p.Rows, "decision"),
		p.Settled, Count(p.Changes, "change"), Count(p.Removals, "removal"), p.Removed)
	if p.Verdicts > 0 {
		said += ", " + Count(p.Verdicts, "verdict")
	}
	return said
}

// Count returns a number with a noun, such as "1 head". The noun gets an s unless n is 1.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
