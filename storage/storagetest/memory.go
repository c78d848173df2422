package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"writ.example/writ/storage"
)

// Memory is a store in memory with any number of handles. It simulates a store that several
// replicas use. The suite for such stores also runs on a Memory, which tests the suite.
type Memory struct {
	writes sync.Mutex // held until all watchers have the write
	mended sync.Cond  // its lock is writes; Mend broadcasts
	// writes guards the fields from handles to docs. A change of docs also needs mu.
	handles   []*Handle
	changes   []storage.Change  // in the order of organizations and revisions
	revisions map[string]uint64 // the last revision of each organization

	mu   sync.Mutex
	docs map[place]storage.Document

	log     *MemoryLog
	quotas  memoryQuotas
	windows memoryWindows
	counts  atomic.Int64     // result of Counts
	now     func() time.Time // clock of windows; nil means time.Now
}

type place struct {
	kind    storage.Kind
	org, id string
}

func placeOf(kind storage.Kind, org, id string) place {
	if c := storage.CollectionOf(kind); c != nil && c.Global {
		org = ""
	}
	return place{kind, org, id}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{docs: make(map[place]storage.Document), revisions: make(map[string]uint64), log: NewMemoryLog()}
	m.quotas.scarce = make(map[memoryMeter]time.Time)
	m.quotas.meters, m.quotas.held = make(map[memoryMeter]int64), make(map[memoryMeter]map[*Handle]int64)
	m.mended.L = &m.writes
	return m
}

// Handle is a handle of a Memory.
type Handle struct {
	*LogHandle
	m        *Memory
	watchers storage.Watchers
	cut      bool
	lost     atomic.Bool // another handle took over its chain
}

// Log returns the history. After a call of Log no handle may write.
func (m *Memory) Log() *MemoryLog { return m.log }

// Open returns a new handle.
func (m *Memory) Open() *Handle { return m.open(m.log.OpenLog()) }

func (m *Memory) open(log *LogHandle) *Handle {
	m.writes.Lock()
	defer m.writes.Unlock()
	h := &Handle{LogHandle: log, m: m}
	m.handles = append(m.handles, h)
	return h
}

// Cut hides the writes of other handles from h's watchers until Mend is called.
func (h *Handle) Cut() {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	h.cut = true
}

// Mend ends a Cut. It reports EverythingChanged to h's watchers.
func (h *Handle) Mend() {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	h.cut = false
	h.watchers.Tell(storage.Change{Kind: storage.EverythingChanged})
	h.m.mended.Broadcast()
}

// FreshFor implements storage.Documents.
func (h *Handle) FreshFor() time.Duration {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	if h.cut {
		return time.Hour
	}
	return time.Millisecond
}

// Leads implements storage.Documents. The first handle that is not lost leads.
func (h *Handle) Leads() bool {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	live := slices.IndexFunc(h.m.handles, func(h *Handle) bool { return !h.lost.Load() })
	return h.m.handles[live] == h
}

// Barrier implements storage.Documents.
func (h *Handle) Barrier(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		h.m.writes.Lock()
		defer h.m.writes.Unlock()
		h.m.mended.Broadcast()
	})()
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	for slices.ContainsFunc(h.m.handles, func(h *Handle) bool { return h.cut }) {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.m.mended.Wait()
	}
	return nil
}

// Watch implements storage.Documents.
func (h *Handle) Watch(f func(storage.Change)) (stop func()) { return h.watchers.Add(f) }

// Changes implements storage.Documents.
func (h *Handle) Changes(ctx context.Context, after storage.Change, most int) ([]storage.Change, error) {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	all := h.m.changes
	for len(all) > 0 && compareChanges(all[0], after) <= 0 {
		all = all[1:]
	}
	n := min(most, len(all))
	for n > 0 && n < len(all) && compareChanges(all[n], all[n-1]) == 0 {
		n++
	}
	return slices.Clone(all[:n]), ctx.Err()
}

// compareChanges compares the organizations and the revisions of changes.
func compareChanges(a, b storage.Change) int {
	return cmp.Or(strings.Compare(a.Org, b.Org), cmp.Compare(a.Revision, b.Revision))
}

