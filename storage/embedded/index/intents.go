package index

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage/embedded/segment"
)

// Intents finds the frames that have items of an intent. It knows an intent by its hash. Those of the active segment
// are in memory. Each sealed segment has a table in a file beside it. A [Filter] recognizes most intents
// that are in neither.
//
// # Promises
//
// [Intents.Find] finds each frame that was added, or that was in the log before [Intents.Load]. Other intents can have
// the same hash, so the caller compares the intents.
//
// A table follows from its segment and a secret alone. It is written after the segment is sealed. Until then the
// segment's intents stay in memory. If a table is lost, damaged or of an older content of the segment, it is made
// again. If the segment cannot be read either, there is an error.
type Intents struct {
	c      IntentsConfig
	filter Filter
	filled atomic.Bool // whether filter has all intents

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

// IntentsConfig configures an Intents.
type IntentsConfig struct {
	FS       vfs.FS
	Dir      string
	Segments *segment.Log
	// Secret keeps clients from finding intents with equal hashes.
	Secret [32]byte
	// Hashes calls add with the hash of each item of a frame that is of an intent.
	Hashes func(f segment.Frame, add func(hash uint64)) error
	Health Health
	Log    *slog.Logger
	// ReadOnly says that no file may be changed.
	ReadOnly bool
}

// part has the intents of a segment, in table or in recent.
type part struct {
	mu       sync.RWMutex
	first    uint64 // the number of the segment's first frame
	table    *table
	recent   *recent
	filtered bool // the filter has its intents, and fill leaves them out
}

// recent has intents in memory.
type recent struct {
	entries []entry           // in the order of the frames
	last    map[uint64]uint32 // the number of the last entry with a hash, counted from 1
	before  []uint32          // for each entry, the number of the one before it with the same hash, or 0
}

func (r *recent) add(hash uint64, frame uint32) {
	r.entries, r.before = append(r.entries, entry{hash, frame}), append(r.before, r.last[hash])
	r.last[hash] = uint32(len(r.entries)) //nolint:gosec // a segment has fewer
}

// find returns the frames of a hash, the newest first.
func (r *recent) find(hash uint64) (frames []uint32) {
	for i := r.last[hash]; i > 0; i = r.before[i-1] {
		frames = append(frames, r.entries[i-1].frame)
	}
	return frames
}

// find returns the frames of a hash, the newest first.
func (p *part) find(hash uint64, buf []byte) (frames []uint32, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.table == nil {
		return p.recent.find(hash), nil
	}
	frames, err = p.table.find(hash, buf, nil)
	slices.Reverse(frames)
	return frames, err
}

// each calls f for all entries.
func (p *part) each(f func(entry)) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.table != nil {
		return p.table.each(f)
	}
	for _, e := range p.recent.entries {
		f(e)
	}
	return nil
}

// set replaces the intents of p.
func (p *part) set(t *table, r *recent) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table != nil {
		err = p.table.file.Close()
	}
	p.table, p.recent = t, r
	return err
}

// NewIntents returns an Intents that has nothing until Load.
func NewIntents(c IntentsConfig) *Intents { return &Intents{c: c, stopping: make(chan struct{})} }

// Hash returns the hash of an intent of an organization. It is a part of a SHA-256, so nobody without the secret finds
// intents with equal hashes.
func (x *Intents) Hash(org, intent string) uint64 {
	b := make([]byte, 0, 256)
	b = append(b, x.c.Secret[:]...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(org))), org...) //nolint:gosec // a key has the same length
	sum := sha256.Sum256(append(b, intent...))
	return binary.BigEndian.Uint64(sum[:])
}

// content identifies the content of a sealed segment. A head has the hash of the head before, so the last one depends
// on all heads.
func (x *Intents) content(seg segment.Segment) (uint64, error) {
	b := slices.Clone(x.c.Secret[:])
	//nolint:gosec // they are not negative
	for _, n := range []uint64{seg.Number, seg.First, uint64(seg.Frames), uint64(seg.Bytes), uint64(seg.Sum)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	if seg.Frames > 0 {
		last, err := x.c.Segments.Frame(seg.First + uint64(seg.Frames) - 1) //nolint:gosec // it counts
		if err != nil {
			return 0, err
		}
		b = append(b, last.Head...)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:]), nil
}

const tableExt = ".intents"

// TableName returns the name of the table of a segment. segment is the segment's file.
func TableName(segment string) string { return strings.TrimSuffix(segment, ".segment") + tableExt }

