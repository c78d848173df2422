package segment

import (
	"context"
	"fmt"
)

// Rewrite replaces items of a sealed segment. f returns the items of a frame, as many as before. An
// item that does not change is returned as it was. Frames keep their numbers and heads. After a
// crash the segment has either all of its old content or all of its new content.
func (l *Log) Rewrite(ctx context.Context, number uint64, f func(Frame) (items [][]byte, err error)) error {
	l.mu.RLock()
	var s *segment
	if i := int(number) - 1; i >= 0 && i < len(l.segments) && l.segments[i].sealed {
		s = l.segments[i]
	}
	l.mu.RUnlock()
	if s == nil {
		return fmt.Errorf("segment %d is not sealed", number)
	}
	b, offsets, err := l.rewritten(ctx, s, f)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", s.name, err)
	}
	return l.replace(s, b, offsets)
}

// rewritten returns the content of a segment with the items of f in place of the old items.
func (l *Log) rewritten(
	ctx context.Context, s *segment, f func(Frame) ([][]byte, error),
) (b []byte, offsets []uint32, err error) {
	_, old, first, err := l.frames(s.first)
	if err != nil {
		return nil, nil, err
	}
	b = s.append(make([]byte, 0, len(old)))
	_, err = l.scan(ctx, old, first, func(frame Frame) error {
		items, err := f(frame)
		if err != nil {
			return err
		}
		if len(items) != len(frame.Items) {
			return fmt.Errorf("it would have %d items instead of %d", len(items), len(frame.Items))
		}
		offsets = append(offsets, uint32(len(b)))
		frame.Items = items
		b, err = appendFrame(b, frame, frame.Number, l.salt)
		return err
	})
	return b, offsets, err
}

// replace replaces the content of a sealed segment. Until s has the new file, readers read the old
// file.
func (l *Log) replace(s *segment, b []byte, offsets []uint32) error {
	end := len(b)
	b = appendTrailer(b, offsets, uint32(end))
	name := s.name + ".new"
	file, err := openNew(l.o.FS, name)
	if err == nil {
		err = l.put(file, b, name, s.name)
	}
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.file
	s.file, s.end, s.trailer, s.sum = file, uint32(end), int64(end), trailerSum(b)
	if err := old.Close(); err != nil {
		return fmt.Errorf("rewriting %s: %w", s.name, err)
	}
	return nil
}
