package mongodb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ.example/writ/storage"
)

const (
	// maxGroups is how many transactions of groups a handle runs at the same time. Updates that come meanwhile wait,
	// and share the next one: most of what an update costs the members is its commit.
	maxGroups = 2
	// maxUrgent is how many more transactions it runs at the same time for urgent updates.
	maxUrgent = 2
	// maxGroup is how many updates share a transaction at most.
	maxGroup = 32
	// maxRetries is how many updates run at the same time that have failed in a group, perhaps because another handle
	// updates the same organization. Each has a transaction of its own, for which those in groups do not wait.
	maxRetries = 16
	// maxUpdates is how many transactions of updates a handle runs at the same time.
	maxUpdates = maxGroups + maxUrgent + maxRetries
)

// groups has updates of this handle that wait for a transaction, in the order in which they came. No two are of
// the same organization.
type groups struct {
	most, size int // transactions at the same time, and updates in one

	mu      sync.Mutex
	waiting []*member
	running int // goroutines that run groups
}

// member is an update in a group. Its f runs in the goroutine of its caller, which gets u when it is its turn.
type member struct {
	ctx   context.Context
	org   string
	f     func(storage.Tx) error
	run   chan *update // f is to be called
	ended chan struct{}

	// The group sets u and err before it closes ended.
	u   *update
	err error
}

var (
	errPanicked = errors.New("the function of an update panicked")
	// errAborted is what the functions of the other updates get if a transaction fails.
	errAborted = errors.New("the transaction of several updates is aborted")
)

// together runs m in a transaction, perhaps with other updates that wait, and returns when it has ended.
func (s *Store) together(m *member) {
	g := &s.groups
	if storage.Urgent(m.ctx) {
		g = &s.urgent
	}
	g.add(s, m)
	stopped := m.ctx.Done()
	for {
		select {
		case u := <-m.run:
			m.call(u)
		case <-m.ended:
			return
		case <-stopped:
			if g.leave(m) {
				m.err = m.ctx.Err()
				return
			}
			stopped = nil // f may run, so the group has to end it
		}
	}
}

// add has a member wait.
func (g *groups) add(s *Store, m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, m)
	if g.running < g.most {
		g.running++
		go s.runGroups(g)
	}
}

// call calls f. If f panics, the group gets an error and goes on.
func (m *member) call(u *update) {
	e := report{m: m, err: errPanicked}
	defer func() { u.reports <- e }()
	e.err = m.f(u)
}

// report is what a group hears of the function of a member: its result, or a read of documents.
type report struct {
	m    *member
	err  error
	u    *update
	keys []string
	read chan error // nil for a result
}

// leave removes a member that still waits.
func (g *groups) leave(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, m)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// next removes the members of the next group. It returns nil if no update waits, and the caller must end.
func (g *groups) next() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.size)
	if n == 0 {
		g.running--
		return nil
	}
	members := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return members
}

// runGroups runs groups until no update waits. Each waiting update's caller waits for it.
func (s *Store) runGroups(g *groups) {
	session := <-s.updates
	defer func() { s.updates <- session }()
	for members := g.next(); members != nil; members = g.next() {
		err := s.runGroup(session, members, g == &s.retries)
		for _, m := range members {
			switch {
			case m.hasEnded():
			case g != &s.retries && s.runsAgain(err, len(members)):
				s.retries.add(s, m)
			default:
				m.end(err)
			}
		}
	}
}

// runsAgain reports whether the members of a group run again after an error. A group may fail because of one member.
func (s *Store) runsAgain(err error, members int) bool {
	return err != nil && !errors.Is(err, errUnknownCommit) && (members > 1 || hasLabel(err, transient)) &&
		s.available() == nil
}

func (m *member) end(err error) {
	m.err = err
	close(m.ended)
}

func (m *member) hasEnded() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

// runGroup runs members in one transaction. Of several, it ends those whose f fails, and the others go on. If it
// returns an error, none of the members has written, unless the outcome of the commit is unknown.
func (s *Store) runGroup(session *mongo.Session, members []*member, retry bool) error {
	run, ctx, org := transactOnce, context.Background(), ""
	if retry {
		run = transact
	}
	if len(members) == 1 {
		ctx, org = members[0].ctx, members[0].org
	}
	err := s.do(ctx, org, "updating documents", func(ctx context.Context) error {
		return run(ctx, session, func(ctx context.Context) error { return s.tryGroup(ctx, members) })
	})
	if errors.Is(err, errRestored) {
		err = s.abandon(err)
	}
	return err
}

func (s *Store) tryGroup(ctx context.Context, members []*member) error {
	reports := make(chan report)
	for _, m := range members {
		m.begin(ctx, s, reports, len(members) > 1)
	}
	if err := s.raise(ctx, members); err != nil {
		return err
	}
	if len(members) == 1 {
		m := members[0]
		m.run <- m.u
		e := <-reports
		if errors.Is(e.err, errPanicked) { // it can't run again
			return refuse(e.err)
		}
		if err := cmp.Or(m.u.err, refuse(e.err)); err != nil {
			return err
		}
		return s.endGroup(ctx, []*update{m.u})
	}
	if err := s.runShared(ctx, members, reports); err != nil {
		return err
	}
	var part []*update
	for _, m := range members {
		if m.hasEnded() {
			continue
		}
		if m.u.scans { // it must be the only one that uses the session
			revision := m.u.edits.Revision
			m.begin(ctx, s, reports, false)
			m.u.edits.Revision = revision
			m.run <- m.u
			if err := m.ranShared((<-reports).err); err != nil {
				return err
			}
		}
		if !m.hasEnded() {
			part = append(part, m.u)
		}
	}
	return s.endGroup(ctx, part)
}

