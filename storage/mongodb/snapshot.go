package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Snapshot reads the database as it was when the Snapshot was opened. It changes nothing, so
// replicas may run at the same time. The server keeps the state for
// minSnapshotHistoryWindowInSeconds, which is five minutes by default. Reads after this time fail with
// [storage.ErrPast].
type Snapshot struct {
	*database
	shared bool // the connections are those of a store
}

// OpenSnapshot opens the database of o. It writes nothing.
func OpenSnapshot(ctx context.Context, o Options) (_ *Snapshot, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("MongoDB: %w", redact(whyNot(err, time.Since(began)), o.URI))
		}
	}()
	d, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &Snapshot{database: d}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Snapshot) open(ctx context.Context) (err error) {
	if r.at, err = r.now(ctx); err != nil {
		return err
	}
	return r.readAt(ctx, r.at, func(ctx context.Context) error {
		if _, err := r.checkSchema(ctx); err != nil {
			return err
		}
		err := r.db.Collection(countersName).FindOne(ctx, doc("_id", epochCounter)).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return fmt.Errorf("the database %s has nothing of writ's: check the URI and the name of the database",
				r.db.Name())
		}
		return err
	})
}

// Freeze opens a Snapshot of the database on the store's own connections.
func (s *Store) Freeze(ctx context.Context) (*Snapshot, error) {
	r := &Snapshot{shared: true, database: &database{
		client: s.client, db: s.db, timeout: s.timeout, metrics: s.metrics, began: s.began, schema: s.schema,
		oldest: s.oldest, sharded: s.sharded,
	}}
	r.health = health{log: s.health.log, troubles: make(map[string]error)}
	return r, s.do(ctx, "", "freezing the database", func(ctx context.Context) error { return r.open(ctx) })
}

// Renew makes r read the present state. No other method may run at the same time.
func (r *Snapshot) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return failed(ctx, "freezing the database", r.open(ctx))
}

// Close closes the connections, unless they are the store's.
func (r *Snapshot) Close() error {
	if r.shared {
		return nil
	}
	return r.client.Disconnect(context.Background())
}

// eachOf calls f for the selected documents of a collection, in the order of their _id.
func eachOf[T any](ctx context.Context, s *database, collection string, selected bson.D, f func(row *T) error) error {
	cursor, err := s.db.Collection(collection).Find(ctx, selected, options.Find().SetSort(doc("_id", 1)))
	return each(ctx, cursor, err, func(row *T) (bool, error) { return true, f(row) })
}

// EachEntry calls f for each entry that is not a settlement.
func (r *Snapshot) EachEntry(ctx context.Context, f func(*storage.Entry) error) error {
	return r.scan(ctx, "", "reading entries", func(ctx context.Context) error {
		return eachOf(ctx, r.database, entriesName, doc(), func(row *entryRow) error {
			e, err := row.entry()
			if err != nil {
				return &storage.BreakError{OrganizationID: row.Org, Err: err}
			}
			return f(e)
		})
	})
}

// EachRow calls f for each row of org in the order of ids. Only rows with an id in (after, upTo]
// are read. An empty after or upTo is no bound. Rows without an id come first.
func (r *Snapshot) EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error {
	selected, err := rowsWithin(org, after, upTo)
	if err != nil {
		return err
	}
	selected = r.onShard(org, selected)
	return r.scan(ctx, org, "reading rows", func(ctx context.Context) error {
		cursor, err := r.records().Find(ctx, selected, options.Find().SetSort(oldestFirst))
		return eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
			w, err := parseRow(org, raw)
			if err != nil {
				return false, &storage.BreakError{OrganizationID: org, DecisionID: w.id.String(), Err: err}
			}
			return true, f(w.record)
		})
	})
}

// rowsWithin selects org's rows within bounds.
func rowsWithin(org, after, upTo string) (bson.D, error) {
	var ids []any
	for i, bound := range []string{after, upTo} {
		if bound == "" {
			continue
		}
		id, ok := storage.ParseID(bound)
		if !ok {
			return nil, fmt.Errorf("rows from %.64q, which is no id", bound)
		}
		if i == 0 {
			ids = append(ids, "$gt", id[:])
		} else { // a row without an id comes first
			ids = append(ids, "$not", doc("$gt", id[:]))
		}
	}
	if len(ids) == 0 {
		return doc(recordOrg, org), nil
	}
	return doc(recordOrg, org, recordID, doc(ids...)), nil
}

