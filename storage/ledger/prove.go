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

	"writ/storage"
	"writ/storage/receipt"
)

// History is one state of a store that [Prove] reads, or of what a server shows of it.
// Methods of the same names as those of [storage.Store] do what these do.
type History interface {
	Chains(ctx context.Context, f func(end receipt.Chain) error) error
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	Organizations(ctx context.Context, f func(org string) error) error
	// EachEntry calls f for each entry that is no settlement.
	EachEntry(ctx context.Context, f func(*storage.Entry) error) error
	// EachTombstone calls f for what is left of each removed row of an organization, of
	// every one where org is empty.
	EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error
	// EachRow calls f for each row of an organization with an id that is greater than
	// after and not greater than upTo, in the order of ids. An empty id is no bound.
	// Prove calls it from several goroutines.
	EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error

	// Prove does not call the rest where the history is partial.

	View(ctx context.Context, f func(storage.Reader) error) error
	Changes(ctx context.Context, after uint64, most int) ([]storage.Change, error)
	// CheckIndex compares what the store finds rows, entries and documents by with
	// these. It calls read.Document for each document and read.Meter for each meter.
	CheckIndex(ctx context.Context, read storage.IndexCheck) error
}

// ProveConfig is how a history is proved.
type ProveConfig struct {
	// Keys are those that may have signed heads.
	Keys receipt.Keys
	// Anchors are heads kept outside of the store. Their chains must contain them.
	Anchors []receipt.SignedHead
	// Partial says that the history is what a server shows to one organization:
	// rows may be missing, and the last heads.
	Partial bool
	// Progress is told by several goroutines how many heads or rows are proved.
	Progress Progress
}

// Progress is told now and then how many of what are done. Nil is told nothing.
type Progress func(what string, done, total int)

// Tell tells p, unless it is nil.
func (p Progress) Tell(what string, done, total int) {
	if p != nil {
		p(what, done, total)
	}
}

// Proof says what was proved of a history.
type Proof struct {
	// Organizations is how many have rows.
	Organizations int
	// Ends are the last heads of all chains, by the ids of these. Unanchored is how
	// many of the chains have no anchor.
	Ends       []receipt.SignedHead
	Unanchored int
	Heads      int
	Rows       int
	// Settled is how many of the rows have a settlement.
	Settled int
	// Changes, Removals and Verdicts are how many entries of these kinds there are. Of a
	// verdict its signature and the decisions that it names are proved, and of a decision
	// under an approval that its verdicts led to it.
	Changes, Removals, Verdicts int
	// Removed is how many rows left a tombstone. Of NewestRemoved, the id of the
	// newest of them, the time can be read; it is empty where there is none.
	Removed       int
	NewestRemoved string
	// Foreign are the rows that were imported, by how many there were.
	Foreign Foreign
	// Unfinished are the organizations of which an import is not finished, in order:
	// each row that is there is genuine, and others may be missing or one too many.
	Unfinished []string
	// Older is how many have no audit digest: of them, what [Payload] returns is
	// signed and nothing else.
	Older int
	// Waiting is how many changes of documents are not signed yet, and NewestWaiting
	// the last of them.
	Waiting       int
	NewestWaiting Change
	// Unlisted is how many rows of a partial history are under heads that it does not
	// have: each was verified by itself.
	Unlisted int
}

// Prove proves a whole history: that each head of each chain is signed and carries
// the hash of the one before it, that each row, settlement and entry is one that
// exactly one head signs, by an inclusion proof under that head, that what was
// removed was announced and left its leaf in its place, that a head signs no leaf
// more than are there, that each document is as its last change left it, that each meter
// counts what is there, and that all of it is found as it is stored.
//
// A chain that is cut at its end, or that is gone with all that is under its heads,
// leaves nothing behind that would tell: only an anchor of that chain finds it. What
// is left under the heads of a chain that is gone is a break.
//
// Rows and settlements under heads of chains that the history does not have were
// imported: each is signed by itself, and all of an organization are those that its
// import entry signs, none missing and none more.
//
// A head's signature is verified once, for all of its leaves. It takes some 80
// bytes of memory a head, 40 a leaf of heads that something was removed of, and 56 a
// leaf that was imported.
//
// The error is a *storage.BreakError where the history does not hold together,
// the first such place in the order of the chains and then of the rows, and
// otherwise what kept Prove from reading it.
//
// What a row from before there were audit digests shows beyond what [Payload]
// returns is not signed.
func Prove(ctx context.Context, h History, cfg ProveConfig) (Proof, error) {
	p := prover{
		cfg: cfg, chains: make(map[[16]byte]*provenChain),
		verdicts:  verdicts{named: make(map[decisionName]*namedDecision)},
		gone:      partialTrees{trees: make(map[headName]*partialTree)},
		documents: documents{last: make(map[string]*lastChange), removed: make(map[string]int64)},
		imports:   imports{heads: Verifier{keys: cfg.Keys}, orgs: make(map[string]*imported)},
		found:     found{rows: make(map[string]storage.RowSums), months: make(map[month]monthly)},
	}
	proof, err := p.prove(ctx, h)
	if broken := (*storage.BreakError)(nil); errors.Is(err, storage.ErrCorrupt) && !errors.As(err, &broken) {
		err = &storage.BreakError{Err: err}
	}
	return proof, err
}

