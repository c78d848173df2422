package mongodb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// older selects org's rows that RemoveRecords may remove.
func older(org string, before time.Time) bson.D {
	id := storage.IDAt(before.Add(-storage.MaxSkew))
	return doc(recordOrg, org, recordID, doc("$lt", id[:]))
}

// oldestFirst sorts the rows of an organization by decision id.
var oldestFirst = doc(recordID, 1)

// CountExpired implements storage.Retention.
func (s *database) CountExpired(
	ctx context.Context, org string, before time.Time, most int,
) (n storage.Expired, err error) {
	if most <= 0 {
		return n, checkOrg(org)
	}
	settled := doc("$cond", bson.A{doc("$gt", bson.A{"$" + recordSettlement, nil}), 1, 0})
	err = s.do(ctx, org, "counting decisions", func(ctx context.Context) error {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		cursor, err := s.records().Aggregate(ctx, mongo.Pipeline{
			doc("$match", s.onShard(org, older(org, before))), doc("$sort", oldestFirst), doc("$limit", most),
			doc("$group", doc("_id", nil, "records", doc("$sum", 1), "settled", doc("$sum", settled))),
		})
		return each(ctx, cursor, err, func(row *storage.Expired) (bool, error) {
			n = *row
			return true, nil
		})
	})
	return n, err
}

// RemoveRecords implements storage.Retention. It replaces each row by its tombstone. The indexes of
// rows do not contain tombstones.
func (s *Store) RemoveRecords(
	ctx context.Context, org string, before time.Time, most storage.Expired,
) (removed storage.Expired, err error) {
	if most.Records <= 0 {
		return removed, fmt.Errorf("removing %d records", most.Records)
	}
	err = s.rewrite(ctx, org, "removing decisions", func(ctx context.Context) (err error) {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		removed, err = s.removeOldest(ctx, org, before, most)
		return err
	})
	if err != nil {
		return storage.Expired{}, err
	}
	return removed, nil
}

func (s *Store) removeOldest(
	ctx context.Context, org string, before time.Time, most storage.Expired,
) (n storage.Expired, err error) {
	rows, err := find[bson.Raw](ctx, s.records(), s.onShard(org, older(org, before)),
		options.Find().SetSort(oldestFirst).SetLimit(int64(most.Records)))
	if err != nil {
		return n, err
	}
	var writes []mongo.WriteModel
	var gone []*storage.Record
	for _, raw := range rows {
		w, err := parseRow(org, raw)
		if err != nil {
			return n, err
		}
		if w.record.Settlement != nil {
			if n.Settled == most.Settled {
				break
			}
			n.Settled++
		}
		n.Records++
		left, err := w.removed()
		if err != nil {
			return n, err
		}
		writes = append(writes, mongo.NewReplaceOneModel().SetFilter(doc("_id", w.intent)).SetReplacement(left))
		gone = append(gone, w.record)
	}
	if len(writes) == 0 {
		return n, nil
	}
	if _, err = s.records().BulkWrite(ctx, writes); err != nil {
		return n, err
	}
	return n, s.giveBack(ctx, gone)
}

// Forget implements storage.Forgetter. It moves tombstones into a row without keys.
func (s *Store) Forget(ctx context.Context, org string, from, before time.Time, most int) (n int, err error) {
	if most <= 0 {
		return 0, fmt.Errorf("forgetting %d intents", most)
	}
	lower, upper := storage.IDAt(from.Add(storage.MaxSkew)), storage.IDAt(before.Add(-storage.MaxSkew))
	err = s.rewrite(ctx, org, "forgetting intents", func(ctx context.Context) error {
		n = 0
		chains, err := s.chains(ctx)
		if err != nil {
			return err
		}
		own := make(bson.A, len(chains))
		for i := range chains {
			own[i] = chains[i][:]
		}
		foreign := doc(recordLeaves, doc("$elemMatch", doc("c", doc("$nin", own))))
		unapproved := append(keysOf(org, 1), doc(recordRemoved, doc("$gte", lower[:], "$lt", upper[:]),
			tombstoneImported, doc("$exists", false), "$nor", bson.A{foreign})...)
		left, err := find[tombstone](ctx, s.records(), unapproved,
			options.Find().SetHint(byTombstone).SetLimit(int64(most)))
		if err != nil || len(left) == 0 {
			return err
		}
		n = len(left)
		gone := make([][]byte, n)
		for i := range left {
			gone[i], left[i].Intent = left[i].Intent, nil
		}
		row := forgottenRow{forgottenKey{org, left[0].Removed}, time.Now(), left}
		if _, err := s.db.Collection(forgottenName).InsertOne(ctx, row); err != nil {
			return err
		}
		_, err = s.records().DeleteMany(ctx, anyOf("_id", gone))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func newTombstone(intent []byte, id uuid.UUID, leaves []receipt.Leaf, imported bool) tombstone {
	t := tombstone{Intent: intent, Removed: id[:], Imported: imported}
	for _, l := range leaves {
		//nolint:gosec // they count
		t.Left = append(t.Left, leafRow{Chain: l.Chain[:], Seq: int64(l.Seq), Index: int64(l.Index), Hash: l.Hash[:]})
	}
	return t
}

// removed returns the tombstone of a row.
func (w *parsedRow) removed() (tombstone, error) {
	r := w.record
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	leaves := []receipt.Leaf{leaf}
	if s := r.Settlement; err == nil && s != nil {
		leaf, err = s.Receipt.Leaf(receipt.EntryLeaf(r.SettlementEntry().Body))
		leaves = append(leaves, leaf)
	}
	if err != nil {
		err = fmt.Errorf("%w: the receipts of decision %s: %w", errCorrupt, r.DecisionID, err)
	}
	return newTombstone(w.intent, w.id, leaves, false), err
}

// Organizations implements storage.Retention. It looks for each next organization with a separate
// query. So no cursor is open while f runs.
func (s *database) Organizations(ctx context.Context, f func(org string) error) error {
	return s.scan(ctx, "", "listing organizations", func(ctx context.Context) error {
		next := doc(recordOrg, doc("$exists", true))
		find := options.FindOne().SetSort(doc(recordOrg, 1, recordID, -1)).SetProjection(doc("_id", 0, recordOrg, 1))
		for {
			var w struct {
				Org string `bson:"o"`
			}
			err := s.records().FindOne(ctx, next, find).Decode(&w)
			if err != nil {
				return ifAny(err)
			}
			if err := f(w.Org); err != nil {
				return refuse(err)
			}
			next = doc(recordOrg, doc("$gt", w.Org))
		}
	})
}