// EachTombstone calls f for each tombstone of org, or of every organization if org is empty. If
// org is empty, EachTombstone returns a BreakError for a document that is neither a row nor a
// tombstone.
func (r *Snapshot) EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error {
	return r.scan(ctx, org, "reading tombstones", func(ctx context.Context) error {
		read := func(cursor *mongo.Cursor, err error) error {
			return eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
				_, t, err := readTombstone(raw)
				if err != nil {
					return false, err
				}
				return true, f(t)
			})
		}
		forgotten := doc()
		if org != "" {
			forgotten = doc("_id", doc("$gte", forgottenKey{org, []byte{}}, "$lte", forgottenKey{org, uuid.Max[:]}))
		}
		if err := eachOf(ctx, r.database, forgottenName, forgotten, func(row *forgottenRow) error {
			for i := range row.Left {
				t, err := row.Left[i].forgotten(row)
				if err == nil {
					err = f(t)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if org == "" {
			return read(r.records().Find(ctx, doc("$nor", bson.A{doc(recordOrg, doc("$type", "string"))})))
		}
		for selected := range tombstonesOf(org) {
			if err := read(r.tombstones(ctx, selected)); err != nil {
				return err
			}
		}
		return nil
	})
}

func readTombstone(raw bson.Raw) (w parsedRow, t *storage.Tombstone, err error) {
	var left tombstone
	if err := bson.Unmarshal(raw, &left); err != nil {
		return w, nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	org, err := orgOf(left.Intent)
	if err != nil {
		return w, nil, err
	}
	w, err = parseRow(org, raw)
	if err == nil && len(left.Removed) == 0 {
		err = errors.New("it is neither a row nor a tombstone")
	}
	if err != nil {
		err = fmt.Errorf("intent %q: %w", w.record.IntentID, err)
		return w, nil, &storage.BreakError{OrganizationID: org, Err: err}
	}
	t = &storage.Tombstone{OrganizationID: org, IntentID: w.record.IntentID, ApprovalID: w.record.ApprovalID,
		DecisionID: w.record.DecisionID, Imported: left.Imported}
	return w, t, left.addLeaves(t)
}

// forgotten returns a tombstone of a row of them.
func (left *tombstone) forgotten(row *forgottenRow) (*storage.Tombstone, error) {
	org := row.Key.Org
	if len(left.Removed) != idLen {
		return nil, &storage.BreakError{OrganizationID: org,
			Err: fmt.Errorf("a forgotten decision has an id of %d bytes", len(left.Removed))}
	}
	t := &storage.Tombstone{OrganizationID: org, DecisionID: uuid.UUID(left.Removed).String(), Forgotten: row.At}
	return t, left.addLeaves(t)
}

func (left *tombstone) addLeaves(t *storage.Tombstone) error {
	for _, l := range left.Left {
		if len(l.Chain) != 16 || len(l.Hash) != 32 || l.Index < 0 || l.Index > math.MaxUint32 {
			return &storage.BreakError{OrganizationID: t.OrganizationID, DecisionID: t.DecisionID,
				Err: errors.New("its tombstone has an invalid leaf")}
		}
		t.Leaves = append(t.Leaves,
			receipt.Leaf{Chain: [16]byte(l.Chain), Seq: uint64(l.Seq), Index: uint32(l.Index), Hash: [32]byte(l.Hash)})
	}
	return nil
}

// orgOf returns the organization in the key of a record.
func orgOf(key []byte) (string, error) {
	for i := 0; i+1 < len(key); i++ {
		if key[i] != 0 {
			continue
		}
		if key[i+1] == 1 {
			return strings.ReplaceAll(string(key[:i]), "\x00\xff", "\x00"), nil
		}
		i++
	}
	return "", &storage.BreakError{Err: fmt.Errorf("the key of a row, %x, has no organization", key)}
}
