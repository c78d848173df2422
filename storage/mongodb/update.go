package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ.example/writ/storage"
)

// revisionCounter is the counter that every update raises.
const revisionCounter = "revision"

// Update implements storage.Documents. Its transaction first raises the counter of revisions. This
// blocks other updates until the transaction ends. Therefore updates are serialized in the order of
// their revisions, without a gap. An update without writes also commits, because only the commit
// confirms f's reads. Such an update gets a revision without changes.
func (s *Store) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := s.check(ctx, org); err != nil {
		return 0, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	var u *update
	try := func(ctx context.Context) error {
		u = &update{documents: documents{ctx: ctx, s: s.database}, edits: storage.Edits{Org: org},
			seen: make(map[string]*documentRow)}
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
	err := s.do(ctx, org, "updating documents", func(ctx context.Context) error {
		return transact(ctx, s.updates, try)
	})
	if err != nil {
		return 0, err
	}
	s.watchers.own(s, &u.row, u.edits.Changes)
	if err := s.available(); err != nil { // the database was restored
		return 0, err
	}
	if !u.wrote {
		return 0, nil
	}
	return u.edits.Revision, nil
}

// revision returns the revision of the last commit.
func (s *database) revision(ctx context.Context) (uint64, error) {
	var counter counterRow
	err := s.db.Collection(countersName).FindOne(ctx, doc("_id", revisionCounter)).Decode(&counter)
	return uint64(counter.N), err
}

// update is a storage.Tx. Each command of a transaction costs a round trip, and other updates wait
// until the transaction ends. Therefore update reads each document once and sends its writes
// together. It sends them at the end. It also sends them before each Scan, so that the Scan finds
// them.
type update struct {
	documents
	edits storage.Edits
	row   changeRow // the row of changes that was written
	wrote bool
	// seen has the documents that were read or written, by key. A missing document has a nil value.
	seen map[string]*documentRow
	// rows and positions are the writes that were not sent yet, in their order.
	rows, positions []mongo.WriteModel
}

func (u *update) begin() error {
	var counter counterRow
	err := u.s.db.Collection(countersName).FindOneAndUpdate(u.ctx, doc("_id", revisionCounter),
		doc("$inc", doc(counterN, int64(1))), after()).Decode(&counter)
	u.edits.Revision = uint64(counter.N)
	return err
}

func (u *update) end() error {
	if err := u.send(); err != nil {
		return err
	}
	u.row = newChangeRow(u.edits.Revision, u.edits.Changes)
	_, err := u.s.db.Collection(changesName).InsertOne(u.ctx, u.row)
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

// Get implements storage.Reader. Together with the first document it reads the counts of the
// organization, because most updates change them.
func (u *update) Get(kind storage.Kind, org, id string) (storage.Document, error) {
	c, err := collection(kind, org)
	if err != nil {
		return storage.Document{}, err
	}
	key := documentKey(c, org, id)
	if _, ok := u.seen[key]; !ok {
		if err := u.read(key, documentKey(&storage.AllCounts.Collection, u.edits.Org, "")); err != nil {
			return storage.Document{}, err
		}
	}
	row := u.seen[key]
	if row == nil {
		return storage.Document{}, storage.ErrNotFound
	}
	return row.document(c)
}

// read reads the documents of keys, except those in seen.
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
func (u *update) Put(d storage.Document) error { return u.write(u.edits.Put(u.ctx, u, d)) }

// Delete implements storage.Tx.
func (u *update) Delete(kind storage.Kind, org, id string) error {
	return u.write(u.edits.Delete(u.ctx, u, kind, org, id))
}

func (u *update) write(e storage.Edit, err error) error {
	if err != nil {
		return err
	}
	u.wrote = true
	d := e.Document
	key := documentKey(e.Collection, d.Org, d.ID)
	if e.Removed {
		u.seen[key] = nil
		u.rows = append(u.rows, mongo.NewDeleteOneModel().SetFilter(doc("_id", key)))
	} else {
		row := &documentRow{Key: key, Org: d.Org, Revision: number(d.Revision), Value: string(d.Value)}
		u.seen[key] = row
		u.rows = append(u.rows,
			mongo.NewReplaceOneModel().SetFilter(doc("_id", key)).SetReplacement(row).SetUpsert(true))
	}
	was, is := positions(d, e.Before), positions(d, e.After)
	for _, at := range was {
		if !slices.Contains(is, at) {
			u.positions = append(u.positions, mongo.NewDeleteOneModel().SetFilter(doc("_id", at)))
		}
	}
	for _, at := range is {
		if !slices.Contains(was, at) {
			u.positions = append(u.positions, mongo.NewInsertOneModel().SetDocument(doc("_id", at, indexDocument, key)))
		}
	}
	return nil
}

func positions(d storage.Document, keys []storage.Key) (all []string) {
	for _, k := range keys {
		all = append(all, text(slices.Concat(indexOf(d.Kind, d.Org, k.Index), k.Value, []byte(d.ID))))
	}
	return all
}
