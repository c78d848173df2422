package mongodb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// chainLog is the end of the chain that a handle writes.
type chainLog struct {
	mu      sync.Mutex
	session *mongo.Session // session is for Append
	tip     receipt.Chain
	// sure says that tip is the end of the stored chain. If it is false, the outcome of the last
	// batch is unknown. The next two fields are then the ticks of this batch and the sequence of
	// its head.
	sure     bool
	doubt    []tick
	doubtSeq uint64
	// looks is the number of next batches whose intents are looked up before they are sealed.
	looks int
	// uncounted is about the number of heads of the chain that are not counted in the meters yet.
	uncounted uint64
	// stored is the last tip that was sure, for the beats.
	stored atomic.Pointer[receipt.Chain]
}

func (s *database) heads() *mongo.Collection { return s.db.Collection(headsName) }

func headKey(chain [16]byte, seq int64) headID { return headID{chain[:], seq} }

// looksAfter is the number of batches whose intents are looked up after a batch had decided intents. Such intents
// come in series, and one that was not looked up costs three requests.
const looksAfter = 16

// errLook means that the intents of a batch must be looked up.
var errLook = errors.New("some intents may be decided already")

// Append implements storage.Log. It is one transaction, which stores nothing if this handle was given up.
//
// Few intents of decisions are decided already. So Append seals a batch without looking them up. If the database has
// one of them, the key of its row is a duplicate, and a second transaction looks them up and seals the others. Append
// looks them up first if the batch has entries, if it may be stored already, or if an earlier batch had decided
// intents. It also does so if not all is sealed: what is not sealed may be stored already.
func (s *Store) Append(
	ctx context.Context, batch storage.Batch, seal storage.Seal,
) (existing storage.Batch, err error) {
	ids, err := batch.Check(checkOrg)
	if err != nil {
		return storage.Batch{}, err
	}
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	var a *appending
	look := l.looks > 0 || !l.sure || len(batch.Entries) > 0
	nothing, unknown := false, false
	try := func(ctx context.Context) (err error) {
		a.undo()
		a, nothing = &appending{ctx: ctx, s: s, ids: ids}, false
		if err := a.begin(); err != nil {
			return err
		}
		var fresh storage.Batch
		if existing, fresh, err = a.divide(batch, look); err != nil {
			return err
		}
		if len(fresh.Records)+len(fresh.Entries) == 0 {
			nothing = true
			return nil // only a commit proves that a majority has the rows that were read
		}
		sealed, head, err := seal(a.tip, fresh)
		if !look && (err != nil || len(sealed.Records) < len(fresh.Records)) {
			return errLook
		}
		if err == nil && len(sealed.Records)+len(sealed.Entries) == 0 {
			nothing = true
			return nil
		}
		if err == nil && (head.Seq != a.tip.Seq+1 || head.Prev != a.tip.Prev || head.Chain != a.tip.ID) {
			err = fmt.Errorf("%w: head %d does not extend head %d", storage.ErrConflict, head.Seq, a.tip.Seq)
		}
		if err != nil {
			return refuse(err)
		}
		return a.write(sealed, head)
	}
	err = s.do(ctx, "", "appending decisions", func(ctx context.Context) error {
		err := transact(ctx, l.session, try)
		if !look && (errors.Is(err, errLook) || mongo.IsDuplicateKeyError(err)) {
			look = true
			err = transact(ctx, l.session, try)
		}
		unknown = errors.Is(err, errUnknownCommit)
		return err
	})
	switch {
	case err == nil:
		if l.sure, l.doubt, l.tip = true, nil, a.tip; !nothing {
			l.tip = a.tip.Next(a.head.Head)
			s.countSoon()
		}
		l.stored.Store(new(l.tip))
		l.looks = max(0, l.looks-1)
		if slices.ContainsFunc(existing.Records, func(r *storage.Record) bool { return r != nil }) {
			l.looks = looksAfter
		}
		return existing, nil
	case unknown:
		if l.sure || a.lost || len(a.ticks) > 0 { // otherwise the earlier batch may still become stored
			l.doubt, l.doubtSeq = a.ticks, a.tip.Seq+1
		}
		l.sure = false
		return storage.Batch{}, fmt.Errorf("%w: %w", storage.ErrUnknown, err)
	}
	a.undo()
	if errors.Is(err, errLost) {
		s.done.Go(func() { s.end(errLost) }) // not while log.mu is held
	}
	return storage.Batch{}, err
}

