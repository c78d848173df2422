package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// History is one state of a store, or the part of it that a server shows. Its methods do
// the same as the methods of [storage.Store] that have the same names.
type History interface {
	Chains(ctx context.Context, f func(end receipt.Chain) error) error
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	Organizations(ctx context.Context, f func(org string) error) error
	// EachEntry calls f for each entry except settlements.
	EachEntry(ctx context.Context, f func(*storage.Entry) error) error
	// EachTombstone calls f for each tombstone of an organization, or of every organization
	// if org is empty.
	EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error
	// EachRow calls f for each row of an organization whose id is greater than after and
	// not greater than upTo, in the order of ids. An empty id is no bound. Prove calls
	// EachRow from several goroutines.
	EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error

	// Prove does not call the methods below if the history is partial.

	View(ctx context.Context, f func(storage.Reader) error) error
	Changes(ctx context.Context, after storage.Change, most int) ([]storage.Change, error)
	// CheckIndex compares the store's indexes with its rows, entries and documents. It calls
	// read.Document for each document and read.Meter for each meter.
	CheckIndex(ctx context.Context, read storage.IndexCheck) error
}

// Renewable is a [History] of a state that is kept only for a while. After it, reads fail with [storage.ErrPast] until
// Renew takes the present state. No other method may run meanwhile.
type Renewable interface {
	Renew(ctx context.Context) error
}

// ProveConfig configures [Prove].
type ProveConfig struct {
	// Keys are the trusted keys. Each head must be signed by one of them.
	Keys receipt.Keys
	// Anchors are heads that were kept outside of the store. Their chains must contain them.
	Anchors []receipt.SignedHead
	// Resume says that Prove has proved the history up to the anchors before. Then it proves
	// only what was signed after them: see [Prove]. No chain may have two anchors.
	Resume bool
	// Partial says that the history is the part that a server shows to one organization:
	// rows and the last heads may be missing.
	Partial bool
	// Progress is called from several goroutines.
	Progress Progress
}

// Progress is called from time to time with the number of steps that are done and the
// total number of steps. Kind names the step, such as "rows". Progress may be nil.
type Progress func(kind string, done, total int)

// Tell calls p, unless it is nil.
func (p Progress) Tell(kind string, done, total int) {
	if p != nil {
		p(kind, done, total)
	}
}

// Proof is the result of [Prove].
type Proof struct {
	// Organizations is the number of organizations that have rows.
	Organizations int
	// Ends are the last heads of all chains, ordered by chain id. Unanchored is the number
	// of chains without an anchor.
	Ends       []receipt.SignedHead
	Unanchored int
	Heads      int
	Rows       int
	// Settled is the number of rows with a settlement.
	Settled int
	// Changes, Removals and Verdicts are the numbers of entries of these kinds. For each
	// verdict Prove has verified the signature and found the decisions that the verdict
	// names. For each decision under an approval it has verified that the verdicts on the
	// approval allow the decision.
	Changes, Removals, Verdicts int
	// Removed is the number of tombstones. NewestRemoved is the greatest decision id among
	// them, which contains its time. It is empty if Removed is 0.
	Removed       int
	NewestRemoved string
	// Foreign counts the imported rows.
	Foreign Foreign
	// Unfinished are the organizations with an unfinished import, in order. Each of their
	// imported rows is genuine, but rows may be missing and there may be surplus rows.
	Unfinished []string
	// Older is the number of rows without an audit digest. Only the payload of these rows
	// is signed: see [Payload].
	Older int
	// Waiting is the number of changes of documents that are not signed yet. NewestWaiting
	// is the last of them.
	Waiting       int
	NewestWaiting Change
	// Renewed is how often a newer state was taken because the one that was read was no longer kept. All but the
	// rows is of the first state. Rows under later heads are not counted. Rows that were removed meanwhile can be
	// counted twice, in Rows and in Removed.
	Renewed int
	// Unlisted is the number of rows of a partial history whose heads are not in the
	// history. Each of these rows was verified by its own receipt.
	Unlisted int
}

