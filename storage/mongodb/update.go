package mongodb

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// epochCounter is the counter that has the epoch of the database. It counts nothing.
const epochCounter = "revision"

// orderOf returns the key of the counter of an organization. Every update of the organization raises it.
func orderOf(org string) string { return orderBegins + org }

const orderBegins = "org:"

// turns let the updates of an organization by this handle run one after the other. At the same time they would
// conflict and be tried again.
type turns struct {
	mu sync.Mutex
	by map[string]*turn
}

type turn struct {
	busy  chan struct{} // has an element while an update runs
	users int           // updates that run or wait
}

// take waits for the turn of an update of org. done must be called when it has ended.
func (t *turns) take(ctx context.Context, org string) (done func(), err error) {
	t.mu.Lock()
	if t.by == nil {
		t.by = make(map[string]*turn)
	}
	of := t.by[org]
	if of == nil {
		of = &turn{busy: make(chan struct{}, 1)}
		t.by[org] = of
	}
	of.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(t.by, org)
		}
	}
	select {
	case of.busy <- struct{}{}:
		return func() { <-of.busy; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// Update implements storage.Documents. Its transaction first raises the counter of the organization. Another
// update of the organization conflicts with it. Therefore the updates of an organization are serialized in the
// order of their revisions. An update without writes also commits, because only the commit
// confirms f's reads. The watchers are told when the row of changes comes back in the change stream.
//
// Updates of other organizations may share the transaction: see groups.
func (s *Store) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := s.check(ctx, org); err != nil {
		return 0, err
	}
	done, err := s.turns.take(ctx, org)
	if err != nil {
		return 0, err
	}
	m := &member{ctx: ctx, org: org, f: f, run: make(chan *update), ended: make(chan struct{})}
	func() {
		defer done()
		s.together(m)
	}()
	if m.err != nil {
		m.forget(s)
		return 0, m.err
	}
	u := m.u
	if u.told != nil {
		s.watchers.wait(s, &u.row, u.told)
	}
	if err := s.available(); err != nil { // the database was restored
		return 0, err
	}
	if u.told == nil {
		s.watchers.unheard.Add(1)
	}
	if !u.wrote {
		return 0, nil
	}
	return u.edits.Revision, nil
}

// revision returns the last revision of an organization.
func (s *database) revision(ctx context.Context, org string) (int64, error) {
	var counter counterRow
	err := s.db.Collection(countersName).FindOne(ctx, doc("_id", orderOf(org))).Decode(&counter)
	return counter.N, ifAny(err)
}

// update is a storage.Tx. Each command of a transaction costs a round trip, and other updates wait
// until the transaction ends. Therefore update reads each document once and sends its writes
// together. It sends them at the end. It also sends them before each Scan, so that the Scan finds
// them.
type update struct {
	documents
	edits storage.Edits
	row   changeRow       // the row of changes that was written, if there are changes
	told  <-chan struct{} // closed once the watchers were told the row
	wrote bool
	// seen has the documents that were read or written, by key. A missing document has a nil value.
	seen map[string]*documentRow
	// rows and positions are the writes that were not sent yet, in their order.
	rows, positions []mongo.WriteModel
	// written has the keys of rows and positions that were written. again says that one was written more than once, so
	// that their order matters. sent says that some were sent.
	written     map[string]struct{}
	again, sent bool
	// reports goes to the group. shared says that functions of other updates run at the same time: then reads go to the
	// group, too, and a scan is refused and noted in scans.
	reports       chan report
	shared, scans bool
}

// note notes that a key was written.
func (u *update) note(key string) {
	if _, ok := u.written[key]; ok {
		u.again = true
	}
	u.written[key] = struct{}{}
}

func (u *update) send() error {
	for _, of := range []struct {
		collection string
		writes     *[]mongo.WriteModel
	}{{documentsName, &u.rows}, {indexName, &u.positions}} {
		if len(*of.writes) == 0 {
			continue
		}
		u.sent = true
		bulk := options.BulkWrite().SetOrdered(u.again)
		if _, err := u.s.db.Collection(of.collection).BulkWrite(u.ctx, *of.writes, bulk); err != nil {
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
	if u.shared {
		e := report{u: u, keys: keys, read: make(chan error)}
		u.reports <- e
		return u.fail(<-e.read)
	}
	rows, err := find[*documentRow](u.ctx, u.s.db.Collection(documentsName), anyOf("_id", keys))
	if err == nil {
		err = u.see(keys, rows)
	}
	return u.fail(err)
}

// see notes the documents of keys, which may be in rows.
func (u *update) see(keys []string, rows []*documentRow) error {
	for _, key := range keys {
		u.seen[key] = nil
	}
	for _, row := range rows {
		if !slices.Contains(keys, row.Key) {
			continue
		}
		if row.Org == u.edits.Org && row.Revision >= number(u.edits.Revision) {
			return restored("revision %d follows revision %d of organization %q",
				u.edits.Revision, row.Revision, row.Org)
		}
		u.seen[row.Key] = row
	}
	return nil
}

// errScans is what a function gets that scans while others share its transaction. It is called again.
var errScans = errors.New("the update has to run after others")

// Prefetch implements storage.Prefetcher.
func (u *update) Prefetch(queries ...storage.Query) error {
	if u.shared {
		u.scans = true
		return errScans
	}
	return u.documents.Prefetch(queries...)
}

// Scan implements storage.Reader.
func (u *update) Scan(q storage.Query, f func(position []byte, d storage.Document) (bool, error)) error {
	if u.shared {
		u.scans = true
		return errScans
	}
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
	u.note(key)
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
			u.note(at)
			u.positions = append(u.positions, mongo.NewDeleteOneModel().SetFilter(doc("_id", at)))
		}
	}
	for _, at := range is {
		if !slices.Contains(was, at) {
			u.note(at)
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
