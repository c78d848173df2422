package index

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/internal/pace"
	"writ.example/writ/storage/embedded/segment"
)

// Health is the state of the store.
type Health interface {
	// Stopped returns the error that has stopped the store, or nil.
	Stopped() error
	// Read takes the result of a read. It returns the error for the callers of the store, or nil.
	Read(err error) error
}

// Tables has the entries of a log. Its methods may be called concurrently, except Add.
type Tables struct {
	c      Config
	filter Filter
	filled atomic.Bool // whether filter has all keyed names

	// mu guards parts, one for each segment. Parts are only appended.
	mu    sync.RWMutex
	parts []*part
	// writing is held while a table is made. later is set while a goroutine makes tables. sealed counts the calls of
	// writeLater.
	writing    sync.Mutex
	later      atomic.Bool
	sealed     atomic.Int64
	background sync.WaitGroup
	stopping   chan struct{}
}

// Config configures Tables.
type Config struct {
	FS       vfs.FS
	Dir      string
	Segments *segment.Log
	// Secret keeps clients from finding equal names.
	Secret [32]byte
	// Derive calls add with the entries of a frame.
	Derive func(f segment.Frame, add func(Entry)) error
	Health Health
	Log    *slog.Logger
	// ReadOnly says that no file may be changed.
	ReadOnly bool
}

// part has the entries of a segment, in table or in recent.
type part struct {
	mu       sync.RWMutex
	first    uint64 // the number of the segment's first frame
	table    *table
	recent   *recent
	filtered bool // the filter has its names, and fill leaves them out
	// listed is set once the filter has the lists of which p has entries.
	listed atomic.Bool
}

// near does what table.near does.
func (p *part) near(from, to Entry, back bool, dst []Entry, room *[]byte) (_ []Entry, more bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.table != nil {
		return p.table.near(from, to, back, dst, room)
	}
	dst, more = p.recent.near(from, to, back, dst)
	return dst, more, nil
}

// span returns the span of the entries of a class.
func (p *part) span(c Class) span {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.table != nil {
		return p.table.spans[c]
	}
	return p.recent.spans[c]
}

// inList returns the hash of a list for the filter, which has it if p has entries of the list.
func (p *part) inList(n Name) uint64 {
	h := (uint64(n) ^ (p.first+1)*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// lacks reports that p has no entry of a list. It may return false although p has none.
func (p *part) lacks(x *Tables, n Name) bool {
	return n.class() != Keyed && p.listed.Load() && x.filter.Lacks(p.inList(n))
}

// all calls f with all entries.
func (p *part) all(f func(iter.Seq[Entry])) (err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.table != nil {
		f(p.table.all(&err))
		return err
	}
	f(p.recent.all())
	return nil
}

// set replaces the entries of p.
func (p *part) set(t *table, r *recent) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table != nil {
		err = p.table.file.Close()
	}
	p.table, p.recent = t, r
	return err
}

// New returns Tables that have nothing until Load.
func New(c Config) *Tables { return &Tables{c: c, stopping: make(chan struct{})} }

// Hash returns the name of the organization's intent or entry with a key. It is a part of a SHA-256,
// so nobody without the secret finds equal names. Its class is Keyed.
func (x *Tables) Hash(org, key string) Name {
	b := make([]byte, 0, 256)
	b = append(b, x.c.Secret[:]...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(org))), org...) //nolint:gosec // a key has the same length
	sum := sha256.Sum256(append(b, key...))
	return Name(binary.BigEndian.Uint64(sum[:]) &^ uint64(classes-1))
}

// Lists are the lists of an organization. They have one hash, of the empty key.
type Lists Name

// Lists returns the lists of an organization.
func (x *Tables) Lists(org string) Lists { return Lists(x.Hash(org, "") &^ 0xff) }

// List returns the name of the list of a class and a kind, of which it uses the last six bits.
func (l Lists) List(c Class, kind byte) Name { return Name(l) | Name(kind&63)<<2 | Name(c) }

