package embedded

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// behind makes durable what commits have returned already: see
// [Options.WriteBehind]. The queue is Pebble's log, which keeps the order of
// commits and is read by everyone; behind bounds how much of it is not synced.
type behind struct {
	// places has a value for each commit that is not durable, and room for as
	// many as there may be.
	places chan struct{}
	// written are the commits in the log that no sync was begun for.
	written atomic.Int64
	wake    chan struct{}
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when all is durable after that
}

var errClosing = errors.New("the store is being closed")

func (s *Store) startBehind(most int) {
	s.behind = &behind{
		places: make(chan struct{}, most), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(s.behind.done)
		for stopping := false; !stopping; {
			select {
			case <-s.behind.wake:
			case <-s.behind.stop:
				stopping = true
			}
			s.syncBehind()
		}
	}()
}

// applyCommit makes a commit visible and durable, or sees to it that it soon
// is. commits is held.
func (s *Store) applyCommit(b *pebble.Batch) error {
	if s.behind == nil {
		return s.apply(b)
	}
	select { // waits while too many are not durable
	case s.behind.places <- struct{}{}:
	case <-s.behind.stop:
		return errors.Join(errClosing, b.Close())
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		s.health.stop("writing a batch", err)
	}
	s.behind.written.Add(1)
	select {
	case s.behind.wake <- struct{}{}:
	default: // it is awake
	}
	if err := s.health.stopped(); err != nil {
		return err
	}
	return b.Close()
}

// syncBehind makes all durable that is in the log, and its places free. When
// that fails the store stops: what was answered may be lost, and nothing after
// it is answered.
func (s *Store) syncBehind() {
	n := s.behind.written.Swap(0)
	if n == 0 {
		return
	}
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		s.health.stop("syncing the log behind commits", err)
	}
	for range n {
		<-s.behind.places
	}
}

// notDurable is how many commits have returned and are not durable, at most.
func (s *Store) notDurable() int {
	if s.behind == nil {
		return 0
	}
	return len(s.behind.places)
}

// closeBehind returns when all is durable. No commit may come after it.
func (s *Store) closeBehind() {
	if s.behind == nil {
		return
	}
	close(s.behind.stop)
	<-s.behind.done
}