// IsTable reports whether name is the file name of a table, or of one that is being written.
func IsTable(name string) bool { return strings.HasSuffix(strings.TrimSuffix(name, ".new"), tableExt) }

// Load reads the intents of the log. It makes missing tables, and calls tell with the numbers of the frames that
// it reads for them.
func (x *Intents) Load(tell func(frame uint64)) error {
	segments := x.c.Segments.Segments()
	if err := x.removeOthers(segments); err != nil {
		return err
	}
	known := 0
	for _, seg := range segments {
		p, tell := &part{first: seg.First}, tell
		if !seg.Sealed {
			tell = ignore
		} else {
			if content, err := x.content(seg); err == nil {
				if p.table, err = openTable(x.c.FS, TableName(seg.Name), content); err == nil {
					known += p.table.n
				}
			}
		}
		if p.table == nil {
			if err := x.make(seg, p, tell); err != nil {
				return fmt.Errorf("reading the intents of %s: %w", seg.Name, err)
			}
		}
		x.parts = append(x.parts, p)
	}
	x.filter.Grow(known)
	return nil
}

// removeOthers removes the tables of segments that are not there or not sealed.
func (x *Intents) removeOthers(segments []segment.Segment) error {
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

// make reads the intents of a segment into p, adds them to the filter, and writes the table.
func (x *Intents) make(seg segment.Segment, p *part, tell func(frame uint64)) error {
	r, err := x.derive(seg, tell)
	if err != nil {
		return err
	}
	for _, e := range r.entries {
		x.filter.Add(e.hash)
	}
	p.recent, p.filtered = r, true
	if seg.Sealed && !x.c.ReadOnly {
		if err := x.write(seg, p); err != nil {
			x.unwritten(err)
		}
	}
	return nil
}

// derive reads the intents of a segment.
func (x *Intents) derive(seg segment.Segment, tell func(frame uint64)) (*recent, error) {
	r := &recent{last: make(map[uint64]uint32)}
	to := seg.First + uint64(seg.Frames) - 1 //nolint:gosec // it counts
	return r, x.c.Segments.ScanTo(context.Background(), seg.First, to, func(f segment.Frame) error {
		tell(f.Number)
		frame := uint32(f.Number - seg.First) //nolint:gosec // a segment has fewer
		return x.c.Hashes(f, func(hash uint64) { r.add(hash, frame) })
	})
}

func ignore(uint64) {}

// Add adds the items of a frame that was appended to the log.
func (x *Intents) Add(frame uint64, hashes []uint64) {
	first := x.c.Segments.ActiveFirst()
	p := x.parts[len(x.parts)-1] // only Add changes parts
	if p.first != first {
		p = &part{first: first, recent: &recent{last: make(map[uint64]uint32)}, filtered: true}
		x.mu.Lock()
		x.parts = append(x.parts, p)
		x.mu.Unlock()
		x.writeLater()
	}
	for _, hash := range hashes {
		x.filter.Add(hash)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, hash := range hashes {
		p.recent.add(hash, uint32(frame-first)) //nolint:gosec // a segment has fewer
	}
}

// AddFrame does for a frame what Add does for its hashes.
func (x *Intents) AddFrame(f segment.Frame) error {
	var hashes []uint64
	err := x.c.Hashes(f, func(hash uint64) { hashes = append(hashes, hash) })
	x.Add(f.Number, hashes)
	return err
}

func (x *Intents) all() []*part {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.parts
}

// Lacks reports that no frame has an intent with this hash. It returns false for about 1 % of the others,
// and for all until Start has filled the filter.
func (x *Intents) Lacks(hash uint64) bool { return x.filled.Load() && x.filter.Lacks(hash) }

// Find calls f with the numbers of the frames that have items with a hash, the newest first, until f returns
// stop.
func (x *Intents) Find(hash uint64, f func(frame uint64) (stop bool, err error)) error {
	buf := make([]byte, blockLen)
	for i, p := range slices.Backward(x.all()) {
		frames, err := p.find(hash, buf)
		if err != nil {
			if err = x.mend(i, p, err); err == nil {
				frames, err = p.find(hash, buf)
			}
		}
		if err != nil {
			return x.c.Health.Read(err)
		}
		for _, n := range slices.Compact(frames) {
			if stop, err := f(p.first + uint64(n)); stop || err != nil {
				return err
			}
		}
	}
	return cmp.Or(x.c.Health.Stopped(), x.c.Health.Read(nil))
}

// mend replaces a table that cannot be read.
func (x *Intents) mend(i int, p *part, why error) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	p.mu.RLock()
	mended := p.table == nil
	p.mu.RUnlock()
	if mended {
		return nil
	}
	seg := x.c.Segments.Segments()[i]
	x.c.Log.Warn("a table of intents is not readable; it is made again from its segment", "segment", seg.Name, "err",
		why.Error())
	r, err := x.derive(seg, ignore)
	if err != nil {
		return err
	}
	if err := p.set(nil, r); err != nil {
		x.c.Log.Warn("closing a table of intents", "err", err.Error())
	}
	x.writeLater()
	return nil
}

// Rewritten makes the table of a segment again whose items were replaced.
func (x *Intents) Rewritten(number uint64) error {
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
	if err := x.write(seg, p); err != nil {
		x.unwritten(err)
	}
	return nil
}

// writeLater starts a goroutine that writes the tables that are not written yet.
func (x *Intents) writeLater() {
	x.sealed.Add(1)
	if x.c.ReadOnly || !x.later.CompareAndSwap(false, true) {
		return
	}
	x.background.Go(func() {
		for again := true; again; {
			n := x.sealed.Load()
			x.writeAll()
			x.later.Store(false)
			again = x.sealed.Load() != n && x.later.CompareAndSwap(false, true)
		}
	})
}

// writeAll writes the tables that are not written yet.
func (x *Intents) writeAll() {
	x.writing.Lock()
	defer x.writing.Unlock()
	segments := x.c.Segments.Segments()
	for i, p := range x.all() {
		p.mu.RLock()
		written := p.table != nil
		p.mu.RUnlock()
		if written || !segments[i].Sealed {
			continue
		}
		if err := x.write(segments[i], p); err != nil {
			x.unwritten(err)
			return
		}
	}
}

func (x *Intents) unwritten(err error) {
	x.c.Log.Warn("a table of intents was not written; it stays in memory and will be tried again", "err", err.Error())
}

// write writes the table of a sealed segment whose intents are in memory. The caller holds x.writing.
func (x *Intents) write(seg segment.Segment, p *part) error {
	content, err := x.content(seg)
	if err != nil {
		return err
	}
	name := TableName(seg.Name)
	b := appendTable(nil, content, sortEntries(p.recent.entries))
	if err := x.replace(name, b); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	t, err := openTable(x.c.FS, name, content)
	if err == nil {
		err = p.set(t, nil)
	}
	return err
}

// replace replaces the content of a file. After a crash it has the old content, the new content, or neither, which is
// noticed.
func (x *Intents) replace(name string, b []byte) error {
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

// Start fills the filter of Lacks in the background. more adds the hashes of further intents.
func (x *Intents) Start(more func(add func(hash uint64)) error) {
	x.background.Go(func() {
		if err := errors.Join(x.fill(), more(x.filter.Add)); err != nil {
			x.c.Log.Warn("commits look each intent up on the disk, which takes longer", "err", err.Error())
			return
		}
		x.filled.Store(true)
	})
}

// fill adds the intents of all tables to the filter.
func (x *Intents) fill() error {
	add := func(e entry) { x.filter.Add(e.hash) }
	for i, p := range x.all() {
		select {
		case <-x.stopping:
			return errors.New("the store is being closed")
		default:
		}
		if p.filtered {
			continue
		}
		err := p.each(add)
		if err != nil {
			if err = x.mend(i, p, err); err == nil {
				err = p.each(add)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrTable says that a table does not have what its segment has.
var ErrTable = errors.New("its table of intents does not have what it has")

// Check compares the tables with the segments.
func (x *Intents) Check(ctx context.Context) error {
	for i, p := range x.all() {
		if p.table == nil {
			continue
		}
		seg := x.c.Segments.Segments()[i]
		r, err := x.derive(seg, ignore)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		want, n := sortEntries(r.entries), 0
		err = p.each(func(e entry) {
			if n < len(want) && want[n] == e {
				n++
			}
		})
		if err != nil && !errors.Is(err, errTable) {
			return err
		}
		if err != nil || n != len(want) || p.table.n != n {
			return fmt.Errorf("%s: %w", seg.Name, ErrTable)
		}
	}
	return nil
}

// Close writes the tables that are not written yet, unless the store has stopped, and closes all. Add must not be
// called afterwards.
func (x *Intents) Close() (err error) {
	close(x.stopping)
	x.background.Wait()
	if !x.c.ReadOnly && x.c.Health.Stopped() == nil {
		x.writeAll()
	}
	for _, p := range x.parts {
		if p.table != nil {
			err = errors.Join(err, p.table.file.Close())
		}
	}
	return err
}