// Prove verifies a whole history. It proves that
//
//   - each head of each chain is signed and carries the hash of the head before it;
//   - each row, settlement and entry is a leaf of exactly one head, and no head has
//     more leaves;
//   - each removal of a row was announced, and the hash of the row's leaf is still in its
//     place;
//   - each document has the content that its last signed change says;
//   - each meter counts the rows;
//   - the store's indexes find all rows, entries and documents.
//
// Only an anchor of a chain shows that the end of the chain was cut off, or that the whole chain is
// missing with everything under its heads. A row or entry that remains under the heads of a missing
// chain is a break.
//
// Rows and settlements under heads of chains that the store does not have were imported.
// Each must have a valid receipt of its own. Together they must be exactly the leaves of
// the organization's import entry.
//
// A head's signature is verified once, for all of its leaves. Prove takes about 80 bytes
// of memory for each head, 40 bytes for each leaf of a head with a tombstone, and 56
// bytes for each imported leaf.
//
// If the history is broken, the error is a *storage.BreakError. It tells the first break,
// in the order of the chains and then of the rows. Any other error is a failure to read.
//
// For older rows, which have no audit digest, the signature covers only the [Payload].
//
// If cfg.Resume is set, each chain must contain its anchor, and only the heads after it are read. The rows,
// settlements and entries under these heads are proved, and that none is missing. Prove reads the rows of the last
// hour before these heads, and older ones only while a leaf is missing. Entries up to the anchors are verified by
// themselves, and so documents are compared as always. Neither meters nor the indexes of rows are compared, and
// rows up to the anchors that were changed or lost since are not noticed.
func Prove(ctx context.Context, h History, cfg ProveConfig) (Proof, error) {
	proof, err := newProver(cfg).prove(ctx, h)
	if broken := (*storage.BreakError)(nil); errors.Is(err, storage.ErrCorrupt) && !errors.As(err, &broken) {
		err = &storage.BreakError{Err: err}
	}
	return proof, err
}

func newProver(cfg ProveConfig) *prover {
	return &prover{
		cfg: cfg, chains: make(map[[16]byte]*provenChain),
		verdicts:  verdicts{named: make(map[decisionName]*namedDecision)},
		removed:   partialTrees{trees: make(map[headName]*partialTree)},
		documents: documents{last: make(map[string]*lastChange), removed: make(map[string]int64)},
		imports:   imports{heads: Verifier{keys: cfg.Keys}, orgs: make(map[string]*imported)},
		found:     found{rows: make(map[string]storage.RowSums), months: make(map[month]monthly)},
	}
}

