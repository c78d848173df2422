package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// The refusals of a Ledger. Any other error is a failure of its store. No error comes with
// a decision.
var (
	// ErrIntentConflict means that the intent id was decided for another intent of the
	// organization. Its message tells nothing about that intent.
	ErrIntentConflict = errors.New("the intent id was decided with a different body")
	// ErrIntentExpired means that the intent id was decided and that retention has removed
	// the decision.
	ErrIntentExpired = errors.New("the intent id was decided before and its decision is kept no longer")
	// ErrRaced means that nothing was stored because another caller was faster. For
	// intents that are stored all or none, the other caller has decided one of them. For
	// a decision with a verdict, it has given another verdict.
	ErrRaced = errors.New("an intent was decided by another while this one was")
	// ErrOverloaded means that the queue is full.
	ErrOverloaded = errors.New("too many decisions wait to be committed")
	// ErrClosed means that the ledger is closed.
	ErrClosed = errors.New("the ledger is closed")
)

// Ledger makes decisions final. All methods are safe for concurrent use.
type Ledger struct {
	cfg       Config
	ids       ids
	quotas    *quotas
	queue     *queue
	committer *committer
	metrics   *metrics
	waiters   waiters

	// stop cancels the committer's calls of the store. stopped is closed when nothing uses
	// the store any more.
	stop    context.CancelFunc
	stopped chan struct{}
}

// Open returns a ledger that continues the chain of cfg.Store. ctx bounds only the
// opening. The ledger must be closed before its store.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := cfg.Store.Tip(ctx); err != nil {
		return nil, fmt.Errorf("reading the end of the chain: %w", err)
	}
	l := &Ledger{
		cfg:     cfg,
		queue:   newQueue(cfg.QueueLimit),
		stopped: make(chan struct{}),
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.quotas = stop, newQuotas(life, &l.cfg)
	if l.metrics, err = newMetrics(cfg.Metrics, l.queue, l.quotas); err != nil {
		stop()
		return nil, err
	}
	l.committer = &committer{cfg: &l.cfg, quotas: l.quotas, metrics: l.metrics}
	go func() {
		defer close(l.stopped)
		l.committer.run(life, l.queue)
		l.quotas.stop(life)
		l.metrics.unregister()
	}()
	return l, nil
}

// Close refuses new commits with ErrClosed, finishes those that were accepted and returns
// nil. The ledger does not use its store afterwards. If ctx ends first, the unfinished
// commits fail and Close returns ctx's error. Further calls wait in the same way.
func (l *Ledger) Close(ctx context.Context) error {
	l.quotas.refuse()
	l.queue.close()
	defer l.stop()
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing the ledger with commits unfinished: %w", ctx.Err())
	}
}

// SignWith makes s sign all later batches. Its public key must be published first.
func (l *Ledger) SignWith(s *receipt.Signer) { l.cfg.signer.Store(s) }

// Healthy returns nil if the ledger knows of every batch whether it was stored, and if its signer signs.
// After a failed commit Healthy makes the ledger find this out, as the next commit would. Healthy does
// not try to write: see [storage.Store].
func (l *Ledger) Healthy(ctx context.Context) error {
	if _, err := l.append(ctx); err != nil { // no entries: it only waits for its turn
		return fmt.Errorf("checking the ledger: %w", err)
	}
	return nil
}

// Entry is a decision to commit. The ledger keeps its strings and maps in the record and
// in the answer. So they must never be views of a request's buffer.
type Entry struct {
	Reservation *Reservation // nil once it has ended
	// Intent is the evaluated intent. It must have passed [engine.Intent.Validate].
	Intent *engine.Intent
	// Names are the names of the intent's agent, as in [engine.Input].
	Names         engine.AgentNames
	PolicyVersion int64
	Result        engine.Result
	// Credential is the id of the caller's API key, or [OperatorPrefix] and the subject of
	// an operator. It is empty if no credential was needed.
	Credential string
	// PolicyRevision, RulesRevision and AgentRevision are the revisions of the documents
	// under which the intent was evaluated. ApprovalID is the approval that the caller
	// named. DetailsDigest is the digest of the intent's [storage.Details]. Each is zero
	// or empty if it is not known.
	PolicyRevision, RulesRevision, AgentRevision int64
	ApprovalID, DetailsDigest                    string
	// Verdict is committed together with the decision: both are stored, or neither is. If
	// another verdict was stored first, the Outcome's error is ErrRaced. The ledger sets
	// UsedBy of a verdict that is [Used]. Verdict is nil for a decision without an
	// approval.
	Verdict *Verdict
}

// OperatorPrefix is the prefix of an operator's credential. The id of an API key has no
// colon, so it never begins with this prefix.
const OperatorPrefix = "operator:"

// Outcome is the first decision of an intent, which another caller may have made.
type Outcome struct {
	// Record is the first decision of the intent. It may be shared and must not be
	// modified. A Record can keep the memory of its whole batch alive, so copy the parts
	// that are kept for long.
	Record *storage.Record
	// Replayed reports that the intent was decided before.
	Replayed bool
	// Err is nil, ErrIntentConflict, ErrIntentExpired or, for a decision with a verdict,
	// ErrRaced. If Err is not nil, Record is nil.
	Err error
}

// Pending is a commit under way. Wait must be called exactly once.
type Pending struct {
	ledger *Ledger
	waiter *waiter
}

// Enqueue makes the records of entries and queues them for one batch. The entries must be
// of one organization, and each needs its own reservation. If whole is set, either all
// entries are stored or none. Enqueue ends the reservations even if it returns an error.
// Only the first decision of an intent uses up a place in the meter.
//
// Its error is [ErrOverloaded] or [ErrClosed], or says why an entry is not a valid
// decision.
func (l *Ledger) Enqueue(ctx context.Context, entries []*Entry, whole bool) (Pending, error) {
	w := l.waiters.get(len(entries))
	err := l.enqueue(ctx, w, entries, whole)
	for _, e := range entries {
		if err != nil {
			e.Reservation.Release()
		}
		e.Reservation = nil // the committer ends the reservation
	}
	if err != nil {
		return Pending{}, fmt.Errorf("committing a decision: %w", err)
	}
	return Pending{l, w}, nil
}

func (l *Ledger) enqueue(ctx context.Context, w *waiter, entries []*Entry, whole bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.whole = whole
	for i, e := range entries {
		if e.Reservation == nil || e.Reservation.quota == nil {
			return errors.New("it has no reservation")
		}
		record, err := project(&l.cfg, e)
		if err != nil {
			return err
		}
		w.places[i] = place{record: record, leaf: record.Receipt.LeafHash(), reserved: e.Reservation}
		if v := e.Verdict; v != nil {
			if v.Verdict == Used {
				v.UsedBy = record.DecisionID
			}
			w.places[i].verdict = v.entry()
			w.entries = append(w.entries, w.places[i].verdict)
		}
	}
	return l.queue.put(w)
}

// Wait puts the Outcome of each entry into outs, which must have room for all of them.
// When it returns nil, each Outcome without an error survives a crash, and its intent
// never gets another decision.
//
// Its error is [ErrClosed], [ErrRaced] for entries that are stored all or none, or the
// reason why the store could not commit them. If ctx ends, Wait returns ctx's error at
// once. The entries may still become final after that. To learn their Outcomes, commit
// the same intents again.
func (p Pending) Wait(ctx context.Context, outs []Outcome) error {
	if err := p.ledger.waiters.wait(ctx, p.waiter, outs, nil); err != nil {
		return fmt.Errorf("committing a decision: %w", err)
	}
	return nil
}
