package segment

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure a Log.
type Options struct {
	FS vfs.FS
	// Size is the size in bytes at which a segment is sealed. A single frame may be larger.
	Size int
	// Prepare makes the next segment in the background and fills it with zeros. A write over zeros
	// changes no metadata, which halves the cost of a sync. In a segment that was not prepared,
	// Append itself writes zeros, one MiB at a time. Such a segment is sealed once the next segment
	// is prepared.
	Prepare bool
	// ReadOnly opens the log without changes. Append, Sync and Rewrite must not be called then.
	ReadOnly bool
}

// Log is an open log. Calls of Append must not overlap. All other methods may be called at any
// time.
type Log struct {
	dir  string
	o    Options
	id   [16]byte
	salt uint32 // the checksum of id

	// mu guards segments. It also guards all fields of the active segment except the file. Append
	// holds mu only while it publishes a frame.
	mu       sync.RWMutex
	segments []*segment // in order of number; the last segment is active
	// durable is the number up to which all frames are durable.
	durable atomic.Uint64
	spare   *spare
	buf     []byte
	failed  error // the error after which Append accepts no more frames
}

// segment is a file of the log.
type segment struct {
	header
	name string
	// mu guards three fields of a sealed segment that Rewrite replaces: file, end and trailer.
	// Readers of an active segment also hold mu, because the segment may be sealed meanwhile. Lock
	// Log.mu before mu.
	mu      sync.RWMutex
	file    vfs.File
	sealed  bool
	size    int64 // the file size of an active segment that was prepared
	frames  int
	end     uint32   // where the last frame ends
	trailer int64    // where the trailer of a sealed segment begins
	sum     uint32   // the checksum of the trailer
	offsets []uint32 // where the frames begin; nil if the segment is sealed
}

// growth is how many zeros Append writes at a time in a segment that was not prepared.
const growth = 1 << 20

// Append writes a frame and returns its number. The frame can be read at once. It is durable after
// the next Sync. After an error the log accepts no more frames, because any part of the frame may
// be on the disk.
func (l *Log) Append(head []byte, items [][]byte) (number uint64, err error) {
	if l.failed != nil {
		return 0, l.failed
	}
	f := Frame{Number: l.Last() + 1, Head: head, Items: items}
	if l.buf, err = appendFrame(l.buf[:0], f, l.durable.Load(), l.salt); err != nil {
		return 0, err
	}
	if err := l.append(f.Number, l.buf); err != nil {
		l.failed = fmt.Errorf("writing frame %d: %w", f.Number, err)
		return 0, l.failed
	}
	return f.Number, nil
}