// ident identifies the content of a sealed segment. A head has the hash of the head before, so the last one depends
// on all heads. known is false if it cannot be read.
func (x *Tables) ident(seg segment.Segment) (of ident, known bool) {
	b := slices.Clone(x.c.Secret[:])
	//nolint:gosec // they are not negative
	for _, n := range []uint64{seg.Number, seg.First, uint64(seg.Frames), uint64(seg.Bytes), uint64(seg.Sum)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	of.content = binary.LittleEndian.Uint64(sum[:])
	if seg.Frames == 0 {
		return of, true
	}
	last, err := x.c.Segments.Frame(seg.First+uint64(seg.Frames)-1, new(segment.Room)) //nolint:gosec // it counts
	sum = sha256.Sum256(append(b, last.Head...))
	of.head = binary.LittleEndian.Uint64(sum[:])
	return of, err == nil
}

const tableExt = ".index"

// TableName returns the name of the table of a segment. segment is the segment's file.
func TableName(segment string) string { return strings.TrimSuffix(segment, ".segment") + tableExt }

// IsTable reports whether name is the file name of a table, or of one that is being written.
func IsTable(name string) bool { return strings.HasSuffix(strings.TrimSuffix(name, ".new"), tableExt) }

// Load reads the entries of the log. It makes missing tables, and calls tell with the numbers of the frames that
// it reads for them.
func (x *Tables) Load(tell func(frame uint64)) error {
	segments := x.c.Segments.Segments()
	if err := x.removeOthers(segments); err != nil {
		return err
	}
	entries := 0
	for _, seg := range segments {
		p, tell := &part{first: seg.First}, tell
		if !seg.Sealed {
			tell = ignore
		} else {
			of, known := x.ident(seg)
			if t, err := openTable(x.c.FS, TableName(seg.Name), of, known, seg.First); err == nil {
				p.table = t
				entries += t.entries
			}
		}
		if p.table == nil {
			if err := x.make(seg, p, tell); err != nil {
				return fmt.Errorf("reading the entries of %s: %w", seg.Name, err)
			}
		}
		x.parts = append(x.parts, p)
	}
	x.filter.Grow(entries / 3) // about a third are keyed
	return nil
}

// removeOthers removes the tables of segments that are not there or not sealed.
func (x *Tables) removeOthers(segments []segment.Segment) error {
	if x.c.ReadOnly {
		return nil
	}
	names, err := x.c.FS.List(x.c.Dir)
	if err != nil {
		return err
	}
	of := make(map[string]bool)
	for _, seg := range segments {
		of[x.c.FS.PathBase(TableName(seg.Name))] = seg.Sealed
	}
	for _, name := range names {
		if IsTable(name) && !of[name] {
			err = errors.Join(err, x.c.FS.Remove(x.c.FS.PathJoin(x.c.Dir, name)))
		}
	}
	return err
}

// make reads the entries of a segment into p, adds them to the filter, and writes the table.
func (x *Tables) make(seg segment.Segment, p *part, tell func(frame uint64)) error {
	r, err := x.derive(seg, tell)
	if err != nil {
		return err
	}
	x.know(r.all())
	p.recent, p.filtered = r, true
	if seg.Sealed && !x.c.ReadOnly {
		if err := x.write(seg, p, noRest); err != nil {
			x.unwritten(err)
		}
	}
	return nil
}

// derive reads the entries of a segment.
func (x *Tables) derive(seg segment.Segment, tell func(frame uint64)) (*recent, error) {
	r := newRecent()
	to := seg.First + uint64(seg.Frames) - 1 //nolint:gosec // it counts
	return r, x.c.Segments.ScanTo(context.Background(), seg.First, to, func(f segment.Frame) error {
		tell(f.Number)
		return x.c.Derive(f, r.add)
	})
}

func ignore(uint64) {}

// know adds the keyed names among entries to the filter.
func (x *Tables) know(entries iter.Seq[Entry]) {
	for e := range entries {
		if e.Name.class() == Keyed {
			x.filter.Add(e.Name.hash())
		}
	}
}

// learn adds the lists to the filter of which p has the sorted entries, and keyed names that are not there.
func (x *Tables) learn(p *part, sorted iter.Seq[Entry]) {
	var list Name
	for e := range sorted {
		switch {
		case e.Name.class() != Keyed && e.Name != list:
			list = e.Name
			x.filter.Add(p.inList(list))
		case e.Name.class() == Keyed && !p.filtered:
			x.filter.Add(e.Name.hash())
		}
	}
}

// hash returns the name for the filter, which needs more than zeros at the end.
func (n Name) hash() uint64 { return uint64(n ^ n>>32) }

// Add adds the entries of a frame that was appended to the log.
func (x *Tables) Add(frame uint64, entries []Entry) {
	first := x.c.Segments.ActiveFirst()
	p := x.parts[len(x.parts)-1] // only Add changes parts
	if p.first != first {
		p = &part{first: first, recent: newRecent(), filtered: true}
		x.mu.Lock()
		x.parts = append(x.parts, p)
		x.mu.Unlock()
		x.writeLater()
	}
	x.know(slices.Values(entries))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		p.recent.add(e)
	}
}

