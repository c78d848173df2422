package segment

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Open opens the log in dir, or creates a log if dir is empty. It reads the last segment, and the
// end of each earlier segment. The error is ErrDamaged if frames are missing. Incomplete frames at
// the end are no damage, because a crash can leave them.
func Open(dir string, o Options) (_ *Log, err error) {
	l := &Log{dir: dir, o: o}
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening the segment log: %w", errors.Join(err, l.Close()))
		}
	}()
	found, err := numbers(o.FS, dir)
	if err != nil {
		return nil, err
	}
	for i, number := range found {
		if number != uint64(i)+1 {
			return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, fileName(uint64(i)+1))
		}
		if err := l.open(number, i == len(found)-1); err != nil {
			return nil, fmt.Errorf("%s: %w", fileName(number), err)
		}
	}
	if !o.ReadOnly {
		if err := l.ready(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// ready prepares a log for Append after its segments were read.
func (l *Log) ready() error {
	if err := l.o.FS.Remove(l.o.FS.PathJoin(l.dir, spareName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	h := header{log: l.id, number: 1, first: 1}
	switch n := len(l.segments); {
	case n == 0:
		h.log = newID()
		l.id, l.salt = h.log, saltOf(h.log)
	case l.active().sealed:
		h.number, h.first = uint64(n)+1, l.last()+1
	default:
		// The last frames may have been read from the page cache, so they may not be durable.
		if err := l.active().file.Sync(); err != nil {
			return err
		}
		l.durable.Store(l.last())
		return nil
	}
	s, err := l.create(h)
	if err != nil {
		return err
	}
	l.segments = append(l.segments, s)
	l.durable.Store(h.first - 1)
	return nil
}

// open reads a segment and appends it to l.
func (l *Log) open(number uint64, last bool) (err error) {
	s := &segment{name: l.o.FS.PathJoin(l.dir, fileName(number))}
	if l.o.ReadOnly {
		s.file, err = l.o.FS.Open(s.name)
	} else {
		s.file, err = l.o.FS.OpenReadWrite(s.name, category)
	}
	if err != nil {
		return err
	}
	if err = l.read(s, number, last); err == nil && s.number != 0 {
		l.segments = append(l.segments, s)
		return nil
	}
	return errors.Join(err, s.file.Close())
}

// read reads the header and the end of a segment. If a crash interrupted the creation of the
// segment, the number of s stays 0.
func (l *Log) read(s *segment, number uint64, last bool) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	b, err := readAt(s.file, 0, min(headerLen, info.Size()))
	if err != nil {
		return err
	}
	h, err := parseHeader(b)
	if err != nil && last && l.unborn(s.file, info.Size()) {
		return nil
	}
	if err != nil {
		return err
	}
	if number == 1 {
		l.id, l.salt = h.log, saltOf(h.log)
	}
	if h.log != l.id || h.number != number || h.first != l.last()+1 {
		return fmt.Errorf("%w: it is segment %d and begins with frame %d, where frame %d ended the one before",
			ErrDamaged, h.number, h.first, l.last())
	}
	s.header = h
	if ok, err := s.readEnd(info.Size()); ok || err != nil {
		return err
	}
	if !last {
		return fmt.Errorf("%w: its end is missing", ErrDamaged)
	}
	return l.recover(s, info.Size())
}

// unborn reports whether a file without a valid header has no frames either. A crash then
// interrupted the creation of the segment.
func (l *Log) unborn(f vfs.File, size int64) bool {
	if size <= headerLen {
		return true
	}
	b, err := readAt(f, headerLen, size-headerLen)
	return err == nil && lastByte(b) < 0
}

// readEnd reports whether s is sealed. If s is sealed, readEnd reads the trailer.
func (s *segment) readEnd(size int64) (bool, error) {
	if size < headerLen+endLen {
		return false, nil
	}
	b, err := readAt(s.file, size-endLen, endLen)
	if err != nil {
		return false, err
	}
	t, ok := parseEnd(b, size)
	if !ok {
		return false, nil
	}
	table, err := readAt(s.file, t.at(size), 4*int64(t.frames))
	if err != nil || !t.whole(table) { // a crash interrupted the sealing, or the caller finds damage
		return false, err
	}
	s.sealed, s.frames, s.end, s.trailer, s.sum = true, int(t.frames), t.end, t.at(size), t.sum
	return true, nil
}

// recover finds the frames of the active segment. It fills the rest of the file with zeros.
func (l *Log) recover(s *segment, size int64) error {
	s.size = size
	b, err := readAt(s.file, 0, size)
	if err != nil {
		return err
	}
	at := headerLen
	for at < len(b) {
		_, h, err := parseFrame(b[at:], l.salt, nil)
		if err != nil || h.number != s.first+uint64(s.frames) {
			break
		}
		s.offsets = append(s.offsets, uint32(at))
		s.frames++
		at += h.size()
	}
	s.end = uint32(at)
	rest := b[min(at, len(b)):]
	if number := s.first + uint64(s.frames); laterDurable(rest, number, l.salt) {
		return fmt.Errorf("%w: frame %d is not whole, and later ones are", ErrDamaged, number)
	}
	left := lastByte(rest) + 1
	if l.o.ReadOnly || left == 0 {
		return nil
	}
	// Without the zeros, an old frame could look like the successor of a new frame.
	clear(rest[:left])
	if _, err := s.file.WriteAt(rest[:left], int64(at)); err != nil {
		return err
	}
	return s.file.Sync()
}

// lastByte returns the position of the last byte of b that is not 0, or -1.
func lastByte(b []byte) int {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			return i
		}
	}
	return -1
}

// readAt reads n bytes at a position.
func readAt(f vfs.File, at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if err := readFull(f, b, at); err != nil {
		return nil, err
	}
	return b, nil
}

// readFull fills b with the bytes at a position.
func readFull(f vfs.File, b []byte, at int64) error {
	got, err := f.ReadAt(b, at)
	if got == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: its file ends early", ErrDamaged)
	}
	return err
}
