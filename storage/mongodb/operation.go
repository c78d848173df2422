package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// do runs an operation of the store with the timeout s.timeout. org may be empty.
func (s *database) do(ctx context.Context, org, doing string, f func(context.Context) error) error {
	return s.scan(ctx, org, doing, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		return f(ctx)
	})
}

// scan does the same as do, but without a timeout of the whole operation. The driver bounds each
// command. If no operation can succeed, scan returns an error at once. Errors of the server become
// storage.ErrUnavailable.
func (s *database) scan(ctx context.Context, org, doing string, f func(context.Context) error) error {
	if err := s.check(ctx, org); err != nil {
		return err
	}
	if !s.at.IsZero() {
		return failed(ctx, doing, s.readAt(ctx, s.at, f))
	}
	return failed(ctx, doing, f(ctx))
}

// latest does the same as scan, with a context whose reads include every earlier commit. It asks
// the primary for its operation time and reads the state at that time. The primary waits until a
// majority has reached it.
func (s *database) latest(ctx context.Context, org, doing string, f func(context.Context) error) error {
	return s.scan(ctx, org, doing, func(ctx context.Context) error {
		if !s.at.IsZero() {
			return f(ctx)
		}
		at, err := s.now(ctx)
		if err != nil {
			return err
		}
		return s.readAt(ctx, at, f)
	})
}

func (s *Store) rewrite(ctx context.Context, org, doing string, f func(context.Context) error) error {
	return s.scan(ctx, org, doing, func(ctx context.Context) error { return s.transaction(ctx, &s.bulk, f) })
}

// readAt calls f with a context that reads the committed state at a time.
func (s *database) readAt(ctx context.Context, at bson.Timestamp, f func(context.Context) error) error {
	session, err := s.client.StartSession(options.Session().SetSnapshot(true).SetSnapshotTime(at))
	if err != nil {
		return err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	return f(mongo.NewSessionContext(ctx, session))
}

// now returns the primary's operation time.
func (s *database) now(ctx context.Context) (bson.Timestamp, error) {
	now, err := s.db.RunCommand(ctx, doc("ping", 1)).Raw()
	if err != nil {
		return bson.Timestamp{}, err
	}
	t, i, ok := now.Lookup("operationTime").TimestampOK()
	if !ok {
		return bson.Timestamp{}, errors.New("the server tells no time")
	}
	return bson.Timestamp{T: t, I: i}, nil
}

func (s *database) check(ctx context.Context, org string) error {
	return cmp.Or(ctx.Err(), checkOrg(org), s.available())
}

// available returns an error if no beat has succeeded for longer than both the lease and an
// operation's timeout. An operation that begins then would only time out. A store without a slot
// has no beats.
func (s *database) available() error {
	if reason := s.slot.foreign.Load(); reason != nil {
		return *reason
	}
	if silence := s.ago(&s.slot.beaten); s.slot.holder != "" && silence > max(s.timeout, lease) {
		return fmt.Errorf("%w: no write has come through to a majority for %v", storage.ErrUnavailable,
			silence.Round(100*time.Millisecond))
	}
	return nil
}

// refusal is an error that does not come from the server. Either stored data is invalid, or a
// function of the caller has failed.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// The server's error codes for a read of a state that it does not keep any more.
const (
	snapshotTooOld      = 239
	snapshotUnavailable = 246
)

// failed converts the error of an operation to an error for callers of the store.
func failed(ctx context.Context, doing string, err error) error {
	if r, ok := errors.AsType[refusal](err); ok {
		return r.error
	}
	_, broken := errors.AsType[*storage.BreakError](err)
	switch {
	case err == nil || broken || errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrCorrupt):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case errors.Is(err, storage.ErrUnavailable):
		return fmt.Errorf("%s: %w", doing, err)
	case hasCode(err, snapshotTooOld) || hasCode(err, snapshotUnavailable):
		return fmt.Errorf("%s: %w: %w", doing, storage.ErrPast, err)
	}
	return fmt.Errorf("%w: %s: %w", storage.ErrUnavailable, doing, err)
}

var errCorrupt = fmt.Errorf("the store is %w", storage.ErrCorrupt)

// ifAny converts the error of a read of one document. It returns nil if the document is missing.
func ifAny(err error) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil
	}
	return err
}

// found converts the error of a read of one document. It returns ErrNotFound if the document is
// missing.
func found(err error) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return refusal{storage.ErrNotFound}
	}
	return err
}

// find returns the selected documents of a collection.
func find[T any](
	ctx context.Context, c *mongo.Collection, selected bson.D, o ...options.Lister[options.FindOptions],
) (rows []T, err error) {
	cursor, err := c.Find(ctx, selected, o...)
	if err == nil {
		err = cursor.All(ctx, &rows)
	}
	return rows, err
}

// each calls f with each document of cursor until f returns false. If the query has failed, its err
// is returned.
func each[T any](ctx context.Context, cursor *mongo.Cursor, err error, f func(*T) (bool, error)) error {
	return eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
		row := new(T)
		if err := bson.Unmarshal(raw, row); err != nil {
			return false, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		return f(row)
	})
}

// eachRaw does the same as each, with raw documents. A document is valid only during the call of f.
func eachRaw(ctx context.Context, cursor *mongo.Cursor, err error, f func(bson.Raw) (bool, error)) error {
	if err != nil {
		return err
	}
	defer cursor.Close(ctx) //nolint:errcheck // all documents are already read
	for cursor.Next(ctx) {
		if more, err := f(cursor.Current); !more || err != nil {
			return refuse(err)
		}
	}
	return cursor.Err()
}