// begin begins a try of a member.
func (m *member) begin(ctx context.Context, s *Store, reports chan report, shared bool) {
	m.forget(s)
	m.u = &update{documents: documents{ctx: valuesOf{ctx, m.ctx}, s: s.database}, edits: storage.Edits{Org: m.org},
		seen: make(map[string]*documentRow), written: make(map[string]struct{}), reports: reports, shared: shared}
}

// runShared runs the functions of all members at the same time. Once each of them waits for documents or has
// returned, one request reads these documents.
func (s *Store) runShared(ctx context.Context, members []*member, reports chan report) error {
	for _, m := range members {
		m.run <- m.u
	}
	var failed error
	var reads []report
	for running := len(members); running > 0; {
		e := <-reports
		if e.read == nil {
			running--
			if !e.m.u.scans || errors.Is(e.err, errPanicked) {
				failed = cmp.Or(failed, e.m.ranShared(e.err))
			}
		} else {
			reads = append(reads, e)
		}
		if len(reads) < running || running == 0 {
			continue
		}
		if failed == nil {
			failed = s.readShared(ctx, reads)
		}
		for _, e := range reads {
			if failed != nil {
				e.u.err = errAborted
			}
			e.read <- e.u.err
		}
		reads = reads[:0]
	}
	return failed
}

// readShared reads the documents that updates wait for.
func (s *Store) readShared(ctx context.Context, reads []report) error {
	var keys []string
	for _, e := range reads {
		keys = append(keys, e.keys...)
	}
	rows, err := find[*documentRow](ctx, s.db.Collection(documentsName), anyOf("_id", keys))
	if err != nil {
		return err
	}
	for _, e := range reads {
		if err := e.u.see(e.keys, rows); err != nil {
			return err
		}
	}
	return nil
}

// ranShared handles the result of a member's function. If it returns an error, the transaction must be aborted.
func (m *member) ranShared(err error) error {
	switch {
	case errors.Is(err, errPanicked): // it can't run again
		m.end(err)
		return err
	case m.u.err != nil:
		return m.u.err
	case err == nil:
		return nil
	}
	if m.end(err); m.u.sent {
		return err
	}
	return nil
}

// forget gives up the last try of a member.
func (m *member) forget(s *Store) {
	if m.u != nil && m.u.told != nil {
		s.watchers.awaited.remove(m.u.row.ID)
		m.u.told = nil
	}
}

// errSame means that two updates of a group have written the same document, which has no organization of its own.
var errSame = errors.New("two organizations write the same document")

// endGroup sends what updates have written.
func (s *Store) endGroup(ctx context.Context, updates []*update) error {
	var all update
	all.documents = documents{ctx: ctx, s: s.database}
	written := make(map[string]struct{})
	var rows []*changeRow
	for _, u := range updates {
		for key := range u.written {
			if _, ok := written[key]; ok && len(updates) > 1 {
				return errSame
			}
			written[key] = struct{}{}
		}
		if u.again {
			if err := u.send(); err != nil {
				return err
			}
		}
		all.rows, all.positions = append(all.rows, u.rows...), append(all.positions, u.positions...)
		if len(u.edits.Changes) > 0 {
			u.row = newChangeRow(u.edits.Org, u.edits.Revision, u.edits.Changes)
			u.told = s.watchers.await(u.row.ID)
			rows = append(rows, &u.row)
		}
	}
	if err := all.send(); err != nil || len(rows) == 0 {
		return err
	}
	for i, row := range rows {
		row.Left = int64(len(rows) - 1 - i)
	}
	_, err := s.db.Collection(changesName).InsertMany(ctx, rows)
	return err
}

// raise raises the counters of the members' organizations.
func (s *Store) raise(ctx context.Context, members []*member) error {
	counters := s.db.Collection(countersName)
	raised := doc("$inc", doc(counterN, int64(1)))
	rows := make([]counterRow, 1)
	if len(members) == 1 {
		err := counters.FindOneAndUpdate(ctx, doc("_id", orderOf(members[0].org)), raised, after().SetUpsert(true)).
			Decode(&rows[0])
		if err != nil {
			return err
		}
	} else {
		writes, keys := make([]mongo.WriteModel, len(members)), make(bson.A, len(members))
		for i, m := range members {
			keys[i] = orderOf(m.org)
			writes[i] = mongo.NewUpdateOneModel().SetFilter(doc("_id", keys[i])).SetUpdate(raised).SetUpsert(true)
		}
		_, err := counters.BulkWrite(ctx, writes)
		if err == nil {
			rows, err = find[counterRow](ctx, counters, anyOf("_id", keys))
		}
		if err != nil {
			return err
		}
	}
	for _, row := range rows {
		for _, m := range members {
			if row.ID == orderOf(m.org) {
				m.u.edits.Revision = uint64(row.N) //nolint:gosec // it counts
			}
		}
	}
	return nil
}

// valuesOf is a context of a group with the values of a member's context.
type valuesOf struct {
	context.Context
	of context.Context
}

func (v valuesOf) Value(key any) any {
	if value := v.Context.Value(key); value != nil {
		return value
	}
	return v.of.Value(key)
}
