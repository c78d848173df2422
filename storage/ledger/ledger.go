package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ/engine"
	"writ/storage"
	"writ/storage/receipt"
)

// The refusals of a Ledger. Any other error is a failure of its store. No error comes with
// a decision.
var (
	// ErrIntentConflict means that the intent id was decided for another intent of the
	// organization. It tells nothing of that intent.
	ErrIntentConflict = errors.New("the intent id was decided with a different body")
	// ErrIntentExpired means that the intent id was decided and that the decision is past
	// its retention and removed.
	ErrIntentExpired = errors.New("the intent id was decided before and its decision is kept no longer")
	// ErrRaced means that one of the intents that are stored all or none was decided by
	// another caller meanwhile, or a verdict that is stored with its decision. None was
	// stored.
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

	// stop ends the committer's calls of the store. stopped is closed when the committer
	// has returned and nothing else uses the store.
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
// nil. The ledger does not use its store afterwards. If ctx ends first, Close gives up the
// rest, whose callers get an error, and returns ctx's error. Further calls wait likewise.
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

// SignWith signs later batches with s. Its public key must be published before.
func (l *Ledger) SignWith(s *receipt.Signer) { l.cfg.signer.Store(s) }

// Healthy returns nil if no batch has an unknown outcome. After a failed commit it makes
// the ledger find out, as the next commit would. It does not try a write: see
// [storage.Store].
func (l *Ledger) Healthy(ctx context.Context) error {
	if _, err := l.append(ctx); err != nil { // it waits its turn as an organization would
		return fmt.Errorf("checking the ledger: %w", err)
	}
	return nil
}

// Entry is a decision to commit. Its strings and maps become part of the record and of the
// answer: they must be the ledger's to keep, never views of a request's buffer.
type Entry struct {
	Reservation *Reservation // nil once it has ended
	// Intent is what was evaluated. It must have passed [engine.Intent.Validate].
	Intent        *engine.Intent
	PolicyVersion int64
	Result        engine.Result
	// Credential is the id of the API key that asked, or [OperatorPrefix] and the subject of
	// an operator. It is empty if no credential was needed.
	Credential string
	// The revisions of the documents that it was evaluated under, the approval that the
	// caller named, and the digest of its [storage.Details]; each is
	// empty if it is not known.
	PolicyRevision, RulesRevision, AgentRevision int64
	ApprovalID, DetailsDigest                    string
	// Verdict is committed with the decision, both or none: where another verdict stands
	// in its place the Outcome's error is ErrRaced. If it is [Used], the ledger sets its
	// UsedBy. It is nil for a decision without an approval.
	Verdict *Verdict
}

// OperatorPrefix begins the credential of an operator. No id of a key has a colon.
const OperatorPrefix = "operator:"

// Outcome is the first decision of an intent, whoever made it.
type Outcome struct {
	// Record is the first decision of the intent. It may be shared, must not be modified,
	// and can keep the memory of its whole batch alive: copy what is kept for long.
	Record *storage.Record
	// Replayed reports that the intent was decided before, by this or another caller.
	Replayed bool
	// Err is ErrIntentConflict, ErrIntentExpired or, for a decision with a verdict, ErrRaced,
	// and then there is no Record.
	Err error
}

// Pending is a commit under way. Its Wait must be called, once.
type Pending struct {
	ledger *Ledger
	waiter *waiter
}

// Enqueue makes the records of entries, which are of one organization, each with its
// reservation, and queues them for one batch: what is left is waiting. Where whole is set
// they are stored all or none. It ends the reservations, whatever it returns; their places
// in the meter are used up only by what is the first decision of its intent.
//
// Its error is [ErrOverloaded] or [ErrClosed], or says why an entry is no decision.
func (l *Ledger) Enqueue(ctx context.Context, entries []*Entry, whole bool) (Pending, error) {
	w := l.waiters.get(len(entries))
	err := l.enqueue(ctx, w, entries, whole)
	for _, e := range entries {
		if err != nil {
			e.Reservation.Release()
		}
		e.Reservation = nil // it was the committer's to end
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

// Wait puts what stands for each entry into outs, which has room for all of them: when it
// returns nil, each Outcome without an error survives a crash and no other exists for its
// intent.
//
// Its error is [ErrClosed] or, for entries that are stored all or none, [ErrRaced], or says
// why the store could not commit them. If ctx ends meanwhile, Wait returns ctx's error at
// once, and the entries may still become final: committing the same intents again returns
// their Outcomes.
func (p Pending) Wait(ctx context.Context, outs []Outcome) error {
	if err := p.ledger.waiters.wait(ctx, p.waiter, outs, nil); err != nil {
		return fmt.Errorf("committing a decision: %w", err)
	}
	return nil
}