// Trim implements storage.Documents.
func (h *Handle) Trim(ctx context.Context, changes []storage.Change) error {
	h.m.writes.Lock()
	defer h.m.writes.Unlock()
	h.m.changes = slices.DeleteFunc(h.m.changes, func(c storage.Change) bool {
		return slices.ContainsFunc(changes, func(of storage.Change) bool { return compareChanges(c, of) == 0 })
	})
	return ctx.Err()
}

// View implements storage.Documents.
func (h *Handle) View(ctx context.Context, f func(storage.Reader) error) error {
	h.m.mu.Lock()
	docs := maps.Clone(h.m.docs)
	h.m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(&memoryTx{ctx: ctx, docs: docs})
}

// Update implements storage.Documents.
func (h *Handle) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	m := h.m
	m.writes.Lock()
	defer m.writes.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	tx := &memoryTx{ctx: ctx, docs: maps.Clone(m.docs), edits: storage.Edits{Org: org, Revision: m.revisions[org] + 1}}
	if err := f(tx); err != nil || !tx.wrote {
		return 0, err
	}
	m.mu.Lock()
	m.docs = tx.docs
	m.mu.Unlock()
	m.revisions[org] = tx.edits.Revision
	m.changes = append(m.changes, tx.edits.Changes...)
	slices.SortStableFunc(m.changes, compareChanges)
	for _, c := range tx.edits.Changes {
		for _, other := range m.handles {
			if other == h || !other.cut {
				other.watchers.Tell(c)
			}
		}
	}
	return tx.edits.Revision, nil
}

type memoryTx struct {
	ctx   context.Context
	docs  map[place]storage.Document
	edits storage.Edits
	wrote bool
}

func (t *memoryTx) Get(kind storage.Kind, org, id string) (storage.Document, error) {
	if d, ok := t.docs[placeOf(kind, org, id)]; ok {
		return d, nil
	}
	return storage.Document{}, storage.ErrNotFound
}

// row is a document at a position.
type row struct {
	position []byte
	doc      storage.Document
}

func (t *memoryTx) Scan(q storage.Query, f func([]byte, storage.Document) (bool, error)) error {
	var rows []row
	for _, d := range t.docs {
		if d.Kind != q.Kind || d.Org != q.Org && (!q.Every || d.Org < q.Org) {
			continue
		}
		positions, err := positions(d, q.Index)
		if err != nil {
			return err
		}
		for _, p := range positions {
			if bytes.HasPrefix(p, q.Prefix) && (d.Org != q.Org || bytes.Compare(p, q.From) >= 0) {
				rows = append(rows, row{p, d})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.doc.Org, b.doc.Org), bytes.Compare(a.position, b.position))
	})
	for _, r := range rows {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if q.Bare {
			r.doc.Value = nil
		}
		if more, err := f(r.position, r.doc); !more || err != nil {
			return err
		}
	}
	return nil
}

// positions returns the keys under which index lists d.
func positions(d storage.Document, index storage.Index) (p [][]byte, err error) {
	if index == storage.ByID {
		return [][]byte{[]byte(d.ID)}, nil
	}
	keys, _, _, err := storage.CollectionOf(d.Kind).Describe(d)
	for _, k := range keys {
		if k.Index == index {
			p = append(p, append(bytes.Clone(k.Value), d.ID...))
		}
	}
	return p, err
}

func (t *memoryTx) Put(d storage.Document) error { return t.write(t.edits.Put(t.ctx, t, d)) }

func (t *memoryTx) Delete(kind storage.Kind, org, id string) error {
	return t.write(t.edits.Delete(t.ctx, t, kind, org, id))
}

func (t *memoryTx) write(e storage.Edit, err error) error {
	if err != nil {
		return err
	}
	at := placeOf(e.Document.Kind, e.Document.Org, e.Document.ID)
	if t.wrote = true; e.Removed {
		delete(t.docs, at)
	} else {
		t.docs[at] = e.Document
	}
	return nil
}
