package mongodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// Reader reads a whole history to prove it, with the meters, and the documents with their
// indexes. It compares these with one another. Its caller compares the rows with the
// signatures.
//
// It reads the database as it was when the Reader was opened and changes nothing, so
// replicas may run. The server keeps that state for minSnapshotHistoryWindowInSeconds,
// by default five minutes. Reading after that is an error.
type Reader struct {
	s  *Store
	at bson.Timestamp

	chains [][16]byte
	most   int // rows of a part

	mu     sync.Mutex // guards the fields below
	orgs   map[string]struct{}
	meters map[meter]decided // their values by the rows
}

// decided is how many decisions are certainly of a month, and how many may be.
type decided struct{ sure, either int64 }

const partRows = 4096

// OpenReader opens the database of o and makes nothing in it.
func OpenReader(ctx context.Context, o Options) (_ *Reader, err error) {
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
	r := &Reader{s: s, most: partRows, orgs: make(map[string]struct{}), meters: make(map[meter]decided)}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) open(ctx context.Context) (err error) {
	if r.at, err = r.s.now(ctx); err != nil {
		return err
	}
	return r.read(ctx, "reading the chains", func(ctx context.Context) error {
		err := r.s.db.Collection(countersName).FindOne(ctx, bson.D{{Key: "_id", Value: revisionCounter}}).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return fmt.Errorf("the database %s has nothing of writ's: check the URI and the name of the database", r.s.db.Name())
		}
		if err == nil {
			r.chains, err = r.s.chains(ctx)
		}
		return err
	})
}

// Close closes the connections.
func (r *Reader) Close() error { return r.s.client.Disconnect(context.Background()) }

// read runs f with a context that reads r's state. Corrupt data is a break.
func (r *Reader) read(ctx context.Context, doing string, f func(ctx context.Context) error) error {
	session, err := r.s.snapshotAt(r.at)
	if err != nil {
		return failed(ctx, doing, err)
	}
	defer session.EndSession(ctx)
	err = f(mongo.NewSessionContext(ctx, session))
	if broken := (*storage.BreakError)(nil); errors.Is(err, errCorrupt) && !errors.As(err, &broken) {
		return &storage.BreakError{Err: err}
	}
	return err
}

// scan calls f for the selected documents of a collection, in the order of their _id.
func (r *Reader) scan(ctx context.Context, collection string, selected bson.D, f func(raw bson.Raw) error) error {
	cursor, err := r.s.db.Collection(collection).Find(ctx, selected, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	return eachRaw(&documents{ctx: ctx, s: r.s}, cursor, err, func(raw bson.Raw) (bool, error) { return true, f(raw) })
}

func scanRows[T any](ctx context.Context, r *Reader, collection string, selected bson.D, f func(row *T) error) error {
	return r.scan(ctx, collection, selected, func(raw bson.Raw) error {
		row := new(T)
		if err := decode(raw, row); err != nil {
			return err
		}
		return f(row)
	})
}

func decode(raw bson.Raw, v any) error {
	if err := bson.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return nil
}

// Chains calls f with the end of each chain that has heads.
func (r *Reader) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return r.read(ctx, "reading the chains", func(ctx context.Context) error { return r.s.Chains(ctx, f) })
}

// Heads calls f for each head of a chain from a sequence on, in order.
func (r *Reader) Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	return r.read(ctx, "reading heads", func(ctx context.Context) error { return r.s.Heads(ctx, chain, from, f) })
}

// Entries calls f for each entry that is not part of a row.
func (r *Reader) Entries(ctx context.Context, f func(*storage.Entry) error) error {
	return r.read(ctx, "reading entries", func(ctx context.Context) error {
		return scanRows(ctx, r, entriesName, bson.D{}, func(row *entryRow) error {
			e, err := row.entry()
			if err != nil {
				return &storage.BreakError{OrganizationID: row.Org, Err: err}
			}
			return f(e)
		})
	})
}

// Tombstones calls f for each removed row. A document that is neither a tombstone nor in
// a part is a break.
func (r *Reader) Tombstones(ctx context.Context, f func(*storage.Tombstone) error) error {
	noRow := bson.D{{Key: "$nor", Value: bson.A{bson.D{{Key: "o", Value: bson.D{{Key: "$type", Value: "string"}}}}}}}
	return r.read(ctx, "reading what is left of removed rows", func(ctx context.Context) error {
		return r.scan(ctx, recordsName, noRow, func(raw bson.Raw) error {
			w, t, err := readTombstone(raw)
			if err != nil {
				return err
			}
			if t.ApprovalID != "" || len(t.Leaves) > 0 && !r.own(t.Leaves[0].Chain) {
				return f(t)
			}
			at := storage.IDTime(w.id)
			r.decided(t.OrganizationID, storage.MonthOf(at.Add(-storage.MaxSkew)), storage.MonthOf(at.Add(storage.MaxSkew)))
			return f(t)
		})
	})
}

