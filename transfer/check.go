package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"writ/engine"
	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
)

// Checked is what Check has found a file to be.
type Checked struct {
	Header Header
	Footer Footer
	// Older is how many rows have no audit digest: of them, what [ledger.Payload]
	// returns is verified. Unsigned is how many settlements are from before settlements
	// were signed: they fit their decisions, no more.
	Older, Unsigned int
	// Keys are those that the header names and that are trusted.
	Keys receipt.Keys
	// Untrusted are the ids of the others.
	Untrusted []string

	chains map[[16]byte]bool // of the heads of rows and settlements
	counts storage.Counts    // of the documents
}

// Check reads a whole file and verifies each row and each settlement with keys, never
// with those that travel in the file. Its error is a *LineError, ErrNotWhole, or what
// kept it from reading. Progress is told how many MB of the file, whose size is in bytes,
// are read; it may be nil.
func Check(ctx context.Context, in io.Reader, size int64, keys receipt.Keys, progress func(what string, done, total int)) (Checked, error) {
	if progress == nil {
		progress = func(string, int, int) {}
	}
	c := checker{verifier: ledger.NewVerifier(keys), keys: keys}
	c.found.chains = make(map[[16]byte]bool)
	r := newReader(in)
	for n := 1; ; n++ {
		l, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			if c.state.footer == nil {
				return Checked{}, ErrNotWhole
			}
			c.found.Header, c.found.Footer = *c.state.header, *c.state.footer
			return c.found, nil
		case errors.Is(err, errPartial):
			return Checked{}, fmt.Errorf("line %d is not ended: %w", r.n+1, ErrNotWhole)
		case err != nil:
			return Checked{}, err
		}
		if n%1024 == 0 {
			progress("check", int(r.offset>>20), int(size>>20))
		}
		if err := cmp.Or(ctx.Err(), c.line(r, l)); err != nil {
			return Checked{}, err
		}
	}
}

type checker struct {
	verifier *ledger.Verifier
	keys     receipt.Keys
	state    state
	found    Checked
	policy   string // of the last version
}

func (c *checker) line(r *reader, l *line) error {
	if _, err := c.state.take(r, l); err != nil {
		return err
	}
	var err error
	switch {
	case l.Header != nil:
		err = c.trust(l.Header)
	case l.Row != nil:
		err = c.row(l.Row)
	case l.Document != nil:
		err = c.document(l.Document)
	}
	if err != nil {
		return &LineError{Line: r.n, DecisionID: l.id(), Err: err}
	}
	return nil
}

// document verifies that a document is one of the organization, and counts it.
func (c *checker) document(d *document) error {
	doc, err := d.stored(c.state.header.OrganizationID)
	if err != nil {
		return err
	}
	n := &c.found.counts
	switch doc.Kind {
	case storage.RuleKind:
		n.Rules++
	case storage.AgentKind:
		agent, err := storage.Agents.Parse(doc)
		if err != nil {
			return err
		}
		if n.Agents++; agent.Status == engine.AgentDisabled {
			n.Disabled++
		}
	case storage.PolicyKind:
		policy, err := storage.Policies.Parse(doc)
		if err != nil {
			return err
		}
		if n.VersionBytes += int64(len(doc.Value)); policy.PolicyID != c.policy { // versions of a policy follow each other
			n.Policies++
		}
		c.policy = policy.PolicyID
	}
	return nil
}

// trust finds which keys of the header are trusted.
func (c *checker) trust(h *Header) error {
	keys, err := receipt.ParseKeys(h.Keys)
	if err != nil {
		return err
	}
	for _, id := range keys.IDs() {
		switch trusted := c.keys.Only(id); {
		case len(trusted.IDs()) == 0:
			c.found.Untrusted = append(c.found.Untrusted, id)
		case string(trusted.JWKS()) != string(keys.Only(id).JWKS()):
			return fmt.Errorf("its key %q is another than the trusted one of this id", id)
		default:
			c.found.Keys = c.found.Keys.With(trusted)
		}
	}
	return nil
}

// row verifies a row.
func (c *checker) row(r *storage.Record) error {
	if err := c.verifier.Verify(r); err != nil {
		return err
	}
	if r.AuditDigest == "" {
		c.found.Older++
	}
	signed := []receipt.Inclusion{r.Receipt.Inclusion()}
	if s := r.Settlement; s != nil && s.Receipt != nil {
		signed = append(signed, *s.Receipt)
	} else if s != nil {
		c.found.Unsigned++
	}
	for _, in := range signed {
		chain, err := in.Chain()
		if err != nil {
			return err
		}
		c.found.chains[chain] = true
		if !slices.Contains(c.found.Keys.IDs(), in.KeyID) {
			c.found.Keys = c.found.Keys.With(c.keys.Only(in.KeyID)) // the header need not name it
		}
	}
	return nil
}

// ownChain returns why what was checked can't be imported into a store that has a
// chain.
func (c *Checked) ownChain(chain [16]byte) error {
	if !c.chains[chain] {
		return nil
	}
	return fmt.Errorf("the store has chain %x itself, under which rows of the file are: it is the one they were exported from, or a copy of it", chain)
}
