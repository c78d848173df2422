package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// CountImported implements storage.Importer.
func (s *Store) CountImported(ctx context.Context, org string) (n storage.Imported, err error) {
	err = s.scan(ctx, org, "counting imported decisions", func(ctx context.Context) error {
		return s.eachImported(ctx, org, &n, func(*parsedRow) bool { return true })
	})
	return n, err
}

// RemoveImported implements storage.Importer, in one transaction.
func (s *Store) RemoveImported(ctx context.Context, org string, most int) (int, error) {
	var n storage.Imported
	err := s.rewrite(ctx, org, "removing imported decisions", func(ctx context.Context) error {
		n = storage.Imported{}
		var keys [][]byte
		var gone []*storage.Record
		err := s.eachImported(ctx, org, &n, func(w *parsedRow) bool {
			if keys = append(keys, w.intent); !w.record.Removed() {
				gone = append(gone, w.record)
			}
			return len(keys) < most
		})
		if err == nil {
			err = n.Removable()
		}
		if err == nil && len(keys) > 0 {
			_, err = s.records().DeleteMany(ctx, anyOf("_id", keys))
		}
		if err == nil {
			err = s.giveBack(ctx, gone)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n.All(), nil
}

// eachImported calls f with each imported row and tombstone of org, until f returns
// false. A row is imported if its head is in no chain of this store. eachImported also adds these
// rows and tombstones to n.
func (s *Store) eachImported(ctx context.Context, org string, n *storage.Imported, f func(*parsedRow) bool) error {
	chains, err := s.chains(ctx)
	if err != nil {
		return err
	}
	own := func(chain [16]byte) bool { return slices.Contains(chains, chain) }
	more := true
	cursor, err := s.records().Find(ctx, s.onShard(org, doc(recordOrg, org)), options.Find().SetSort(oldestFirst))
	err = eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
		w, err := parseRow(org, raw)
		if err != nil {
			return false, err
		}
		if imported, err := n.AddRow(w.record, own); err != nil || !imported {
			return true, err
		}
		more = f(&w)
		return more, nil
	})
	for selected := range tombstonesOf(org) {
		if !more || err != nil {
			break
		}
		var cursor *mongo.Cursor
		cursor, err = s.tombstones(ctx, selected)
		err = eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
			w, t, err := readTombstone(raw)
			if err != nil {
				return false, err
			}
			if n.AddRemoved(t, own) {
				more = f(&w)
			}
			return more, nil
		})
	}
	return err
}