// AddFrame does for a frame what Add does for its entries.
func (x *Tables) AddFrame(f segment.Frame) error {
	var entries []Entry
	err := x.c.Derive(f, func(e Entry) { entries = append(entries, e) })
	x.Add(f.Number, entries)
	return err
}

func (x *Tables) all() []*part {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.parts
}

// Lacks reports that no entry has this name, which is keyed. It returns false for about 1 % of the others,
// and for all until Start has filled the filter.
func (x *Tables) Lacks(name Name) bool { return x.filled.Load() && x.filter.Lacks(name.hash()) }

// mend replaces a table that cannot be read.
func (x *Tables) mend(i int, p *part, why error) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	p.mu.RLock()
	mended := p.table == nil
	p.mu.RUnlock()
	if mended {
		return nil
	}
	seg := x.c.Segments.Segments()[i]
	x.c.Log.Warn("a table of the history is not readable; it is made again from its segment", "segment", seg.Name,
		"err", why.Error())
	r, err := x.derive(seg, ignore)
	if err != nil {
		return err
	}
	if err := p.set(nil, r); err != nil {
		x.c.Log.Warn("closing a table of the history", "err", err.Error())
	}
	x.writeLater()
	return nil
}

// Rewritten makes the table of a segment again whose items were replaced.
func (x *Tables) Rewritten(number uint64) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	seg, p := x.c.Segments.Segments()[number-1], x.all()[number-1]
	r, err := x.derive(seg, ignore)
	if err == nil {
		err = p.set(nil, r)
	}
	if err != nil {
		return err
	}
	if err := x.write(seg, p, noRest); err != nil {
		x.unwritten(err)
	}
	return nil
}

// writeLater starts a goroutine that writes the tables that are not written yet. It takes at most a fifth of a
// processor until Close.
func (x *Tables) writeLater() {
	x.sealed.Add(1)
	if x.c.ReadOnly || !x.later.CompareAndSwap(false, true) {
		return
	}
	x.background.Go(func() {
		var p pace.Pace
		for again := true; again; {
			n := x.sealed.Load()
			x.writeAll(func() { p.Rest(4, x.stopping) })
			x.later.Store(false)
			again = x.sealed.Load() != n && x.later.CompareAndSwap(false, true)
		}
	})
}

// writeAll writes the tables that are not written yet. It calls rest now and then.
func (x *Tables) writeAll(rest func()) {
	x.writing.Lock()
	defer x.writing.Unlock()
	parts := x.all() // first, so that each has its segment
	segments := x.c.Segments.Segments()
	for i, p := range parts {
		p.mu.RLock()
		written := p.table != nil
		p.mu.RUnlock()
		if written || !segments[i].Sealed {
			continue
		}
		if err := x.write(segments[i], p, rest); err != nil {
			x.unwritten(err)
			return
		}
	}
}

func (x *Tables) unwritten(err error) {
	x.c.Log.Warn("a table of the history was not written; it stays in memory and will be tried again", "err",
		err.Error())
}

// noRest is for work that somebody waits for.
func noRest() {}