func (p *prover) prove(ctx context.Context, h History) (Proof, error) {
	if err := p.readChains(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := p.entriesAndTombstones(ctx, h); err != nil {
		return Proof{}, err
	}
	if r, ok := h.(Renewable); (ok || p.cfg.Resume) && !p.cfg.Partial {
		return p.proveRenewed(ctx, h, r)
	}
	if err := p.readRows(ctx, h, nil); err != nil {
		return Proof{}, err
	}
	if p.cfg.Partial {
		return p.proof(), nil
	}
	if err := p.imports.checkUnlisted(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := p.documents.addUnsigned(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := h.CheckIndex(ctx,
		storage.IndexCheck{Rows: p.found.rows, Document: p.documents.document, Meter: p.found.meter}); err != nil {
		return Proof{}, err
	}
	if err := cmp.Or(p.found.unmetered(), p.complete(), p.verdicts.check(), p.documents.check()); err != nil {
		return Proof{}, err
	}
	proof := p.proof()
	var err error
	proof.Foreign, proof.Unfinished, err = p.imports.prove(p.documents.unfinished)
	return proof, err
}

type prover struct {
	cfg ProveConfig

	chains  map[[16]byte]*provenChain
	order   []*provenChain // by id
	several bool           // there are several chains, so a break names its chain
	heads   int            // the number of heads of all chains
	leaves  int            // the number of leaves of all heads

	changes, removals int
	removed           partialTrees
	verdicts          verdicts
	documents         documents
	imports           imports
	found             found
	later             *later // nil while one state is read
	renewed           int    // how often a newer state was taken

	proved, rows, settled, older, unlisted, read atomic.Int64
}

// proof returns the counts so far.
func (p *prover) proof() Proof {
	proof := Proof{
		Heads: p.heads, Unanchored: p.unanchored(), Rows: int(p.rows.Load()), Older: int(p.older.Load()),
		Unlisted: int(p.unlisted.Load()),
		Settled:  int(p.settled.Load()), Changes: p.changes, Removals: p.removals, Verdicts: p.verdicts.n,
		Removed: p.removed.n, NewestRemoved: p.removed.newest, Organizations: len(p.found.rows),
		Waiting: p.documents.waiting, NewestWaiting: p.documents.newest, Renewed: p.renewed,
	}
	for _, c := range p.order {
		proof.Ends = append(proof.Ends, c.last)
	}
	return proof
}

// leaf proves that a leaf is under the head that in names. It returns the head's chain, or
// nil if a partial history does not have the head.
func (p *prover) leaf(in receipt.Inclusion, leaf [sha256.Size]byte) (*provenChain, error) {
	h, err := in.SignedHead(leaf)
	if err != nil {
		return nil, err
	}
	c := p.chains[h.Chain]
	if c.before(h.Seq) {
		return c, p.imports.heads.leaf(in, leaf)
	}
	if p.cfg.Partial && (c == nil || h.Seq > c.tip.Seq) || p.later.has(c, &h) {
		return nil, h.Verify(p.cfg.Keys)
	}
	if err := p.listed(h.Chain, h.Seq); err != nil {
		return nil, fmt.Errorf("its receipt is %w", err)
	}
	if sumOf(&h) != c.at(h.Seq).sum {
		return nil, fmt.Errorf("it is not what %s signs", p.name(c, h.Seq))
	}
	if p.later.skips(h.Chain, h.Seq) {
		return c, nil
	}
	if p.later.again(h.Chain, h.Seq) {
		at, err := in.Leaf(leaf)
		if err == nil {
			err = p.placeAgain(at)
		}
		return c, err
	}
	if err := p.count(c, h.Seq); err != nil || !p.removed.wants(h.Chain, h.Seq) {
		return c, err
	}
	at, err := in.Leaf(leaf)
	if err != nil {
		return nil, err
	}
	return c, p.place(at)
}

// listed returns nil if the history has the head seq of a chain.
func (p *prover) listed(chain [16]byte, seq uint64) error {
	c := p.chains[chain]
	switch {
	case c == nil:
		return fmt.Errorf("under head %d of chain %x, of which the history has no head", seq, chain)
	case seq == 0 || seq > c.tip.Seq:
		return fmt.Errorf("under %s, and the history ends at head %d", p.name(c, seq), c.tip.Seq)
	}
	return nil
}

// name names a head in messages.
func (p *prover) name(c *provenChain, seq uint64) string {
	if p.several {
		return fmt.Sprintf("head %d of chain %x", seq, c.tip.ID)
	}
	return fmt.Sprintf("head %d", seq)
}

// count counts a proved leaf of a head. It returns an error if all leaves of the head
// were counted before.
func (p *prover) count(c *provenChain, seq uint64) error {
	p.proved.Add(1)
	if size := c.at(seq).size; c.seen[seq-c.from-1].Add(1) > size {
		return fmt.Errorf("%s signs %d leaves, and this is one more", p.name(c, seq), size)
	}
	return nil
}

// complete returns an error if a head has leaves that were not counted.
func (p *prover) complete() error {
	missing := p.missing()
	if missing == 0 {
		return nil
	}
	for _, of := range p.order {
		for i, h := range of.heads {
			if n := of.seen[i].Load(); n < h.size {
				return p.brokenHead(of, of.from+uint64(i)+1,
					fmt.Errorf("it signs %d leaves, and %d are there; %d leaves are missing", h.size, n, missing))
			}
		}
	}
	return errors.New("counting leaves") // cannot happen: some head lacks a leaf
}

// brokenRow returns a break at the row of a decision. brokenOrg returns a break in an
// organization.
func brokenRow(org, id string, err error) error {
	return &storage.BreakError{OrganizationID: org, DecisionID: id, Err: err}
}

func brokenOrg(org string, err error) error { return brokenRow(org, "", err) }

func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }
