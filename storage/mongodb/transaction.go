package mongodb

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// Labels that the server and the driver give to errors.
const (
	transient     = "TransientTransactionError"
	unknownCommit = "UnknownTransactionCommitResult"
)

func hasLabel(err error, label string) bool {
	var e mongo.LabeledError
	return errors.As(err, &e) && e.HasErrorLabel(label)
}

// errUnknownCommit marks the error of a commit with an unknown outcome.
var errUnknownCommit = errors.New("whether the transaction was committed is unknown")

// transact runs f in a transaction of a session. It retries after conflicts with other
// transactions, until ctx ends. If an operation with f's context fails, f must return its error. A
// new transaction ends the session's previous transaction, even if the outcome of that transaction
// is unknown.
func transact(ctx context.Context, session *mongo.Session, f func(context.Context) error) error {
	for try := 0; ; try++ {
		err := transactOnce(ctx, session, f)
		if err == nil || !hasLabel(err, transient) || errors.Is(err, errUnknownCommit) || !pause(ctx, try) {
			return err
		}
	}
}

// transactOnce does the same as transact, without a retry.
func transactOnce(ctx context.Context, session *mongo.Session, f func(context.Context) error) error {
	if err := start(ctx, session); err != nil {
		return err
	}
	if err := f(mongo.NewSessionContext(ctx, session)); err != nil {
		abort(ctx, session)
		return err
	}
	return commit(ctx, session)
}

// transactor runs the transactions of one kind of work. It runs one transaction at a time, in
// its own session.
type transactor struct {
	session *mongo.Session
	busy    chan struct{} // has an element while a transaction runs
}

// transaction does the same as transact, in the session of t. It waits at most s.timeout until the
// session is free. Then the transaction has s.timeout.
func (s *Store) transaction(ctx context.Context, t *transactor, f func(context.Context) error) error {
	waiting, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	select {
	case t.busy <- struct{}{}:
	case <-waiting.Done():
		return waiting.Err()
	}
	defer func() { <-t.busy }()
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return transact(bounded, t.session, f)
}

// start begins a transaction. If a commit was abandoned, the driver considers the earlier
// transaction still open. Then start first aborts the earlier transaction.
func start(ctx context.Context, session *mongo.Session) error {
	snapshot := options.Transaction().SetReadConcern(readconcern.Snapshot())
	if err := session.StartTransaction(snapshot); err == nil {
		return nil
	}
	abort(ctx, session)
	return session.StartTransaction(snapshot)
}

func abort(ctx context.Context, session *mongo.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	session.AbortTransaction(ctx) //nolint:errcheck // if this fails, the next transaction ends it
}

// endCommit resets a session whose commit was retried and timed out. Without the reset the driver
// treats the session as committing. It then marks every command of the next transaction as the
// first command, and the server refuses this. Beginning and aborting an empty transaction resets
// the session.
func endCommit(ctx context.Context, session *mongo.Session) {
	if session.StartTransaction() == nil { // otherwise start aborts the transaction
		abort(ctx, session)
	}
}

// commit commits the transaction. It retries while the outcome is unknown, until ctx ends.
func commit(ctx context.Context, session *mongo.Session) error {
	for try := 0; ; try++ {
		err := session.CommitTransaction(ctx)
		switch {
		case err == nil || hasLabel(err, transient) && !hasLabel(err, unknownCommit):
			return err
		case !hasLabel(err, unknownCommit) && ctx.Err() == nil && !mongo.IsTimeout(err) && !mongo.IsNetworkError(err):
			return err
		case !pause(ctx, try):
			endCommit(ctx, session)
			return errors.Join(errUnknownCommit, err)
		}
	}
}

// pause waits before another try. The wait is longer for later tries. pause returns false if ctx
// has ended.
func pause(ctx context.Context, try int) bool {
	longest := min(time.Millisecond<<min(try, 6), 32*time.Millisecond)
	t := time.NewTimer(time.Duration(rand.Int64N(int64(longest)))) //nolint:gosec // the number is no secret
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
