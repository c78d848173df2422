package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// documents reads documents in the session of its context.
type documents struct {
	ctx context.Context
	s   *database
	// err is the first error of a read. The caller's function may have ignored this error.
	err     error
	fetched []fetched
}

// fetched has all documents whose keys are in [lower, upper), in the order of their keys.
type fetched struct {
	lower, upper string
	rows         []documentRow
}

const beginning = "beginning to read"

// View implements storage.Documents. If this handle may have missed changes, View first writes
// to a majority. This write fails if the handle's primary has been replaced.
func (s *Store) View(ctx context.Context, f func(storage.Reader) error) error {
	if s.FreshFor() > storage.MaxAge {
		err := s.do(ctx, "", beginning, func(ctx context.Context) error {
			if err := s.renew(ctx); err != nil {
				return fmt.Errorf("from a replica set that may have another primary: %w", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.database.View(ctx, f)
}

// View implements storage.Documents.
func (s *database) View(ctx context.Context, f func(storage.Reader) error) error {
	return s.latest(ctx, "", beginning, func(ctx context.Context) error {
		return refuse(f(&documents{ctx: ctx, s: s}))
	})
}

func (r *documents) fail(err error) error {
	if _, ok := errors.AsType[refusal](err); !ok && r.err == nil {
		r.err = err
	}
	return failed(r.ctx, "reading documents", err)
}

// Get implements storage.Reader.
func (r *documents) Get(kind storage.Kind, org, id string) (d storage.Document, err error) {
	c, err := collection(kind, org)
	if err != nil {
		return d, err
	}
	var row documentRow
	key := documentKey(c, org, id)
	if rows, ok := r.kept(key, key+"\x00"); ok {
		if len(rows) == 0 {
			return d, storage.ErrNotFound
		}
		return rows[0].document(c)
	}
	err = r.s.db.Collection(documentsName).FindOne(r.ctx, doc("_id", key)).Decode(&row)
	if err := r.fail(found(err)); err != nil {
		return d, err
	}
	return row.document(c)
}

// collection returns the collection of a kind. It returns an error if org can't have documents
// in it.
func collection(kind storage.Kind, org string) (*storage.Collection, error) {
	c := storage.CollectionOf(kind)
	if c == nil {
		return nil, fmt.Errorf("no documents are of the kind %q", kind)
	}
	return c, checkOrg(org)
}

func (row *documentRow) document(c *storage.Collection) (storage.Document, error) {
	key, err := parseText(row.Key)
	id, ok := bytes.CutPrefix(key, documentsOf(c, row.Org))
	if err != nil || !ok {
		return storage.Document{},
			fmt.Errorf("the stored %s %q is in the place of another of %q: %w", c.Name, row.Key, row.Org, errCorrupt)
	}
	d := storage.Document{Kind: c.Kind, Org: row.Org, ID: string(id), Revision: uint64(row.Revision)}
	if row.Value != "" {
		d.Value = []byte(row.Value)
	}
	return d, nil
}

// Scan implements storage.Reader.
func (r *documents) Scan(q storage.Query, f func(position []byte, d storage.Document) (bool, error)) error {
	c, err := collection(q.Kind, q.Org)
	if err != nil {
		return err
	}
	if c.Global && q.Index == storage.ByID || q.Every && q.Index != storage.ByID {
		return fmt.Errorf("the documents of the kind %s are not in the order that was asked for", c.Name)
	}
	if q.Index != storage.ByID {
		return r.scanIndex(c, q, f)
	}
	lower, upper := bounds(documentsOf(c, q.Org), q)
	if lower >= upper {
		return nil
	}
	if rows, ok := r.kept(lower, upper); ok {
		for i := range rows {
			d, err := rows[i].document(c)
			if err != nil {
				return r.fail(refuse(err))
			}
			if q.Bare {
				d.Value = nil
			}
			if more, err := f([]byte(d.ID), d); err != nil || !more {
				return err
			}
		}
		return nil
	}
	selected := keysIn(lower, upper)
	find := options.Find().SetSort(doc("_id", 1))
	if q.Bare {
		find.SetProjection(doc(documentValue, 0))
	}
	cursor, err := r.s.db.Collection(documentsName).Find(r.ctx, selected, find)
	return r.fail(each(r.ctx, cursor, err, func(row *documentRow) (bool, error) {
		d, err := row.document(c)
		if err != nil {
			return false, err
		}
		return f([]byte(d.ID), d)
	}))
}

// Prefetch implements storage.Prefetcher.
func (r *documents) Prefetch(queries ...storage.Query) error {
	ranges, conditions := make([]fetched, len(queries)), make(bson.A, len(queries))
	for i, q := range queries {
		c, err := collection(q.Kind, q.Org)
		if err != nil {
			return err
		}
		lower, upper := bounds(documentsOf(c, q.Org), q)
		ranges[i], conditions[i] = fetched{lower: lower, upper: upper}, keysIn(lower, upper)
	}
	rows, err := find[documentRow](r.ctx, r.s.db.Collection(documentsName), doc("$or", conditions),
		options.Find().SetSort(doc("_id", 1)))
	if err != nil {
		return r.fail(err)
	}
	for i := range ranges {
		ranges[i].rows = within(rows, ranges[i].lower, ranges[i].upper)
	}
	r.fetched = append(r.fetched, ranges...)
	return nil
}

// kept returns the documents with keys in [lower, upper) if these were fetched.
func (r *documents) kept(lower, upper string) (rows []documentRow, ok bool) {
	for _, f := range r.fetched {
		if f.lower <= lower && upper <= f.upper {
			return within(f.rows, lower, upper), true
		}
	}
	return nil, false
}

// within returns the part of sorted rows whose keys are in [lower, upper).
func within(rows []documentRow, lower, upper string) []documentRow {
	at := func(key string) int {
		i, _ := slices.BinarySearchFunc(rows, key, func(row documentRow, key string) int {
			return cmp.Compare(row.Key, key)
		})
		return i
	}
	return rows[at(lower):at(upper)]
}

// bounds returns the range [lower, upper) of the keys for q. All keys of q.Org begin with prefix.
func bounds(prefix []byte, q storage.Query) (lower, upper string) {
	from := slices.Concat(prefix, q.Prefix)
	to := end(from)
	if later := slices.Concat(prefix, q.From); string(later) > string(from) {
		from = later
	}
	if q.Every {
		to = end([]byte{byte(q.Kind)})
	}
	return text(from), text(to)
}

func keysIn(lower, upper string) bson.D { return doc("_id", doc("$gte", lower, "$lt", upper)) }

func (r *documents) scanIndex(
	c *storage.Collection, q storage.Query, f func([]byte, storage.Document) (bool, error),
) error {
	prefix := indexOf(q.Kind, q.Org, q.Index)
	lower, upper := bounds(prefix, q)
	if lower >= upper {
		return nil
	}
	stages := mongo.Pipeline{doc("$match", keysIn(lower, upper)), doc("$sort", doc("_id", 1))}
	if !q.Bare {
		stages = append(stages, doc("$lookup", doc(
			"from", documentsName, "localField", indexDocument, "foreignField", "_id", "as", "docs",
		)))
	}
	cursor, err := r.s.db.Collection(indexName).Aggregate(r.ctx, stages)
	return r.fail(each(r.ctx, cursor, err, func(row *indexRow) (bool, error) {
		key, err := parseText(row.Key)
		if err != nil {
			return false, err
		}
		named := documentRow{Key: row.Document, Org: q.Org}
		if !q.Bare {
			if len(row.Documents) != 1 {
				return false, fmt.Errorf("the %s %q is indexed but not stored: %w", c.Name, row.Document, errCorrupt)
			}
			named = row.Documents[0]
		}
		d, err := named.document(c)
		if err != nil {
			return false, err
		}
		return f(key[len(prefix):], d)
	}))
}

func number(revision uint64) int64 { return int64(min(revision, math.MaxInt64)) } //nolint:gosec // limited to MaxInt64
