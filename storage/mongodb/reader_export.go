package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/ledger/receipt"
	"writ/storage"
)

// View calls f with the documents.
func (r *Reader) View(ctx context.Context, f func(storage.Reader) error) error {
	return r.read(ctx, "reading documents", func(ctx context.Context) error { return f(&documents{ctx: ctx, s: r.s}) })
}

// Size returns the number of org's rows and the newest one's id, empty if there is none.
func (r *Reader) Size(ctx context.Context, org string) (rows int, newest string, err error) {
	if err := checkOrg(org); err != nil {
		return 0, "", err
	}
	err = r.read(ctx, "counting rows", func(ctx context.Context) error {
		n, err := r.s.records().CountDocuments(ctx, bson.D{{Key: "o", Value: org}})
		if err != nil {
			return failed(ctx, "counting rows", err)
		}
		last, _, err := r.s.ListRecords(ctx, org, storage.Filter{}, storage.Page{Limit: 1})
		if rows = int(n); len(last) > 0 {
			newest = last[0].DecisionID
		}
		return err
	})
	return rows, newest, err
}

// RowsOf calls f for each row of org after an id, in the order of their ids. An empty id
// is before all.
func (r *Reader) RowsOf(ctx context.Context, org, after string, f func(*storage.Record) error) error {
	if err := checkOrg(org); err != nil {
		return err
	}
	for more := true; more; {
		selected := bson.D{{Key: "o", Value: org}}
		if after != "" {
			id, ok := storage.ParseID(after)
			if !ok {
				return fmt.Errorf("rows after %.64q, which is no id", after)
			}
			selected = append(selected, bson.E{Key: "d", Value: bson.D{{Key: "$gt", Value: id[:]}}})
		}
		n := 0
		err := r.read(ctx, "reading rows", func(ctx context.Context) error {
			cursor, err := r.s.records().Find(ctx, selected, options.Find().SetSort(oldestFirst).SetLimit(int64(r.most)))
			return eachRaw(&documents{ctx: ctx, s: r.s}, cursor, err, func(raw bson.Raw) (bool, error) {
				w, err := parseRow(org, raw)
				if err != nil {
					return false, &storage.BreakError{OrganizationID: org, DecisionID: w.id.String(), Err: err}
				}
				n++
				after = w.record.DecisionID
				return true, f(w.record)
			})
		})
		if err != nil {
			return err
		}
		more = n == r.most
	}
	return nil
}

// TombstonesOf calls f for each tombstone of org. Only the index of intents has them, so
// it reads some intents at a time. The server orders these by their length first.
func (r *Reader) TombstonesOf(ctx context.Context, org string, f func(*storage.Tombstone) error) error {
	if err := checkOrg(org); err != nil {
		return err
	}
	for lower, last := range intentKeys(org) {
		for lower != nil {
			var err error
			if lower, err = r.tombstonesFrom(ctx, lower, last, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// tombstonesFrom is TombstonesOf for some intents up to last. It returns the key to
// continue from, nil at the end.
func (r *Reader) tombstonesFrom(ctx context.Context, lower, last []byte, f func(*storage.Tombstone) error) (next []byte, err error) {
	err = r.read(ctx, "reading what is left of removed rows", func(ctx context.Context) error {
		var row struct {
			Intent []byte `bson:"_id"`
		}
		keys := bson.D{{Key: "$gte", Value: lower}, {Key: "$lte", Value: last}}
		err := r.s.records().FindOne(ctx, bson.D{{Key: "_id", Value: keys}}, options.FindOne().SetSort(bson.D{{Key: "_id", Value: 1}}).
			SetSkip(int64(r.most)).SetProjection(bson.D{{Key: "_id", Value: 1}})).Decode(&row)
		if next = row.Intent; next != nil {
			keys[1] = bson.E{Key: "$lt", Value: next}
		} else if !errors.Is(err, mongo.ErrNoDocuments) {
			return failed(ctx, "reading what is left of removed rows", err)
		}
		removed := bson.D{{Key: "_id", Value: keys}, {Key: "g", Value: bson.D{{Key: "$exists", Value: true}}}}
		return r.scan(ctx, recordsName, removed, func(raw bson.Raw) error {
			_, t, err := readTombstone(raw)
			if err != nil {
				return err
			}
			return f(t)
		})
	})
	return next, err
}

func readTombstone(raw bson.Raw) (w parsedRow, t *storage.Tombstone, err error) {
	var left tombstone
	if err := decode(raw, &left); err != nil {
		return w, nil, err
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
	t = &storage.Tombstone{OrganizationID: org, IntentID: w.record.IntentID, ApprovalID: w.record.ApprovalID, DecisionID: w.record.DecisionID, Imported: left.Imported}
	for _, l := range left.Left {
		if len(l.Chain) != 16 || len(l.Hash) != 32 || l.Index < 0 || l.Index > math.MaxUint32 {
			return w, nil, &storage.BreakError{OrganizationID: org, DecisionID: t.DecisionID, Err: errors.New("what is left of it is no leaf")}
		}
		t.Leaves = append(t.Leaves, receipt.Leaf{Chain: [16]byte(l.Chain), Seq: uint64(l.Seq), Index: uint32(l.Index), Hash: [32]byte(l.Hash)})
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
