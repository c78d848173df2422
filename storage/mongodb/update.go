package mongodb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
)

// revisionCounter is the counter that every update raises.
const revisionCounter = "revision"

// Update implements storage.Documents. Its transaction first raises the counter of
// revisions, which blocks other updates until it ends. Updates are therefore serialized
// in the order of their revisions, without a gap. An update without writes also commits
// and takes a revision, which watchers are not told: only the commit confirms f's reads.
func (s *Store) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := s.check(ctx, org); err != nil {
		return 0, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	var u *update
	try := func(ctx context.Context) error {
		u = &update{documents: documents{ctx: ctx, s: s}, org: org, seen: make(map[string]*documentRow)}
		if err := u.begin(); err != nil {
			return err
		}
		err := f(u)
		if u.err != nil {
			return u.err
		}
		if err != nil {
			return refuse(err)
		}
		return u.end()
	}
	err := s.do(ctx, org, "updating documents", func(ctx context.Context) error { return transact(ctx, s.updates, try) })
	if err != nil {
		return 0, err
	}
	s.watchers.own(s, u.revision, u.changes)
	if !u.wrote {
		return 0, nil
	}
	return u.revision, nil
}

// revision returns the revision of the last commit.
func (s *Store) revision(ctx context.Context) (uint64, error) {
	var counter counterRow
	err := s.db.Collection(countersName).FindOne(ctx, doc("_id", revisionCounter)).Decode(&counter)
	return uint64(counter.N), err
}

// update is a storage.Tx. Each command of a transaction costs a round trip, and others
// wait until the transaction ends. update therefore reads nothing twice and sends its
// writes together, at the end or before a Scan that must find them.
type update struct {
	documents
	org      string
	revision uint64
	wrote    bool
	changes  []storage.Change
	// seen has the documents that were read or written, by key; nil for a missing one.
	seen map[string]*documentRow
	// rows and positions are not sent yet, each in the order in which they were written.
	rows, positions []mongo.WriteModel
}

func (u *update) begin() error {
	var counter counterRow
	err := u.s.db.Collection(countersName).FindOneAndUpdate(u.ctx, doc("_id", revisionCounter),
		doc("$inc", doc(counterN, int64(1))), options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&counter)
	u.revision = uint64(counter.N)
	return err
}

func (u *update) end() error {
	if err := u.send(); err != nil {
		return err
	}
	_, err := u.s.db.Collection(changesName).InsertOne(u.ctx, newChangeRow(u.revision, u.changes))
	return err
}

func (u *update) send() error {
	for _, of := range []struct {
		collection string
		writes     *[]mongo.WriteModel
	}{{documentsName, &u.rows}, {indexName, &u.positions}} {
		if len(*of.writes) == 0 {
			continue
		}
		if _, err := u.s.db.Collection(of.collection).BulkWrite(u.ctx, *of.writes); err != nil {
			return u.fail(err)
		}
		*of.writes = nil
	}
	return nil
}

// Get implements storage.Reader. With the first document it reads the counts of the
// organization, which most updates change.
func (u *update) Get(kind storage.Kind, org, id string) (storage.Document, error) {
	c, err := collection(kind, org)
	if err != nil {
		return storage.Document{}, err
	}
	key := documentKey(c, org, id)
	if _, ok := u.seen[key]; !ok {
		if err := u.read(key, documentKey(&storage.AllCounts.Collection, u.org, "")); err != nil {
			return storage.Document{}, err
		}
	}
	row := u.seen[key]
	if row == nil {
		return storage.Document{}, storage.ErrNotFound
	}
	return row.document(c)
}

// read reads the documents of those keys that were not seen.
func (u *update) read(keys ...string) error {
	keys = slices.DeleteFunc(keys, func(key string) bool {
		_, ok := u.seen[key]
		return ok
	})
	rows, err := find[*documentRow](u.ctx, u.s.db.Collection(documentsName), anyOf("_id", keys))
	if err != nil {
		return u.fail(err)
	}
	for _, key := range keys {
		u.seen[key] = nil
	}
	for _, row := range rows {
		u.seen[row.Key] = row
	}
	return nil
}

