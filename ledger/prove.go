package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// History is a history that [Prove] reads, which must not change meanwhile.
type History interface {
	// Heads calls f for each head, in order of sequence.
	Heads(ctx context.Context, f func(receipt.SignedHead) error) error
	// Entries calls f for each entry that does not come with a row.
	Entries(ctx context.Context, f func(*storage.Entry) error) error
	// Tombstones calls f for what is left of each row that was removed.
	Tombstones(ctx context.Context, f func(*storage.Tombstone) error) error
	// Parts divides the rows. Prove reads several at a time.
	Parts(ctx context.Context) ([]storage.Part, error)
	// Census is asked once all parts have been read, unless the history is partial.
	// It holds to the rows what no row leads to.
	Census(ctx context.Context) (storage.Census, error)
	// Documents calls f for each document, with the change that would leave it so,
	// and Waiting for each change that is not in the chain yet. Neither is asked
	// where the history is partial.
	Documents(ctx context.Context, f func(storage.Change) error) error
	Waiting(ctx context.Context, f func(storage.Change) error) error
}

// ProveConfig is how a history is proved.
type ProveConfig struct {
	// Keys are those that may have signed heads.
	Keys receipt.Keys
	// Anchor is a head that somebody has kept, which the chain must go on from;
	// nil for none.
	Anchor *receipt.SignedHead
	// Partial says that the history is what a server shows to one organization:
	// rows may be missing, and the last heads.
	Partial bool
	// Progress is told, now and then and by several goroutines, how many heads or
	// rows of how many are proved. Nil is told nothing.
	Progress func(what string, done, total int)
}

// Proof says what was proved of a history.
type Proof struct {
	storage.Census
	// Last is the last head, the zero head where there is none.
	Last receipt.SignedHead
	Rows int
	// Settled is how many of the rows have a settlement, and Unsigned how many of
	// these are from before settlements were signed.
	Settled, Unsigned int
	// Entries is how many there are beside the rows.
	Entries int
	// Removed is how many rows left a tombstone. Of NewestRemoved, the id of the
	// newest of them, the time can be read; it is empty where there is none.
	Removed       int
	NewestRemoved string
	// Unplaced is how many tombstones are not proved to be what they say, because
	// their heads also sign rows that left none.
	Unplaced int
	// Older is how many have no audit digest: of them, what [Payload] returns is
	// signed and nothing else.
	Older int
	// Waiting is how many changes of documents are not signed yet, and Documents how
	// many documents are from before changes were.
	Waiting, Documents int
	// Unlisted is how many rows of a partial history are under heads that follow
	// Last: each was verified by itself.
	Unlisted int
}

// Prove proves a whole history: that each head is signed and carries the hash of
// the one before it, that each row, settlement and entry is one that its head
// signs, by an inclusion proof under exactly that head, that what was removed was
// announced and left its leaf in its place, that a head signs no leaf more than are
// there, that each document is as its last change left it, and what [History] holds
// to the rows.
//
// A head's signature is verified once, for all of its leaves. It takes some 80
// bytes of memory a head, and 40 a leaf of heads that something was removed of.
//
// The error is a *storage.BreakError where the history does not hold together,
// the first such place in the order of the chain and then of the rows, and
// otherwise what kept Prove from reading it.
//
// What a row from before there were audit digests shows beyond what [Payload]
// returns is not signed, and neither are settlements from before they were.
func Prove(ctx context.Context, h History, cfg ProveConfig) (Proof, error) {
	p := prover{cfg: cfg}
	if cfg.Progress == nil {
		p.cfg.Progress = func(string, int, int) {}
	}
	if err := h.Heads(ctx, p.head); err != nil {
		return Proof{}, err
	}
	if err := errors.Join(p.verifyHeads(), p.anchored()); err != nil {
		return Proof{}, err
	}
	p.seen = make([]atomic.Uint32, len(p.heads))
	if err := p.beside(ctx, h); err != nil {
		return Proof{}, err
	}
	parts, err := h.Parts(ctx)
	if err != nil {
		return Proof{}, err
	}
	if err := inParallel(len(parts), func(i int) error { return parts[i](ctx, p.row) }); err != nil {
		return Proof{}, err
	}
	proof := Proof{
		Last: p.last, Rows: int(p.rows.Load()), Older: int(p.older.Load()), Unlisted: int(p.unlisted.Load()), Entries: p.entries,
		Settled: int(p.settled.Load()), Unsigned: int(p.unsigned.Load()), Removed: p.gone.n, NewestRemoved: p.gone.newest,
	}
	if cfg.Partial {
		return proof, nil
	}
	if proof.Census, err = h.Census(ctx); err != nil {
		return Proof{}, err
	}
	proof.Unplaced = p.gone.unplaced()
	if err := p.whole(proof.Census); err != nil {
		return Proof{}, err
	}
	err = p.documents.prove(ctx, h)
	proof.Waiting, proof.Documents = p.documents.waiting, p.documents.unsigned
	return proof, err
}