// decided counts a removed row. It is of one of two months, which may be the same.
func (r *Reader) decided(org string, first, last storage.Month) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range []meter{{org, first}, {org, last}} {
		n := r.meters[m]
		if first == last {
			n.sure++
			r.meters[m] = n
			return
		}
		n.either++
		r.meters[m] = n
	}
}

// own reports whether a chain is of this store. Rows under heads of other chains were
// imported, and no meter counts them.
func (r *Reader) own(chain [16]byte) bool { return slices.Contains(r.chains, chain) }

// Parts divides the rows by their indexed ids. The parts can be read at the same time, and
// all of them must be read before Census.
func (r *Reader) Parts(ctx context.Context) (parts []storage.Part, err error) {
	err = r.read(ctx, "dividing the rows", func(ctx context.Context) error {
		return r.s.Organizations(ctx, func(org string) error {
			r.orgs[org] = struct{}{}
			ids := bson.D{} // the first part also has the rows without an id
			for {
				next, err := r.cut(ctx, org, ids)
				if err != nil {
					return failed(ctx, "dividing the rows", err)
				}
				selected := bson.D{{Key: "o", Value: org}}
				switch {
				case next != nil && len(ids) == 0:
					selected = append(selected, bson.E{Key: "d", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: next}}}}})
				case next != nil:
					selected = append(selected, bson.E{Key: "d", Value: append(ids, bson.E{Key: "$lt", Value: next})})
				case len(ids) > 0:
					selected = append(selected, bson.E{Key: "d", Value: ids})
				}
				parts = append(parts, func(ctx context.Context, f func(*storage.Record) error) error { return r.part(ctx, org, selected, f) })
				if next == nil {
					return nil
				}
				ids = bson.D{{Key: "$gte", Value: next}}
			}
		})
	})
	return parts, err
}

// cut returns the first id of the part that follows the part at ids, nil if there is
// none.
func (r *Reader) cut(ctx context.Context, org string, ids bson.D) ([]byte, error) {
	selected := bson.D{{Key: "o", Value: org}}
	if len(ids) > 0 {
		selected = append(selected, bson.E{Key: "d", Value: ids})
	}
	var row struct {
		ID []byte `bson:"d"`
	}
	err := r.s.records().FindOne(ctx, selected, options.FindOne().SetSort(oldestFirst).SetSkip(int64(r.most)).
		SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "d", Value: 1}})).Decode(&row)
	return row.ID, ifAny(err)
}

// part reads some rows of an organization.
func (r *Reader) part(ctx context.Context, org string, selected bson.D, f func(*storage.Record) error) error {
	months := make(map[storage.Month]int64)
	err := r.read(ctx, "reading rows", func(ctx context.Context) error {
		cursor, err := r.s.records().Find(ctx, selected, options.Find().SetSort(oldestFirst))
		return eachRaw(&documents{ctx: ctx, s: r.s}, cursor, err, func(raw bson.Raw) (bool, error) {
			w, err := parseRow(org, raw)
			if err == nil {
				err = w.whole()
			}
			if err != nil {
				return false, &storage.BreakError{OrganizationID: org, DecisionID: w.id.String(), Err: err}
			}
			if chain, err := w.record.Receipt.Inclusion().Chain(); w.record.Metered() && (err != nil || r.own(chain)) {
				months[storage.MonthOf(w.record.DecidedAt)]++
			}
			return true, f(w.record)
		})
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for month, n := range months {
		m := meter{org, month}
		r.meters[m] = decided{r.meters[m].sure + n, r.meters[m].either}
	}
	return err
}

// whole returns an error unless Append could have stored the row.
func (w *parsedRow) whole() error {
	r := w.record
	switch skew := r.DecidedAt.Sub(storage.IDTime(w.id)).Abs(); {
	case r.Decision < engine.Allow || r.Decision > engine.Deny:
		return errors.New("its row has no decision")
	case w.id.Version() != 7 || skew > storage.MaxSkew:
		return fmt.Errorf("its id is not of the time at which it was decided, %s", r.DecidedAt)
	}
	return nil
}

// Census compares the meters, the chains, and the documents with their indexes with the
// rows that all parts have read.
func (r *Reader) Census(ctx context.Context) (storage.Census, error) {
	err := r.read(ctx, "reading meters", func(ctx context.Context) error {
		meters, err := r.stored(ctx)
		if err != nil {
			return err
		}
		return holds(meters, maps.Clone(r.meters))
	})
	if err == nil {
		err = r.read(ctx, "reading documents", r.found)
	}
	return storage.Census{Organizations: len(r.orgs)}, err
}
