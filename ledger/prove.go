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

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// History is a history that [Prove] reads, which must not change meanwhile.
type History interface {
	// Heads calls f for each head, in order of sequence.
	Heads(ctx context.Context, f func(receipt.SignedHead) error) error
	// Parts divides the rows. Prove reads several at a time.
	Parts(ctx context.Context) ([]storage.Part, error)
	// Census is asked last, unless the history is partial. It holds to the rows
	// what no row leads to.
	Census(ctx context.Context) (storage.Census, error)
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
	// Settled is how many of the rows have a settlement, which no head signs.
	Settled int
	// Older is how many have no audit digest: of them, what [Payload] returns is
	// signed and nothing else.
	Older int
	// Unlisted is how many rows of a partial history are under heads that follow
	// Last: each was verified by itself.
	Unlisted int
}

// Prove proves a whole history: that each head is signed and carries the hash of
// the one before it, that each row is the one that its head signs, by an
// inclusion proof under exactly that head, that a head signs no row more than are
// there or were removed by retention, and what [History] holds to the rows.
//
// A head's signature is verified once, for all of its rows. It takes some 50
// bytes of memory a head.
//
// The error is a *storage.BreakError where the history does not hold together,
// the first such place in the order of the chain and then of the rows, and
// otherwise what kept Prove from reading it.
//
// A settlement is not signed, and neither is what a row from before there were
// audit digests shows beyond what [Payload] returns; a row that was removed left
// nothing to prove.
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
	parts, err := h.Parts(ctx)
	if err != nil {
		return Proof{}, err
	}
	if err := inParallel(len(parts), func(i int) error { return parts[i](ctx, p.row) }); err != nil {
		return Proof{}, err
	}
	proof := Proof{Last: p.last, Rows: int(p.rows.Load()), Settled: int(p.settled.Load()), Older: int(p.older.Load()), Unlisted: int(p.unlisted.Load())}
	if cfg.Partial {
		return proof, nil
	}
	if proof.Census, err = h.Census(ctx); err != nil {
		return Proof{}, err
	}
	return proof, p.whole(proof.Census)
}

// prover proves one history.
type prover struct {
	cfg ProveConfig

	tip     receipt.Chain
	waiting []receipt.SignedHead // follow tip, if all is well
	last    receipt.SignedHead
	anchor  *receipt.SignedHead // the one with the sequence of cfg.Anchor
	heads   []provenHead        // by sequence
	seen    []atomic.Uint32     // how many rows are proved to be under each
	leaves  int                 // that they sign

	rows, settled, older, unlisted atomic.Int64
}

// provenHead is what is kept of a head that was verified.
type provenHead struct {
	sum  [sha256.Size]byte // of all of it, the signature too
	at   int64             // Unix milliseconds
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
		p.heads = append(p.heads, provenHead{sum: sumOf(&run[i]), at: run[i].UnixMilli, size: run[i].Size})
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
	if r.Settlement != nil {
		p.settled.Add(1)
		if err := fits(r); err != nil {
			return err
		}
	}
	h, err := r.Receipt.SignedHead()
	if err != nil {
		return err
	}
	if p.cfg.Partial && h.Seq > uint64(len(p.heads)) {
		p.unlisted.Add(1)
		return h.Verify(p.cfg.Keys)
	}
	if h.Seq == 0 || h.Seq > uint64(len(p.heads)) {
		return fmt.Errorf("its receipt is under head %d, and the history ends at head %d", h.Seq, len(p.heads))
	}
	signed := &p.heads[h.Seq-1]
	if sumOf(&h) != signed.sum {
		return fmt.Errorf("it is not what head %d signs", h.Seq)
	}
	if p.seen[h.Seq-1].Add(1) > signed.size {
		return fmt.Errorf("head %d signs %d rows, and this is one more", h.Seq, signed.size)
	}
	return nil
}

// VerifyRow returns nil if r is the row of the decision that its receipt is of.
// A row without an audit digest, from before there was one, is verified as far as
// [Payload] shows it. Whether the receipt is genuine is for [receipt.Verify].
func VerifyRow(r *storage.Record) error {
	if r.Receipt.Decision != r.Decision.String() {
		return fmt.Errorf("its row says %s and its receipt %.32q", r.Decision, r.Receipt.Decision)
	}
	if r.AuditDigest != "" && r.AuditDigest != AuditDigest(r) {
		return errors.New("its row is not the one of its audit digest")
	}
	return receipt.VerifyPayload(r.Receipt, Payload(r))
}

// fits returns why r's settlement can't be one of its decision.
func fits(r *storage.Record) error {
	s := r.Settlement
	switch {
	case !storage.IsOutcome(s.Outcome):
		return fmt.Errorf("its settlement has the outcome %.32q", s.Outcome)
	case s.AmountMinor != nil && (*s.AmountMinor < 0 || *s.AmountMinor > engine.MaxInteger):
		return fmt.Errorf("its settlement has the amount %d", *s.AmountMinor)
	case s.RecordedAt.Before(r.DecidedAt.Add(-storage.MaxSkew)):
		return fmt.Errorf("it was settled at %s, before it was decided at %s", s.RecordedAt.Format(time.RFC3339), r.DecidedAt.Format(time.RFC3339))
	case s.Unapproved != (s.Outcome == storage.Executed && r.Decision != engine.Allow):
		return fmt.Errorf("its settlement is marked unapproved: %t, and its decision is %s", s.Unapproved, r.Decision)
	}
	return nil
}

// whole holds what the heads sign to what is there and what was removed.
func (p *prover) whole(c storage.Census) error {
	missing := p.leaves - int(p.rows.Load())
	if missing == c.Removed {
		return nil
	}
	if missing < c.Removed {
		return &storage.BreakError{Err: fmt.Errorf("%d intents are decided and have no row, and the heads sign %d rows that are not there", c.Removed, missing)}
	}
	// A row that retention removed is under a head that was signed soon after it
	// was decided: one that was signed later has lost its row otherwise.
	var until int64
	if id, err := uuid.Parse(c.NewestRemoved); err == nil {
		sec, nsec := id.Time().UnixTime()
		until = time.Unix(sec, nsec).Add(storage.MaxSkew).UnixMilli()
	}
	for _, after := range []int64{until, math.MinInt64} {
		for i, h := range p.heads {
			if n := p.seen[i].Load(); n < h.size && h.at > after {
				return &storage.BreakError{Head: uint64(i) + 1, Err: fmt.Errorf(
					"it signs %d rows, and %d are there; %d rows are missing, and retention has removed %d", h.size, n, missing, c.Removed)}
			}
		}
	}
	return errors.New("counting rows") // some head signs a row that is missing
}

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