// prover proves one history.
type prover struct {
	cfg ProveConfig

	tip     receipt.Chain
	waiting []receipt.SignedHead // follow tip, if all is well
	last    receipt.SignedHead
	anchor  *receipt.SignedHead // the one with the sequence of cfg.Anchor
	heads   []provenHead        // by sequence
	seen    []atomic.Uint32     // how many leaves are proved to be under each
	leaves  int                 // that they sign
	entries int
	gone    graves

	documents documents

	proved, rows, settled, unsigned, older, unlisted atomic.Int64
}

// provenHead is what is kept of a head that was verified.
type provenHead struct {
	sum  [sha256.Size]byte // of all of it, the signature too
	root [sha256.Size]byte
	at   int64 // Unix milliseconds
	size uint32
}

// headRun is how many heads are verified at a time: enough for every processor.
const headRun = 4096

// head takes the next head.
func (p *prover) head(h receipt.SignedHead) error {
	if p.cfg.Anchor != nil && h.Seq == p.cfg.Anchor.Seq {
		p.anchor = &h
	}
	if p.waiting = append(p.waiting, h); len(p.waiting) < headRun {
		return nil
	}
	return p.verifyHeads()
}

// verifyHeads verifies the heads that wait, on all processors.
func (p *prover) verifyHeads() error {
	run := p.waiting
	if len(run) == 0 {
		return nil
	}
	if p.tip.Seq == 0 {
		p.tip.ID = run[0].Chain
	}
	const some = 64
	pieces := slices.Collect(slices.Chunk(run, some))
	err := inParallel(len(pieces), func(i int) error {
		from := p.tip
		if i > 0 { // who verifies the piece before this one finds whether its last head is good
			from = from.Next(run[i*some-1].Head)
		}
		_, err := receipt.VerifyChain(from, slices.Values(pieces[i]), p.cfg.Keys)
		return err
	})
	if broken := (*receipt.ChainError)(nil); errors.As(err, &broken) {
		return &storage.BreakError{Head: broken.Seq, Err: broken.Err}
	} else if err != nil {
		return err
	}
	for i := range run {
		p.heads = append(p.heads, provenHead{sum: sumOf(&run[i]), root: run[i].Root, at: run[i].UnixMilli, size: run[i].Size})
		p.leaves += int(run[i].Size)
	}
	p.last = run[len(run)-1]
	p.tip = p.tip.Next(p.last.Head)
	p.waiting = run[:0]
	p.cfg.Progress("heads", len(p.heads), len(p.heads))
	return nil
}

// sumOf returns the hash of all that h has.
func sumOf(h *receipt.SignedHead) [sha256.Size]byte {
	var buf [512]byte
	return sha256.Sum256(append(append(append(buf[:0], h.Bytes()...), h.Sig[:]...), h.KeyID...))
}

// anchored holds the chain to the anchor.
func (p *prover) anchored() error {
	a := p.cfg.Anchor
	if a == nil {
		return nil
	}
	broken := func(format string, args ...any) error {
		return &storage.BreakError{Head: a.Seq, Err: fmt.Errorf(format, args...)}
	}
	switch err := a.Verify(p.cfg.Keys); {
	case err != nil:
		return broken("the anchor does not verify with these keys: %w", err)
	case len(p.heads) == 0:
		return broken("it was kept as the anchor, and the history has no heads")
	case a.Chain != p.tip.ID:
		return broken("the anchor is of chain %x, the history of chain %x", a.Chain, p.tip.ID)
	case p.anchor == nil:
		return broken("it was kept as the anchor, and the history ends at head %d", p.last.Seq)
	case p.anchor.Head != a.Head:
		return broken("it is not the one that was kept as the anchor")
	}
	return nil
}