type appending struct {
	ctx context.Context
	s   *Store
	ids decisionIDs
	// tip is the end of the chain in this transaction. Before the commit the server may still roll
	// it back.
	tip   receipt.Chain
	lost  bool // the batch with the unknown outcome is not stored
	head  receipt.SignedHead
	ticks []tick
	// settled has the key of a decision's intent, by the key of the settlement.
	settled map[string][]byte
}

// undo reverts what a failed try did to the held places. The places that the try used are held
// again. The try may also have freed the places of the batch with the unknown outcome. undo marks
// these places as used again.
func (a *appending) undo() {
	if a == nil {
		return
	}
	a.s.quotas.unuse(a.ticks)
	if a.ticks = nil; a.lost {
		a.lost = false
		for i := range a.s.log.doubt {
			a.s.quotas.use(&a.s.log.doubt[i])
		}
	}
}

// begin reads the end of the chain, if the end is unknown. It returns an error if the end is another than
// this handle can have written.
func (a *appending) begin() error {
	l := &a.s.log
	if a.tip = l.tip; l.sure {
		return nil
	}
	var holder string
	var err error
	if a.tip, holder, err = a.s.endOf(a.ctx, a.s.slot.chain); err != nil {
		return err
	}
	if a.tip != l.tip { // heads that this handle has added since, and nothing else
		if a.tip.Seq <= l.tip.Seq {
			return errSetBack
		}
		if holder != a.s.slot.holder {
			return errLost
		}
	}
	if a.lost = a.tip.Seq < l.doubtSeq; a.lost { // the earlier batch can't become stored any more
		a.s.quotas.unuse(l.doubt)
	}
	return nil
}

func (a *appending) write(sealed storage.Batch, head receipt.SignedHead) error {
	signed, err := head.MarshalBinary()
	if err != nil {
		return err
	}
	a.head = head
	a.ticks = ticksOf(sealed.Records)
	if err := a.s.insertRows(a.ctx, sealed.Records, a.ids); err != nil {
		return err
	}
	h := headRow{ID: headKey(head.Chain, number(head.Seq)), Head: signed, Holder: a.s.slot.holder,
		Meters: make([]meterTick, len(a.ticks)), Decisions: decisionsOf(sealed.Records, a.ids),
		Counts: countsOf(sealed.Records, 1).pack()}
	for i, t := range a.ticks {
		h.Meters[i] = meterTick{t.meter, t.n}
	}
	if err := a.addHead(&h); err != nil {
		return err
	}
	if err := a.enter(sealed.Entries); err != nil {
		return err
	}
	return a.s.usePlaces(a.ctx, a.ticks)
}

// addHead inserts a head, if this handle still may add one. The row of the chain must name this handle and the
// head before. One command changes this row and inserts the head.
func (a *appending) addHead(h *headRow) error {
	s := a.s
	writer := doc("_id", writerKey(s.slot.chain))
	fields := doc(headSigned, h.Head, headHolder, h.Holder, headMeters, h.Meters)
	if len(h.Decisions) > 0 {
		fields = append(fields, doc(headDecided, h.Decisions)...)
	}
	if len(h.Counts) > 0 {
		fields = append(fields, doc(headCounts, h.Counts)...)
	}
	r, err := s.heads().BulkWrite(a.ctx, []mongo.WriteModel{
		mongo.NewUpdateOneModel().SetFilter(append(writer, doc(headHolder, h.Holder, headLast, h.ID.Seq-1)...)).
			SetUpdate(set(headLast, h.ID.Seq)),
		mongo.NewUpdateOneModel().SetFilter(doc("_id", h.ID)).SetUpdate(doc("$setOnInsert", fields)).SetUpsert(true),
	})
	if err != nil || r.MatchedCount == 1 && r.UpsertedCount == 1 {
		return err
	}
	var row headRow
	if err := s.heads().FindOne(a.ctx, writer).Decode(&row); ifAny(err) != nil {
		return err
	}
	if row.Holder != s.slot.holder && row.Holder != "" {
		return errLost
	}
	return errSetBack
}

