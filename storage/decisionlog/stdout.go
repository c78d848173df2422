package decisionlog

import (
	"context"
	"errors"
	"io"
)

// Stream is a sink that writes lines to a stream, such as standard output. A write confirms the lines.
type Stream struct {
	w io.Writer
	// written has the result of the write that is under way. A write that ctx did not wait for is
	// still under way, because nothing can end it.
	written chan error
	busy    bool
}

// NewStream returns a sink that writes to w.
func NewStream(w io.Writer) *Stream { return &Stream{w: w, written: make(chan error, 1)} }

// errBusy is the error of a Send while an earlier write is under way.
var errBusy = errors.New("the stream is not read")

// Send implements [Sink]. A reader of the stream that does not read makes it wait until ctx ends.
func (s *Stream) Send(ctx context.Context, rows []Row) error {
	if s.busy {
		return errBusy
	}
	s.busy = true
	go func(lines []byte) {
		_, err := s.w.Write(lines)
		s.written <- err
	}(appendLines(nil, rows))
	select {
	case err := <-s.written:
		s.busy = false
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [Sink]. It leaves the stream open.
func (s *Stream) Close() error { return nil }
