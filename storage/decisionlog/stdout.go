package decisionlog

import (
	"context"
	"errors"
	"io"
)

// Stream is a sink that writes lines to a stream, such as standard output. A successful write confirms the
// lines.
type Stream struct {
	w io.Writer
	// written gets the result of a write. busy says that its result was not received yet. If ctx of a Send
	// ends, its write stays under way, because nothing can interrupt it.
	written chan error
	busy    bool
}

// NewStream returns a sink that writes to w.
func NewStream(w io.Writer) *Stream { return &Stream{w: w, written: make(chan error, 1)} }

// errBusy is the error of a Send while an earlier write is under way.
var errBusy = errors.New("the stream is not read")

// Send implements [Sink]. If nobody reads the stream, it waits until ctx ends.
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