// Scan implements storage.Reader.
func (u *update) Scan(q storage.Query, f func(position []byte, d storage.Document) (bool, error)) error {
	if err := u.send(); err != nil {
		return err
	}
	return u.documents.Scan(q, f)
}

// Put implements storage.Tx.
func (u *update) Put(d storage.Document) error {
	c, err := collection(d.Kind, d.Org)
	if err != nil {
		return err
	}
	if d.Org != u.org {
		return fmt.Errorf("storing a %s of %q in an update of %q", c.Name, d.Org, u.org)
	}
	keys, id, alias, err := c.Describe(d)
	if err != nil {
		return err
	}
	var before []storage.Key
	old, err := u.Get(d.Kind, d.Org, d.ID)
	switch {
	case err == nil && old.Org != d.Org:
		return storage.ErrConflict
	case err == nil:
		before, _, _, err = c.Describe(old)
	case errors.Is(err, storage.ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	row := &documentRow{Key: documentKey(c, d.Org, d.ID), Org: d.Org, Revision: number(u.revision), Value: string(d.Value)}
	u.seen[row.Key] = row
	u.rows = append(u.rows, mongo.NewReplaceOneModel().SetFilter(doc("_id", row.Key)).SetReplacement(row).SetUpsert(true))
	u.changed(c, storage.Change{
		Revision: u.revision, Kind: d.Kind, Org: d.Org, ID: id, Alias: alias, Digest: sha256.Sum256(d.Value), Actor: storage.Actor(u.ctx),
	})
	u.index(c, d, before, keys)
	return nil
}

// Delete implements storage.Tx.
func (u *update) Delete(kind storage.Kind, org, id string) error {
	d, err := u.Get(kind, org, id)
	if err == nil && d.Org != u.org {
		err = storage.ErrNotFound
	}
	if err != nil {
		return err
	}
	c := storage.CollectionOf(kind)
	before, name, alias, err := c.Describe(d)
	if err != nil {
		return err
	}
	key := documentKey(c, d.Org, id)
	u.seen[key] = nil
	u.rows = append(u.rows, mongo.NewDeleteOneModel().SetFilter(doc("_id", key)))
	u.changed(c, storage.Change{Revision: u.revision, Kind: kind, Org: d.Org, ID: name, Alias: alias, Actor: storage.Actor(u.ctx)})
	u.index(c, d, before, nil)
	return nil
}

// index replaces the index entries of d by keys.
func (u *update) index(c *storage.Collection, d storage.Document, before, keys []storage.Key) {
	was, is := positions(d, before), positions(d, keys)
	for _, key := range was {
		if !slices.Contains(is, key) {
			u.positions = append(u.positions, mongo.NewDeleteOneModel().SetFilter(doc("_id", key)))
		}
	}
	for _, key := range is {
		if !slices.Contains(was, key) {
			row := doc("_id", key, indexDocument, documentKey(c, d.Org, d.ID))
			u.positions = append(u.positions, mongo.NewInsertOneModel().SetDocument(row))
		}
	}
}

func positions(d storage.Document, keys []storage.Key) (all []string) {
	for _, k := range keys {
		all = append(all, text(slices.Concat(indexOf(d.Kind, d.Org, k.Index), k.Value, []byte(d.ID))))
	}
	return all
}

// changed records a change in the place of an earlier one of the same document.
func (u *update) changed(c *storage.Collection, change storage.Change) {
	u.wrote = true
	if c.Quiet {
		return
	}
	for i, before := range u.changes {
		if before.Kind == change.Kind && before.ID == change.ID {
			u.changes[i] = change
			return
		}
	}
	u.changes = append(u.changes, change)
}