func (l *Log) append(number uint64, b []byte) error {
	active := l.active()
	size, prepared := int(active.end)+len(b), active.size >= int64(l.o.Size)
	if active.frames > 0 && (size > l.o.Size || !prepared && l.spare.ready()) {
		next, err := l.seal(active, number)
		if err != nil {
			return err
		}
		active = next
	} else if size > l.o.Size/4 || !prepared && size > l.o.Size/16 {
		l.prepare()
	}
	if uint64(active.end)+uint64(len(b)) > math.MaxUint32 {
		return errors.New("the segment would be too large")
	}
	end := active.end + uint32(len(b))
	if _, err := active.file.WriteAt(b, int64(active.end)); err != nil {
		return err
	}
	if l.o.Prepare && int64(end) > active.size {
		n := min(growth, l.o.Size)
		if err := writeZeros(active.file, int64(end), n); err != nil {
			return err
		}
		active.size = int64(end) + int64(n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	active.offsets = append(active.offsets, active.end)
	active.end = end
	active.frames++
	return nil
}

func (l *Log) active() *segment { return l.segments[len(l.segments)-1] }

// Sync makes all frames durable that were appended before the call.
func (l *Log) Sync() error {
	l.mu.RLock()
	active, last := l.active(), l.last()
	l.mu.RUnlock()
	if err := active.file.SyncData(); err != nil {
		return fmt.Errorf("syncing frame %d: %w", last, err)
	}
	for {
		durable := l.durable.Load()
		if durable >= last || l.durable.CompareAndSwap(durable, last) {
			return nil
		}
	}
}

// Last returns the number of the last frame, or 0 for an empty log.
func (l *Log) Last() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last()
}

func (l *Log) last() uint64 {
	if len(l.segments) == 0 {
		return 0
	}
	s := l.active()
	return s.first + uint64(s.frames) - 1
}

// seal ends the active segment and begins the next one, whose first frame will have the given
// number. The trailer is at the end of the file, after any zeros that are left.
func (l *Log) seal(active *segment, number uint64) (*segment, error) {
	info, err := active.file.Stat()
	if err != nil {
		return nil, err
	}
	at := max(info.Size(), int64(active.end))
	trailer := appendTrailer(nil, active.offsets, active.end)
	if _, err := active.file.WriteAt(trailer, at); err != nil {
		return nil, err
	}
	if err := active.file.Sync(); err != nil {
		return nil, err
	}
	l.durable.Store(number - 1)
	next, err := l.create(header{log: l.id, number: active.number + 1, first: number})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	active.sealed, active.offsets, active.trailer, active.sum = true, nil, at, trailerSum(trailer)
	l.segments = append(l.segments, next)
	return next, nil
}

// create makes a segment with a durable header.
func (l *Log) create(h header) (*segment, error) {
	s := &segment{header: h, name: l.o.FS.PathJoin(l.dir, fileName(h.number)), end: headerLen}
	file, err := l.newFile(s.name, h.append(nil))
	if err != nil {
		return nil, err
	}
	s.file = file
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.size = info.Size()
	return s, nil
}

// Segment describes a file of the log.
type Segment struct {
	Name          string // the path of the file
	Number, First uint64 // the segment's number, and the number of its first frame
	Frames        int
	Bytes         int64 // the size of the header and the frames
	Sealed        bool
	Sum           uint32 // of a sealed segment: the checksum of the frames' offsets
}

// Segments returns all segments, in order.
func (l *Log) Segments() []Segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]Segment, len(l.segments))
	for i, s := range l.segments {
		s.mu.RLock()
		all[i] = Segment{
			Name: s.name, Number: s.number, First: s.first, Frames: s.frames, Bytes: int64(s.end),
			Sealed: s.sealed, Sum: s.sum,
		}
		s.mu.RUnlock()
	}
	return all
}

// ActiveFirst returns the number of the first frame of the segment to which Append has written last.
func (l *Log) ActiveFirst() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.active().first
}

// segmentOf returns the segment that has a frame, or nil if there is no such frame.
func (l *Log) segmentOf(number uint64) *segment {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].first > number })
	if i == 0 || number > l.last() {
		return nil
	}
	return l.segments[i-1]
}

// Close releases the files, without a sync.
func (l *Log) Close() error {
	var errs []error
	if l.spare != nil {
		errs = append(errs, l.spare.discard(l.o.FS))
	}
	for _, s := range l.segments {
		if s.file != nil {
			errs = append(errs, s.file.Close())
		}
	}
	return errors.Join(errs...)
}

func newID() (id [16]byte) {
	rand.Read(id[:]) // cannot fail: crypto/rand crashes the program instead
	return id
}

func saltOf(id [16]byte) uint32 { return crc32.Checksum(id[:], castagnoli) }

const extension = ".segment"

func fileName(number uint64) string { return fmt.Sprintf("%010d%s", number, extension) }

// IsFile reports whether name is the file name of a segment.
func IsFile(name string) bool {
	_, ok := fileNumber(name)
	return ok
}

func fileNumber(name string) (number uint64, ok bool) {
	n, err := fmt.Sscanf(name, "%010d"+extension, &number)
	return number, err == nil && n == 1 && name == fileName(number)
}

// numbers returns the segment numbers of a directory, in order.
func numbers(fs vfs.FS, dir string) (found []uint64, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if n, ok := fileNumber(name); ok {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}