// Tip implements storage.Log.
func (s *Store) Tip(ctx context.Context) (tip receipt.Chain, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.sure {
		return s.log.tip, ctx.Err()
	}
	err = s.do(ctx, "", "reading the chain", func(ctx context.Context) error {
		tip, err = s.tipOf(ctx, s.slot.chain)
		return err
	})
	return tip, err
}

// tipOf returns the end of a chain.
func (s *database) tipOf(ctx context.Context, chain [16]byte) (receipt.Chain, error) {
	tip, _, err := s.endOf(ctx, chain)
	return tip, err
}

// endOf returns the end of a chain, and the holder that has written the last head.
func (s *database) endOf(ctx context.Context, chain [16]byte) (tip receipt.Chain, holder string, err error) {
	tip.ID = chain
	var row headRow
	err = s.heads().FindOne(ctx, headsFrom(chain, 0), options.FindOne().SetSort(doc("_id", -1))).Decode(&row)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return tip, "", nil
	}
	if err != nil {
		return tip, "", err
	}
	h, err := row.head()
	return tip.Next(h.Head), row.Holder, err
}

func (r *headRow) head() (h receipt.SignedHead, err error) {
	if err = h.UnmarshalBinary(r.Head); err != nil {
		err = fmt.Errorf("%w: head %d of chain %x: %w", errCorrupt, r.ID.Seq, r.ID.Chain, err)
	} else if string(h.Chain[:]) != string(r.ID.Chain) || int64(h.Seq) != r.ID.Seq { //nolint:gosec // it counts
		err = fmt.Errorf("%w: head %d of chain %x is in the place of %d of %x", errCorrupt, h.Seq, h.Chain, r.ID.Seq,
			r.ID.Chain)
	}
	return h, err
}

// headsFrom selects the heads of a chain from a sequence on, which is not negative.
func headsFrom(chain [16]byte, seq int64) bson.D {
	return doc("_id", doc("$gte", headKey(chain, seq), "$lte", headKey(chain, math.MaxInt64)))
}

// Heads implements storage.Log.
func (s *database) Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	return s.scan(ctx, "", "reading heads", func(ctx context.Context) error {
		find := options.Find().SetSort(doc("_id", 1)).SetProjection(doc(headMeters, 0, headDecided, 0, headCounts, 0))
		cursor, err := s.heads().Find(ctx, headsFrom(chain, number(from)), find)
		return each(ctx, cursor, err, func(row *headRow) (bool, error) {
			h, err := row.head()
			if err == nil {
				err = f(h)
			}
			return true, err
		})
	})
}

// Chains implements storage.Log.
func (s *database) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return s.scan(ctx, "", "reading the chains", func(ctx context.Context) error {
		chains, err := s.chains(ctx)
		if err != nil {
			return err
		}
		for _, chain := range chains {
			tip, err := s.tipOf(ctx, chain)
			if err == nil && tip.Seq > 0 {
				err = refuse(f(tip))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// chains returns all chains: those that have a slot, and then those whose slot was removed. A chain with heads has a
// counter before its slot is removed.
func (s *database) chains(ctx context.Context) ([][16]byte, error) {
	chains, err := s.slotChains(ctx)
	if err != nil {
		return nil, err
	}
	counters, err := find[counterRow](ctx, s.db.Collection(countersName),
		doc("_id", doc("$gte", countedBegins, "$lt", countedBegins+"g")),
		options.Find().SetSort(doc("_id", 1)))
	for _, row := range counters {
		id, bad := hex.DecodeString(strings.TrimPrefix(row.ID, countedBegins))
		if bad != nil || len(id) != len(s.slot.chain) {
			return nil, fmt.Errorf("%w: the counter %q names no chain", errCorrupt, row.ID)
		}
		if chain := [16]byte(id); !slices.Contains(chains, chain) {
			chains = append(chains, chain)
		}
	}
	return chains, err
}

// slotChains returns the chains that have a slot. All heads of other chains are counted.
func (s *database) slotChains(ctx context.Context) (chains [][16]byte, err error) {
	rows, err := find[slotRow](ctx, s.slots(), doc(), options.Find().SetSort(doc("_id", 1)))
	for _, row := range rows {
		if len(row.Chain) != len(s.slot.chain) {
			return nil, fmt.Errorf("%w: slot %d has a chain of %d bytes", errCorrupt, row.ID, len(row.Chain))
		}
		chains = append(chains, [16]byte(row.Chain))
	}
	return chains, err
}