// row proves r.
func (p *prover) row(r *storage.Record) error {
	if err := p.proveRow(r); err != nil {
		return &storage.BreakError{OrganizationID: r.OrganizationID, DecisionID: r.DecisionID, Err: err}
	}
	if n := int(p.rows.Add(1)); n%progressEvery == 0 {
		p.cfg.Progress("rows", n, p.leaves)
	}
	return nil
}

const progressEvery = 1024

func (p *prover) proveRow(r *storage.Record) error {
	if err := VerifyRow(r); err != nil {
		return err
	}
	if r.AuditDigest == "" {
		p.older.Add(1)
	}
	listed, err := p.leaf(r.Receipt.Inclusion(), r.Receipt.LeafHash())
	if err == nil && !listed {
		p.unlisted.Add(1)
	}
	if err != nil || r.Settlement == nil {
		return err
	}
	p.settled.Add(1)
	if err := fits(r); err != nil {
		return err
	}
	if r.Settlement.Receipt == nil {
		p.unsigned.Add(1)
		return nil
	}
	if _, err := p.leaf(*r.Settlement.Receipt, receipt.EntryLeaf(r.SettlementEntry().Body)); err != nil {
		return fmt.Errorf("its settlement: %w", err)
	}
	return nil
}

// leaf proves a leaf to be under the head that in says, and reports whether that is
// one of the history's.
func (p *prover) leaf(in receipt.Inclusion, leaf [sha256.Size]byte) (listed bool, err error) {
	h, err := in.SignedHead(leaf)
	if err != nil {
		return false, err
	}
	if p.cfg.Partial && h.Seq > uint64(len(p.heads)) {
		return false, h.Verify(p.cfg.Keys)
	}
	if h.Seq == 0 || h.Seq > uint64(len(p.heads)) {
		return false, fmt.Errorf("its receipt is under head %d, and the history ends at head %d", h.Seq, len(p.heads))
	}
	if sumOf(&h) != p.heads[h.Seq-1].sum {
		return false, fmt.Errorf("it is not what head %d signs", h.Seq)
	}
	if err := p.count(h.Seq); err != nil {
		return false, err
	}
	at, err := in.Leaf(leaf)
	if err != nil {
		return false, err
	}
	return true, p.gone.place(at)
}

// count takes one of the leaves that a head signs.
func (p *prover) count(seq uint64) error {
	p.proved.Add(1)
	if size := p.heads[seq-1].size; p.seen[seq-1].Add(1) > size {
		return fmt.Errorf("head %d signs %d leaves, and this is one more", seq, size)
	}
	return nil
}

// whole holds what the heads sign to what is there and what was removed without a
// tombstone.
func (p *prover) whole(c storage.Census) error {
	missing := p.leaves - int(p.proved.Load())
	if missing == c.Unmarked {
		return nil
	}
	if missing < c.Unmarked {
		return &storage.BreakError{Err: fmt.Errorf("%d intents are decided and have no row, and the heads sign %d leaves that are not there", c.Unmarked, missing)}
	}
	// A row that retention removed is under a head that was signed soon after it
	// was decided: one that was signed later has lost a leaf otherwise.
	var until int64
	if id, err := uuid.Parse(c.NewestUnmarked); err == nil {
		until = timeOf(id).Add(storage.MaxSkew).UnixMilli()
	}
	for _, after := range []int64{until, math.MinInt64} {
		for i, h := range p.heads {
			if n := p.seen[i].Load(); n < h.size && h.at > after {
				return &storage.BreakError{Head: uint64(i) + 1, Err: fmt.Errorf(
					"it signs %d leaves, and %d are there; %d leaves are missing, and retention has removed %d without a trace", h.size, n, missing, c.Unmarked)}
			}
		}
	}
	return errors.New("counting leaves") // some head signs a leaf that is missing
}

// timeOf returns the time in a UUIDv7.
func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }

// inParallel calls f with 0 to n-1, on all processors, and returns the error of
// the least for which there is one. Once one has failed no greater one is begun.
func inParallel(n int, f func(i int) error) (err error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards next, end and err
		next int
		end  = n
	)
	work := func() {
		mu.Lock()
		defer mu.Unlock()
		for next < end {
			i := next
			next++
			mu.Unlock()
			why := f(i)
			mu.Lock()
			if why != nil && i < end {
				end, err = i, why
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(work)
	}
	wg.Wait()
	return err
}
