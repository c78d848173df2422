package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
	"writ/storage/receipt"
)

// Snapshot reads the database as it was when the Snapshot was opened and changes nothing, so
// replicas may run. The server keeps that state for minSnapshotHistoryWindowInSeconds, by
// default five minutes. Reading after that is an error.
type Snapshot struct {
	reading
	s    *Store
	most int // rows of a cursor
}

// reading has the methods of a [Store] that a Snapshot has.
type reading interface {
	Chains(ctx context.Context, f func(receipt.Chain) error) error
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	Organizations(ctx context.Context, f func(org string) error) error
	View(ctx context.Context, f func(storage.Reader) error) error
	Changes(ctx context.Context, after uint64, most int) ([]storage.Change, error)
	CountExpired(ctx context.Context, org string, before time.Time, most int) (storage.Expired, error)
	ListRecords(ctx context.Context, org string, f storage.Filter, p storage.Page) ([]*storage.Record, string, error)
}

const cursorRows = 4096

// OpenSnapshot opens the database of o and makes nothing in it.
func OpenSnapshot(ctx context.Context, o Options) (_ *Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("MongoDB: %w", redact(err, o.URI))
		}
	}()
	s, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &Snapshot{reading: s, s: s, most: cursorRows}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Snapshot) open(ctx context.Context) (err error) {
	if r.s.at, err = r.s.now(ctx); err != nil {
		return err
	}
	return r.s.readAt(ctx, r.s.at, func(ctx context.Context) error {
		err := r.s.db.Collection(countersName).FindOne(ctx, doc("_id", revisionCounter)).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return fmt.Errorf("the database %s has nothing of writ's: check the URI and the name of the database",
				r.s.db.Name())
		}
		return err
	})
}

// Close closes the connections.
func (r *Snapshot) Close() error { return r.s.client.Disconnect(context.Background()) }

// eachOf calls f for the selected documents of a collection, in the order of their _id.
func eachOf[T any](ctx context.Context, s *Store, collection string, selected bson.D, f func(row *T) error) error {
	cursor, err := s.db.Collection(collection).Find(ctx, selected, options.Find().SetSort(doc("_id", 1)))
	return each(ctx, cursor, err, func(row *T) (bool, error) { return true, f(row) })
}

// EachEntry calls f for each entry that is no settlement.
func (r *Snapshot) EachEntry(ctx context.Context, f func(*storage.Entry) error) error {
	return r.s.scan(ctx, "", "reading entries", func(ctx context.Context) error {
		return eachOf(ctx, r.s, entriesName, doc(), func(row *entryRow) error {
			e, err := row.entry()
			if err != nil {
				return &storage.BreakError{OrganizationID: row.Org, Err: err}
			}
			return f(e)
		})
	})
}

// EachRow calls f for each row of org with an id that is greater than after and not greater
// than upTo, in the order of ids, those without an id first. An empty id is no bound. It
// reads some rows with a cursor, which must not live longer than an operation.
func (r *Snapshot) EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error {
	for more := true; more; {
		selected, err := rowsWithin(org, after, upTo)
		if err != nil {
			return err
		}
		n := 0
		err = r.s.scan(ctx, org, "reading rows", func(ctx context.Context) error {
			cursor, err := r.s.records().Find(ctx, selected,
				options.Find().SetSort(oldestFirst).SetLimit(int64(r.most)))
			err = eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
				w, err := parseRow(org, raw)
				if err != nil {
					return false, &storage.BreakError{OrganizationID: org, DecisionID: w.id.String(), Err: err}
				}
				n++
				after = w.record.DecisionID
				return true, f(w.record)
			})
			if err != nil || n < r.most {
				return err
			}
			return r.single(ctx, org, after)
		})
		if err != nil {
			return err
		}
		more = n == r.most
	}
	return nil
}

// single returns a break if several rows of org have an id: what is read after it would
// leave the others out.
func (r *Snapshot) single(ctx context.Context, org, id string) error {
	bytes, _ := storage.ParseID(id)
	n, err := r.s.records().CountDocuments(ctx, doc(recordOrg, org, recordID, bytes[:]), options.Count().SetLimit(2))
	if err == nil && n > 1 {
		err = &storage.BreakError{OrganizationID: org, DecisionID: id, Err: errors.New("several rows have its id")}
	}
	return err
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
		} else { // a row without an id is not greater
			ids = append(ids, "$not", doc("$gt", id[:]))
		}
	}
	if len(ids) == 0 {
		return doc(recordOrg, org), nil
	}
	return doc(recordOrg, org, recordID, doc(ids...)), nil
}

