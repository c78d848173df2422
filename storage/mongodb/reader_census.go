package mongodb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
)

// stored returns the values of the meters: the counted decisions and those of later
// heads. It compares the heads with the chains and with the last counted heads.
func (r *Reader) stored(ctx context.Context) (map[meter]int64, error) {
	counted, ends := make(map[string]int64), make(map[string]int64)
	for _, chain := range r.chains {
		n, err := r.s.counted(ctx, chain)
		if err != nil {
			return nil, err
		}
		counted[string(chain[:])] = n
	}
	meters := make(map[meter]int64)
	cursor, err := r.s.heads().Find(ctx, bson.D{}, options.Find().SetProjection(bson.D{{Key: "h", Value: 0}}))
	err = eachRaw(&documents{ctx: ctx, s: r.s}, cursor, err, func(raw bson.Raw) (bool, error) {
		var row headRow
		if err := decode(raw, &row); err != nil {
			return false, err
		}
		of := string(row.ID.Chain)
		after, ok := counted[of]
		if !ok {
			return false, &storage.BreakError{Head: uint64(row.ID.Seq), Err: fmt.Errorf("it is of chain %x, which no replica has", of)}
		}
		ends[of] = max(ends[of], row.ID.Seq)
		if row.ID.Seq > after {
			for _, t := range row.Meters {
				meters[meter{t.Org, storage.Month(t.Month)}] += t.N
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for of, n := range counted {
		if n > ends[of] {
			return nil, &storage.BreakError{Err: fmt.Errorf("the meters count %d heads of chain %x, which has %d", n, of, ends[of])}
		}
	}
	err = scanRows(ctx, r, quotasName, bson.D{}, func(row *quotaRow) error {
		m := meter{row.Org, storage.Month(row.Month)}
		if string(row.Key) != string(m.key()) {
			return &storage.BreakError{OrganizationID: row.Org, Err: fmt.Errorf("its meter of %d is in the place of another", row.Month)}
		}
		meters[m] += row.N
		return nil
	})
	return meters, err
}

// holds compares the values of the meters with those of the rows.
func holds(meters map[meter]int64, want map[meter]decided) error {
	for m := range meters {
		want[m] = decided{want[m].sure, want[m].either}
	}
	for m, must := range want {
		if n := meters[m]; n < must.sure || n > must.sure+must.either {
			return &storage.BreakError{OrganizationID: m.org, Err: fmt.Errorf("its meter of %d says %d, and %d decisions are of that month", m.month, n, must.sure)}
		}
	}
	return nil
}

func (r *Reader) eachDocument(ctx context.Context, f func(*storage.Collection, storage.Document) error) error {
	return scanRows(ctx, r, documentsName, bson.D{}, func(row *documentRow) error {
		key, err := parseText(row.Key)
		if err != nil || len(key) == 0 {
			return &storage.BreakError{OrganizationID: row.Org, Err: fmt.Errorf("the key of a document, %q, is none", row.Key)}
		}
		c := storage.CollectionOf(storage.Kind(key[0]))
		if c == nil {
			return &storage.BreakError{OrganizationID: row.Org, Err: fmt.Errorf("a document is of the kind %q, which is none", key[0])}
		}
		d, err := row.document(c)
		if err != nil {
			return &storage.BreakError{OrganizationID: row.Org, Err: err}
		}
		return f(c, d)
	})
}

// found compares the documents with their indexes and with the last revision.
func (r *Reader) found(ctx context.Context) error {
	last, err := r.s.revision(ctx)
	if err != nil {
		return failed(ctx, "reading documents", err)
	}
	keys := int64(0)
	var some []indexRow
	err = r.eachDocument(ctx, func(c *storage.Collection, d storage.Document) error {
		describe, _, _, err := c.Describe(d)
		if err == nil && d.Revision > last {
			err = fmt.Errorf("it is of revision %d, and the last is %d", d.Revision, last)
		}
		if err != nil {
			return &storage.BreakError{OrganizationID: d.Org, Err: fmt.Errorf("%s %q: %w", c.Name, d.ID, err)}
		}
		for _, at := range positions(d, describe) {
			some = append(some, indexRow{Key: at, Document: documentKey(c, d.Org, d.ID)})
			keys++
		}
		if len(some) < partRows {
			return nil
		}
		err = r.indexed(ctx, some)
		some = some[:0]
		return err
	})
	if err != nil {
		return err
	}
	if err := r.indexed(ctx, some); err != nil {
		return err
	}
	n, err := r.s.db.Collection(indexName).CountDocuments(ctx, bson.D{})
	if err != nil {
		return failed(ctx, "counting what documents are found by", err)
	}
	if n != keys {
		return &storage.BreakError{Err: fmt.Errorf("the index has %d keys, and documents are found by %d", n, keys)}
	}
	return nil
}

// indexed returns nil if all of want is in the index.
func (r *Reader) indexed(ctx context.Context, want []indexRow) error {
	leads := make(map[string]string, len(want))
	var keys []string
	for _, row := range want {
		keys = append(keys, row.Key)
	}
	for some := range slices.Chunk(keys, 500) {
		err := scanRows(ctx, r, indexName, anyOf("_id", some), func(row *indexRow) error {
			leads[row.Key] = row.Document
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, row := range want {
		if leads[row.Key] != row.Document {
			return &storage.BreakError{Err: fmt.Errorf("the document %q is not found as the index has it", row.Document)}
		}
	}
	return nil
}

// Documents calls f for each document of a kind whose updates are changes, with the
// change that leaves it in its state.
func (r *Reader) Documents(ctx context.Context, f func(storage.Change) error) error {
	return r.read(ctx, "reading documents", func(ctx context.Context) error {
		return r.eachDocument(ctx, func(c *storage.Collection, d storage.Document) error {
			if c.Quiet {
				return nil
			}
			_, id, _, err := c.Describe(d)
			if err != nil {
				return err
			}
			return f(storage.Change{Revision: d.Revision, Kind: d.Kind, Org: d.Org, ID: id, Digest: sha256.Sum256(d.Value)})
		})
	})
}

// Waiting calls f for each change that is not trimmed. Such a change is unsigned or was
// signed a moment ago. Their revisions must be the last ones, without a gap.
func (r *Reader) Waiting(ctx context.Context, f func(storage.Change) error) error {
	return r.read(ctx, "reading changes", func(ctx context.Context) error {
		last, err := r.s.revision(ctx)
		if err != nil {
			return failed(ctx, "reading changes", err)
		}
		next := int64(0)
		err = scanRows(ctx, r, changesName, bson.D{}, func(row *changeRow) error {
			if next != 0 && row.Revision != next {
				return &storage.BreakError{Err: fmt.Errorf("the change of revision %d waits to be signed, and that of %d is not there", row.Revision, next)}
			}
			next = row.Revision + 1
			for _, c := range row.changes() {
				if err := f(c); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil && next != 0 && next != number(last)+1 {
			err = &storage.BreakError{Err: fmt.Errorf("changes end at revision %d, and the last is %d", next-1, last)}
		}
		return err
	})
}
