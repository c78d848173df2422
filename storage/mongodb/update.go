package mongodb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
)

// revisionCounter is the counter that every update raises.
const revisionCounter = "revision"

// Update implements storage.Documents. Its transaction first raises the counter of
// revisions, which no other can do before it ends: all updates are as if one ran
// after the other, in the order of their revisions, without a gap. One that has
// written nothing has a revision, too, which nobody is told: f may have read what
// only a commit makes sure of.
func (s *Store) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org), s.available()); err != nil {
		return 0, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	if err := s.available(); err != nil { // by now
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var u *update
	var refused error // f's own
	err := transact(bounded, s.updates, func(ctx context.Context) error {
		u, refused = &update{documents: documents{ctx: ctx, s: s}, org: org}, nil
		if err := u.begin(); err != nil {
			return err
		}
		err := f(u)
		if u.err != nil {
			return u.err
		}
		if refused = err; err != nil {
			return err
		}
		return u.end()
	})
	switch {
	case refused != nil:
		return 0, refused
	case err != nil:
		return 0, failed(ctx, "updating documents", err)
	}
	s.watchers.own(s, u.revision, u.changes)
	if !u.wrote {
		return 0, nil
	}
	return u.revision, nil
}

// revision returns the revision of the last commit.
func (s *Store) revision(ctx context.Context) (uint64, error) {
	var counter struct {
		N int64 `bson:"n"`
	}
	err := s.db.Collection(countersName).FindOne(ctx, bson.D{{Key: "_id", Value: revisionCounter}}).Decode(&counter)
	return uint64(counter.N), err
}

// update is a storage.Tx.
type update struct {
	documents
	org      string
	revision uint64
	wrote    bool
	changes  []storage.Change
}

func (u *update) begin() error {
	var counter struct {
		N int64 `bson:"n"`
	}
	err := u.s.db.Collection(countersName).FindOneAndUpdate(u.ctx, bson.D{{Key: "_id", Value: revisionCounter}},
		bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}}, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&counter)
	u.revision = uint64(counter.N)
	return err
}

func (u *update) end() error {
	_, err := u.s.db.Collection(changesName).InsertOne(u.ctx, newChangeRow(u.revision, u.changes))
	return err
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
	key := documentKey(c, d.Org, d.ID)
	row := documentRow{Key: key, Org: d.Org, Revision: number(u.revision), Value: string(d.Value)}
	_, err = u.s.db.Collection(documentsName).ReplaceOne(u.ctx, bson.D{{Key: "_id", Value: key}}, row, options.Replace().SetUpsert(true))
	if err != nil {
		return u.fail(err)
	}
	u.changed(c, storage.Change{
		Revision: u.revision, Kind: d.Kind, Org: d.Org, ID: id, Alias: alias, Digest: sha256.Sum256(d.Value), Actor: storage.Actor(u.ctx),
	})
	return u.index(c, d, before, keys)
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
	if _, err := u.s.db.Collection(documentsName).DeleteOne(u.ctx, bson.D{{Key: "_id", Value: documentKey(c, d.Org, id)}}); err != nil {
		return u.fail(err)
	}
	u.changed(c, storage.Change{Revision: u.revision, Kind: kind, Org: d.Org, ID: name, Alias: alias, Actor: storage.Actor(u.ctx)})
	return u.index(c, d, before, nil)
}

// index has d found by keys, and no more by what it was found by before.
func (u *update) index(c *storage.Collection, d storage.Document, before, keys []storage.Key) error {
	was, is := positions(d, before), positions(d, keys)
	var writes []mongo.WriteModel
	for _, key := range was {
		if !slices.Contains(is, key) {
			writes = append(writes, mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: key}}))
		}
	}
	for _, key := range is {
		if !slices.Contains(was, key) {
			row := bson.D{{Key: "_id", Value: key}, {Key: "d", Value: documentKey(c, d.Org, d.ID)}}
			writes = append(writes, mongo.NewInsertOneModel().SetDocument(row))
		}
	}
	if len(writes) == 0 {
		return nil
	}
	_, err := u.s.db.Collection(indexName).BulkWrite(u.ctx, writes)
	return u.fail(err)
}

// positions returns the keys of d in the collection of the indexes.
func positions(d storage.Document, keys []storage.Key) (all []string) {
	for _, k := range keys {
		all = append(all, text(slices.Concat(indexOf(d.Kind, d.Org, k.Index), k.Value, []byte(d.ID))))
	}
	return all
}

// changed notes a change, in the place of an earlier one of the same document.
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