// resting returns entries, and calls rest after every few of them.
func resting(entries iter.Seq[Entry], rest func()) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		n := 0
		for e := range entries {
			if n++; n%4096 == 0 {
				rest()
			}
			if !yield(e) {
				return
			}
		}
	}
}

// write writes the table of a sealed segment whose entries are in memory. It calls rest now and then. The caller
// holds x.writing.
func (x *Tables) write(seg segment.Segment, p *part, rest func()) error {
	of, known := x.ident(seg)
	if !known {
		return fmt.Errorf("the last frame of %s cannot be read", seg.Name)
	}
	name := TableName(seg.Name)
	if err := x.replace(name, makeTable(of, seg.First, resting(p.recent.all(), rest))); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	t, err := openTable(x.c.FS, name, of, true, seg.First)
	if err == nil {
		if p.filtered && !p.listed.Load() {
			x.learn(p, resting(p.recent.all(), rest))
			p.listed.Store(true)
		}
		err = p.set(t, nil)
	}
	return err
}

// replace replaces the content of a file. After a crash it has the old content, the new content, or neither, which is
// noticed.
func (x *Tables) replace(name string, b []byte) error {
	temporary := name + ".new"
	f, err := x.c.FS.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync() // a backup may link it
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = x.c.FS.Rename(temporary, name)
	}
	if err != nil {
		if gone := x.c.FS.Remove(temporary); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Start fills the filter of Lacks in the background. more adds further names.
func (x *Tables) Start(more func(add func(Name)) error) {
	add := func(name Name) { x.filter.Add(name.hash()) }
	x.background.Go(func() {
		if err := errors.Join(x.fill(), more(add)); err != nil {
			x.c.Log.Warn("commits look each intent up on the disk, which takes longer", "err", err.Error())
			return
		}
		x.filled.Store(true)
	})
}

// fill adds the keyed names of all tables to the filter.
func (x *Tables) fill() error {
	for i, p := range x.all() {
		select {
		case <-x.stopping:
			return errors.New("the store is being closed")
		default:
		}
		if p.filtered {
			continue
		}
		learn := func(sorted iter.Seq[Entry]) { x.learn(p, sorted) }
		err := p.all(learn)
		if err != nil {
			if err = x.mend(i, p, err); err == nil {
				err = p.all(learn)
			}
		}
		if err != nil {
			return err
		}
		p.listed.Store(true)
	}
	return nil
}

// ErrTable says that a table does not have what its segment has.
var ErrTable = errors.New("its table does not have what it has")

// Check compares the tables with the segments.
func (x *Tables) Check(ctx context.Context) error {
	for i, p := range x.all() {
		if p.table == nil {
			continue
		}
		seg := x.c.Segments.Segments()[i]
		r, err := x.derive(seg, ignore)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		entries, same := slices.Collect(r.all()), false
		err = p.all(func(got iter.Seq[Entry]) { same = equal(slices.Values(entries), got) })
		if err != nil && !errors.Is(err, errTable) {
			return err
		}
		if err != nil || !same || p.table.spans != r.spans || p.table.entries != len(entries) {
			return fmt.Errorf("%s: %w", seg.Name, ErrTable)
		}
	}
	return nil
}

func equal(a, b iter.Seq[Entry]) bool {
	next, stop := iter.Pull(b)
	defer stop()
	for e := range a {
		if other, ok := next(); !ok || other != e {
			return false
		}
	}
	_, more := next()
	return !more
}

// Size returns the size of the tables in bytes.
func (x *Tables) Size() (n int64) {
	for _, p := range x.all() {
		p.mu.RLock()
		if p.table != nil {
			n += p.table.size()
		}
		p.mu.RUnlock()
	}
	return n
}

// Close writes the tables that are not written yet, unless the store has stopped, and closes all. Add must not be
// called afterwards.
func (x *Tables) Close() (err error) {
	close(x.stopping)
	x.background.Wait()
	if !x.c.ReadOnly && x.c.Health.Stopped() == nil {
		x.writeAll(noRest)
	}
	for _, p := range x.parts {
		if p.table != nil {
			err = errors.Join(err, p.table.file.Close())
		}
	}
	return err
}
