package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// Checked is the result of Check.
type Checked struct {
	Header Header
	Footer Footer
	// Older is the number of rows without an audit digest. Check verifies only the
	// payload of these rows: see [ledger.Payload].
	Older int
	// Keys are the trusted keys of the header.
	Keys receipt.Keys
	// Untrusted are the ids of the header's untrusted keys.
	Untrusted []string
	// Unreadable has a *LineError for each policy and each rule that does not compile.
	Unreadable []error

	chains map[[16]byte]bool // chains of the heads that sign rows and settlements
	// runs has a digest for each run except the last. A run is a group of lines that Import
	// stores in one write. A digest covers all lines up to the end of its run. Import compares
	// the digests, so it stores only lines that Check has read.
	runs []string
}

// CheckConfig configures [Check].
type CheckConfig struct {
	// Keys are the trusted keys. They must not come from the file.
	Keys receipt.Keys
	// Validate decodes and validates a document like the API endpoint for its kind. It returns
	// the names of the lists that a rule uses. If all members of a policy or a rule exist, but it
	// does not compile, the error is an *[UnreadableError].
	Validate func(storage.Document) (lists []string, err error)
	// Unreadable accepts policies and rules that do not compile. A running store treats stored
	// ones in the same way: such a policy denies everything, and such a rule restricts like a
	// rule whose condition fails.
	Unreadable bool
	// Plans are the names of the plans that the target knows.
	Plans []string
	// Progress counts megabytes of the file.
	Progress ledger.Progress
}

// UnreadableError says that a policy or a rule does not compile, although each of its members
// exists. An earlier release may have accepted the document.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Check reads a whole file of size bytes. It verifies each row and each settlement with the keys
// of cfg, never with the file's own keys. It returns a *LineError, ErrNotWhole, or an error from
// reading.
func Check(ctx context.Context, in io.Reader, size int64, cfg CheckConfig) (Checked, error) {
	c := checker{CheckConfig: cfg, verifier: ledger.NewVerifier(cfg.Keys), details: make(map[string]string),
		relations: newRelations(), origins: make(map[string]bool), ofOrigins: make(map[[16]byte]bool)}
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
			cfg.Progress.Tell("check", int(r.offset>>20), int(size>>20))
		}
		if err := cmp.Or(ctx.Err(), c.line(r, l)); err != nil {
			return Checked{}, err
		}
	}
}

type checker struct {
	CheckConfig
	verifier *ledger.Verifier
	state    state
	run      run
	found    Checked
	details  map[string]string // digests of details in the rows, by decision id
	relations
	origins   map[string]bool   // ids
	ofOrigins map[[16]byte]bool // chains
	// newer is the revision before, in the order of the file.
	newer *storage.Revision
}

func (c *checker) line(r *reader, l *line) error {
	if _, err := c.state.take(r, l); err != nil {
		return err
	}
	if c.run.endsBefore(l, len(r.buf)) {
		c.found.runs = append(c.found.runs, digestOf(r.before))
	}
	var err error
	switch {
	case l.Header != nil:
		err = c.trust(l.Header)
	case l.Row != nil:
		err = c.row(l.Row)
	case l.Document != nil:
		err = c.document(r.n, l.Document)
	case l.Footer != nil:
		return c.families()
	}
	if err != nil {
		return &LineError{Line: r.n, DecisionID: l.id(), Err: err}
	}
	return nil
}

// document verifies that a document belongs to the organization, that its API endpoint would
// accept it, and that the target can use it.
func (c *checker) document(line int, d *document) error {
	doc, err := d.stored(c.state.header.OrganizationID)
	if err != nil {
		return err
	}
	lists, err := c.Validate(doc)
	if unreadable := (*UnreadableError)(nil); errors.As(err, &unreadable) {
		if !c.Unreadable {
			return fmt.Errorf("%w: with --unreadable it is imported as it is, and denies or tightens", err)
		}
		c.found.Unreadable = append(c.found.Unreadable, &LineError{Line: line, Err: err})
		err = nil
	}
	if err != nil {
		return err
	}
	if err := c.relate(line, doc, lists); err != nil {
		return err
	}
	switch doc.Kind {
	case storage.SubscriptionKind:
		plan, err := strictly(storage.Subscriptions, doc)
		if err != nil {
			return err
		}
		if !slices.Contains(c.Plans, plan.Plan) {
			return fmt.Errorf("the organization is on the plan %.64q: want one of %s", plan.Plan,
				strings.Join(c.Plans, ", "))
		}
	case storage.StopKind:
		_, err = strictly(storage.Stops, doc)
	case storage.CountsKind:
		_, err = strictly(storage.AllCounts, doc)
	case storage.OriginKind:
		return c.origin(doc)
	case storage.RevisionKind:
		return c.revision(doc)
	case storage.DetailsKind:
		details, err := strictly(storage.AllDetails, doc)
		if err != nil {
			return err
		}
		if want, ok := c.details[details.DecisionID]; ok && details.Digest() != want {
			return fmt.Errorf("the details of decision %.64s are not those of its row", details.DecisionID)
		}
	}
	return err
}

// strictly decodes a document of a kind without an endpoint. An unknown member is an error.
func strictly[T any](_ storage.Of[T], doc storage.Document) (*T, error) {
	v := new(T)
	return v, engine.Decode(doc.Value, "", v)
}

// trust divides the keys of the header into trusted and untrusted ones.
func (c *checker) trust(h *Header) error {
	keys, err := receipt.ParseKeys(h.Keys)
	if err != nil {
		return err
	}
	for _, id := range keys.IDs() {
		switch trusted := c.Keys.Only(id); {
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

func (c *checker) row(r *storage.Record) error {
	if err := c.verifier.Verify(r); err != nil {
		return err
	}
	if r.AuditDigest == "" {
		c.found.Older++
	}
	if r.DetailsDigest != "" {
		c.details[r.DecisionID] = r.DetailsDigest
	}
	signed := []receipt.Inclusion{r.Receipt.Inclusion()}
	if r.Settlement != nil {
		signed = append(signed, *r.Settlement.Receipt)
	}
	for _, in := range signed {
		chain, err := in.Chain()
		if err != nil {
			return err
		}
		c.found.chains[chain] = true
		if !slices.Contains(c.found.Keys.IDs(), in.KeyID) {
			c.found.Keys = c.found.Keys.With(c.Keys.Only(in.KeyID)) // the header need not name the key
		}
	}
	return nil
}