// EachTombstone calls f for what is left of each removed row of org, of every organization
// where org is empty. Then a document that is neither a row nor what is left of one is a
// break. Only the index of intents has tombstones, so those of one organization are read
// some intents at a time. The server orders these by their length first.
func (r *Snapshot) EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error {
	const doing = "reading what is left of removed rows"
	if org == "" {
		noRow := doc("$nor", bson.A{doc(recordOrg, doc("$type", "string"))})
		return r.s.scan(ctx, org, doing, func(ctx context.Context) error { return r.s.tombstones(ctx, noRow, f) })
	}
	for lower, last := range intentKeys(org) {
		for lower != nil {
			err := r.s.scan(ctx, org, doing, func(ctx context.Context) (err error) {
				lower, err = r.tombstonesFrom(ctx, lower, last, f)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) tombstones(ctx context.Context, selected bson.D, f func(*storage.Tombstone) error) error {
	return eachOf(ctx, s, recordsName, selected, func(raw *bson.Raw) error {
		_, t, err := readTombstone(*raw)
		if err != nil {
			return err
		}
		return f(t)
	})
}

// tombstonesFrom is EachTombstone for some intents up to last. It returns the key to
// continue from, nil at the end.
func (r *Snapshot) tombstonesFrom(
	ctx context.Context, lower, last []byte, f func(*storage.Tombstone) error,
) (next []byte, err error) {
	var row struct {
		Intent []byte `bson:"_id"`
	}
	keys := doc("$gte", lower, "$lte", last)
	err = r.s.records().FindOne(ctx, doc("_id", keys), options.FindOne().SetSort(doc("_id", 1)).
		SetSkip(int64(r.most)).SetProjection(doc("_id", 1))).Decode(&row)
	if err := ifAny(err); err != nil {
		return nil, err
	}
	if row.Intent != nil {
		keys = doc("$gte", lower, "$lt", row.Intent)
	}
	return row.Intent, r.s.tombstones(ctx, doc("_id", keys, recordRemoved, doc("$exists", true)), f)
}

func readTombstone(raw bson.Raw) (w parsedRow, t *storage.Tombstone, err error) {
	var left tombstone
	if err := bson.Unmarshal(raw, &left); err != nil {
		return w, nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	org, intent, err := cutOrg(left.Intent)
	if err != nil {
		return w, nil, err
	}
	w, err = parseRow(org, raw)
	if err == nil && len(left.Removed) == 0 {
		err = errors.New("it is neither a row nor what is left of one")
	}
	if err != nil {
		return w, nil, &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("intent %q: %w", intent, err)}
	}
	t = &storage.Tombstone{OrganizationID: org, IntentID: w.record.IntentID, ApprovalID: w.record.ApprovalID,
		DecisionID: w.record.DecisionID, Imported: left.Imported}
	for _, l := range left.Left {
		if len(l.Chain) != 16 || len(l.Hash) != 32 || l.Index < 0 || l.Index > math.MaxUint32 {
			return w, nil,
				&storage.BreakError{OrganizationID: org, DecisionID: t.DecisionID,
					Err: errors.New("what is left of it is no leaf")}
		}
		t.Leaves = append(t.Leaves,
			receipt.Leaf{Chain: [16]byte(l.Chain), Seq: uint64(l.Seq), Index: uint32(l.Index), Hash: [32]byte(l.Hash)})
	}
	return w, t, nil
}

// cutOrg splits a key of the collection records, text(org) intent.
func cutOrg(key []byte) (org, intent string, err error) {
	for i := 0; i+1 < len(key); i++ {
		if key[i] != 0 {
			continue
		}
		if key[i+1] == 1 {
			return strings.ReplaceAll(string(key[:i]), "\x00\xff", "\x00"), string(key[i+2:]), nil
		}
		i++
	}
	return "", "", &storage.BreakError{Err: fmt.Errorf("the key of a row, %x, has no organization", key)}
}