func (p *prover) prove(ctx context.Context, h History) (Proof, error) {
	if err := p.readChains(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := p.entriesAndTombstones(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := p.readRows(ctx, h); err != nil {
		return Proof{}, err
	}
	if p.cfg.Partial {
		return p.proof(), nil
	}
	if err := p.imports.checkUnlisted(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := p.documents.signLater(ctx, h); err != nil {
		return Proof{}, err
	}
	if err := h.CheckIndex(ctx,
		storage.IndexCheck{Rows: p.found.rows, Document: p.documents.document, Meter: p.found.meter}); err != nil {
		return Proof{}, err
	}
	if err := cmp.Or(p.found.unmetered(), p.whole(), p.verdicts.check(), p.documents.check()); err != nil {
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
	several bool           // chains: breaks name theirs
	heads   int            // of all chains
	leaves  int            // that they sign

	changes, removals int
	gone              partialTrees
	verdicts          verdicts
	documents         documents
	imports           imports
	found             found

	proved, rows, settled, older, unlisted atomic.Int64
}

// proof returns what was counted.
func (p *prover) proof() Proof {
	proof := Proof{
		Heads: p.heads, Unanchored: p.unanchored(), Rows: int(p.rows.Load()), Older: int(p.older.Load()),
		Unlisted: int(p.unlisted.Load()),
		Settled:  int(p.settled.Load()), Changes: p.changes, Removals: p.removals, Verdicts: p.verdicts.n,
		Removed: p.gone.n, NewestRemoved: p.gone.newest, Organizations: len(p.found.rows),
		Waiting: p.documents.waiting, NewestWaiting: p.documents.newest,
	}
	for _, c := range p.order {
		proof.Ends = append(proof.Ends, c.last)
	}
	return proof
}

// leaf proves a leaf to be under the head that in says, and returns its chain, nil where it
// is none of the history's.
func (p *prover) leaf(in receipt.Inclusion, leaf [sha256.Size]byte) (*provenChain, error) {
	h, err := in.SignedHead(leaf)
	if err != nil {
		return nil, err
	}
	c := p.chains[h.Chain]
	if p.cfg.Partial && (c == nil || h.Seq > c.tip.Seq) {
		return nil, h.Verify(p.cfg.Keys)
	}
	if err := p.listed(h.Chain, h.Seq); err != nil {
		return nil, fmt.Errorf("its receipt is %w", err)
	}
	if sumOf(&h) != c.heads[h.Seq-1].sum {
		return nil, fmt.Errorf("it is not what %s signs", p.name(c, h.Seq))
	}
	if err := p.count(c, h.Seq); err != nil || !p.gone.wants(h.Chain, h.Seq) {
		return c, err
	}
	at, err := in.Leaf(leaf)
	if err != nil {
		return nil, err
	}
	return c, p.place(at)
}

// listed returns nil if the history has a head of a chain.
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

// name says which head it is.
func (p *prover) name(c *provenChain, seq uint64) string {
	if p.several {
		return fmt.Sprintf("head %d of chain %x", seq, c.tip.ID)
	}
	return fmt.Sprintf("head %d", seq)
}

// count takes one of the leaves that a head signs.
func (p *prover) count(c *provenChain, seq uint64) error {
	p.proved.Add(1)
	if size := c.heads[seq-1].size; c.seen[seq-1].Add(1) > size {
		return fmt.Errorf("%s signs %d leaves, and this is one more", p.name(c, seq), size)
	}
	return nil
}

// whole holds that each leaf that a head signs is there, or what is left of it.
func (p *prover) whole() error {
	missing := p.leaves - int(p.proved.Load())
	if missing == 0 {
		return nil
	}
	for _, of := range p.order {
		for i, h := range of.heads {
			if n := of.seen[i].Load(); n < h.size {
				return p.brokenHead(of, uint64(i)+1,
					fmt.Errorf("it signs %d leaves, and %d are there; %d leaves are missing", h.size, n, missing))
			}
		}
	}
	return errors.New("counting leaves") // some head signs a leaf that is missing
}

// brokenRow is a break at the row of a decision, brokenOrg one of an organization.
func brokenRow(org, id string, err error) error {
	return &storage.BreakError{OrganizationID: org, DecisionID: id, Err: err}
}

func brokenOrg(org string, err error) error { return brokenRow(org, "", err) }

func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }
