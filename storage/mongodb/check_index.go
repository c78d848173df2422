package mongodb

import (
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// CheckIndex compares the heads with the chains and with the counters of counted heads. It compares
// the documents with their index, and the changes with the last revision of their organization. It does not check the
// indexes of rows, because the server maintains these indexes.
func (r *Snapshot) CheckIndex(ctx context.Context, read storage.IndexCheck) error {
	return r.scan(ctx, "", "checking the index", func(ctx context.Context) error {
		if read.Meter != nil {
			if err := r.checkMeters(ctx, read.Meter); err != nil {
				return err
			}
		}
		last, err := r.revisions(ctx)
		if err != nil {
			return err
		}
		if err := r.checkDocuments(ctx, last, read.Document); err != nil {
			return err
		}
		return r.checkChanges(ctx, last)
	})
}

// checkMeters calls f with the value of each meter. The value is the stored count plus the
// decisions of heads that are not counted yet.
func (s *database) checkMeters(ctx context.Context, f func(org string, m storage.Month, n int64) error) error {
	chains, err := s.chains(ctx)
	if err != nil {
		return err
	}
	counted, ends := make(map[string]int64), make(map[string]int64)
	for _, chain := range chains {
		counter, err := s.counted(ctx, chain)
		if err != nil {
			return err
		}
		counted[string(chain[:])] = counter.N
	}
	meters := make(map[meter]int64)
	bare := options.Find().SetProjection(doc(headSigned, 0, headDecided, 0, headCounts, 0))
	cursor, err := s.heads().Find(ctx, doc("_id.s", doc("$gte", int64(0))), bare)
	err = each(ctx, cursor, err, func(row *headRow) (bool, error) {
		of := string(row.ID.Chain)
		after, ok := counted[of]
		if !ok {
			//nolint:gosec // it counts
			return false,
				&storage.BreakError{Head: uint64(row.ID.Seq),
					Err: fmt.Errorf("it is of chain %x, which no replica has", of)}
		}
		ends[of] = max(ends[of], row.ID.Seq)
		if row.ID.Seq > after {
			for _, t := range row.Meters {
				meters[t.Meter] += t.N
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for of, n := range counted {
		if n > ends[of] {
			return &storage.BreakError{Err: fmt.Errorf("the meters count %d heads of chain %x, which has %d", n, of,
				ends[of])}
		}
	}
	err = eachOf(ctx, s, quotasName, doc(), func(row *quotaRow) error {
		m := row.Meter
		if string(row.Key) != string(m.key()) {
			return &storage.BreakError{OrganizationID: m.Org,
				Err: fmt.Errorf("its meter of %d is in the place of another", m.Month)}
		}
		meters[m] += row.N
		return nil
	})
	for m, n := range meters {
		if err != nil {
			break
		}
		err = refuse(f(m.Org, m.Month, n))
	}
	return err
}

// revisions returns the last revision of each organization.
func (s *database) revisions(ctx context.Context) (map[string]int64, error) {
	last := make(map[string]int64)
	err := eachOf(ctx, s, countersName, doc(), func(row *counterRow) error {
		if org, ok := strings.CutPrefix(row.ID, orderBegins); ok {
			last[org] = row.N
		}
		return nil
	})
	return last, err
}

// checkDocuments compares the documents with their index and with the last revision. It calls f
// with each document.
func (s *database) checkDocuments(
	ctx context.Context, last map[string]int64, f func(storage.Document, string) error,
) error {
	keys := int64(0)
	var some []indexRow
	err := eachOf(ctx, s, documentsName, doc(), func(row *documentRow) error {
		broken := func(format string, args ...any) error {
			return &storage.BreakError{OrganizationID: row.Org, Err: fmt.Errorf(format, args...)}
		}
		key, err := parseText(row.Key)
		if err != nil || len(key) == 0 {
			return broken("the key of a document, %q, is none", row.Key)
		}
		c := storage.CollectionOf(storage.Kind(key[0]))
		if c == nil {
			return broken("a document is of the kind %q, which is none", key[0])
		}
		d, err := row.document(c)
		if err != nil {
			return broken("%w", err)
		}
		foundBy, id, _, err := c.Describe(d)
		if err == nil && row.Revision > last[row.Org] {
			err = fmt.Errorf("it is of revision %d, and the last is %d", d.Revision, last[row.Org])
		}
		if err != nil {
			return broken("%s %q: %w", c.Name, d.ID, err)
		}
		for _, at := range positions(d, foundBy) {
			some = append(some, indexRow{Key: at, Document: row.Key})
			keys++
		}
		if len(some) >= 500 {
			err = s.checkIndexed(ctx, some)
			some = some[:0]
		}
		if err != nil {
			return err
		}
		return f(d, id)
	})
	if err != nil {
		return err
	}
	if len(some) > 0 {
		err = s.checkIndexed(ctx, some)
	}
	if err != nil {
		return err
	}
	n, err := s.db.Collection(indexName).CountDocuments(ctx, doc())
	if err != nil {
		return err
	}
	if n != keys {
		return &storage.BreakError{Err: fmt.Errorf("the index has %d keys, and documents are found by %d", n, keys)}
	}
	return nil
}

func (s *database) checkIndexed(ctx context.Context, want []indexRow) error {
	var keys []string
	for _, row := range want {
		keys = append(keys, row.Key)
	}
	leads := make(map[string]string, len(want))
	err := eachOf(ctx, s, indexName, anyOf("_id", keys), func(row *indexRow) error {
		leads[row.Key] = row.Document
		return nil
	})
	for _, row := range want {
		if err == nil && leads[row.Key] != row.Document {
			err = &storage.BreakError{Err: fmt.Errorf("the document %q is not found as the index has it", row.Document)}
		}
	}
	return err
}

// checkChanges checks that the changes of a row are of its organization and that their revision is not later
// than the last one.
func (s *database) checkChanges(ctx context.Context, last map[string]int64) error {
	return eachOf(ctx, s, changesName, doc(), func(row *changeRow) error {
		broken := func(format string, args ...any) error {
			return &storage.BreakError{OrganizationID: row.Key.Org, Err: fmt.Errorf(format, args...)}
		}
		if is := last[row.Key.Org]; row.Key.Revision > is {
			return broken("the change of revision %d waits to be signed, and the last is %d", row.Key.Revision, is)
		}
		for _, c := range row.Changes {
			if c.Org != row.Key.Org {
				return broken("the change of revision %d is one of %q", row.Key.Revision, c.Org)
			}
		}
		return nil
	})
}
