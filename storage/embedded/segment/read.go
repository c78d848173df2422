package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Room is memory for a frame that is read.
type Room struct {
	b     []byte
	items [][]byte
}

// Frame returns the frame with a number. It reads the frame into room, in place of the frame that was there. The error
// is ErrDamaged if the frame is missing or incomplete.
func (l *Log) Frame(number uint64, room *Room) (f Frame, err error) {
	l.mu.RLock()
	s := l.segmentOf(number)
	if s == nil {
		l.mu.RUnlock()
		return f, fmt.Errorf("%w: there is no frame %d", ErrDamaged, number)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, to, known := s.place(int(number - s.first))
	l.mu.RUnlock()
	if !known {
		if from, to, err = s.readPlace(int(number - s.first)); err != nil {
			return f, fmt.Errorf("frame %d: %w", number, err)
		}
	}
	room.b = slices.Grow(room.b[:0], int(to-from))[:to-from]
	if err = readFull(s.file, room.b, int64(from)); err == nil {
		f, _, err = parseFrame(room.b, l.salt, room.items)
		room.items = f.Items
	}
	if err == nil && f.Number != number {
		err = fmt.Errorf("%w: frame %d is in its place", ErrDamaged, f.Number)
	}
	if err != nil {
		return Frame{}, fmt.Errorf("frame %d, in %s: %w", number, s.name, err)
	}
	return f, nil
}

// place returns the offsets at which frame i begins and ends. known is false if the offsets are not
// in memory.
func (s *segment) place(i int) (from, to uint32, known bool) {
	switch {
	case s.sealed:
		return 0, 0, false
	case i+1 < len(s.offsets):
		return s.offsets[i], s.offsets[i+1], true
	}
	return s.offsets[i], s.end, true
}

// readPlace returns the offsets at which frame i of a sealed segment begins and ends. It reads them
// from the trailer.
func (s *segment) readPlace(i int) (from, to uint32, err error) {
	n := min(2, s.frames-i)
	b, err := readAt(s.file, s.trailer+4*int64(i), 4*int64(n))
	if err != nil {
		return 0, 0, err
	}
	from, to = binary.LittleEndian.Uint32(b), s.end
	if n == 2 {
		to = binary.LittleEndian.Uint32(b[4:])
	}
	if from < headerLen || to <= from || to > s.end {
		return 0, 0, fmt.Errorf("%w: its offset is none", ErrDamaged)
	}
	return from, to, nil
}

// Scan calls f, in order, for the frames beginning with a number. The last one is the frame that
// was last when Scan was called. Scan reads whole segments. All frames of a segment share one
// buffer.
func (l *Log) Scan(ctx context.Context, from uint64, f func(Frame) error) error {
	return l.ScanTo(ctx, from, l.Last(), f)
}

// ScanTo does what Scan does, up to the frame with the number last.
func (l *Log) ScanTo(ctx context.Context, from, last uint64, f func(Frame) error) error {
	for from = max(from, 1); from <= last; {
		s, b, first, err := l.frames(from)
		if err != nil {
			return err
		}
		next, err := l.scan(ctx, b, first, func(frame Frame) error {
			if frame.Number < from || frame.Number > last {
				return nil
			}
			return f(frame)
		})
		if err != nil {
			return err
		}
		if next <= from {
			return fmt.Errorf("%s: %w: frame %d is missing", s.name, ErrDamaged, from)
		}
		from = next
	}
	return nil
}

// scan calls f for the frames in b, of which the first has the given number. It returns the number
// after the last frame.
func (l *Log) scan(ctx context.Context, b []byte, number uint64, f func(Frame) error) (uint64, error) {
	for ; len(b) > 0; number++ {
		if err := ctx.Err(); err != nil {
			return number, err
		}
		frame, h, err := parseFrame(b, l.salt, nil)
		if err == nil && frame.Number != number {
			err = fmt.Errorf("%w: frame %d is in its place", ErrDamaged, frame.Number)
		}
		if err == nil {
			err = f(frame)
		}
		if err != nil {
			return number, fmt.Errorf("frame %d: %w", number, err)
		}
		b = b[h.size():]
	}
	return number, nil
}

// frames finds the segment with a frame. It returns the bytes of all frames of that segment, and
// the number of the first.
func (l *Log) frames(number uint64) (s *segment, b []byte, first uint64, err error) {
	l.mu.RLock()
	if s = l.segmentOf(number); s == nil {
		l.mu.RUnlock()
		return nil, nil, 0, fmt.Errorf("%w: there is no frame %d", ErrDamaged, number)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	end := s.end
	l.mu.RUnlock()
	if b, err = readAt(s.file, headerLen, int64(end)-headerLen); err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return s, b, s.first, err
}
