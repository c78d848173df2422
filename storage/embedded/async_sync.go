package embedded

import (
	"errors"
	"sync/atomic"
)

// asyncSync syncs commits after they have returned: see [Options.WriteBehind]. It bounds how
// many are not synced. The segment log is the queue: it keeps the order of commits, and reads
// see them there.
type asyncSync struct {
	// places holds a value for each commit that is not synced. Its capacity is the
	// bound.
	places chan struct{}
	// written counts the commits in the log for which no sync has begun.
	written atomic.Int64
	wake    chan struct{}
}

var errClosing = errors.New("the store is being closed")

func (s *Store) startAsyncSync(most int) {
	s.async = &asyncSync{places: make(chan struct{}, most), wake: make(chan struct{}, 1)}
	s.background.Go(func() {
		for stopping := false; !stopping; {
			select {
			case <-s.async.wake:
			case <-s.stopping:
				stopping = true
			}
			s.syncWritten()
		}
	})
}

// wait waits while too many commits are not durable.
func (a *asyncSync) wait(stopping <-chan struct{}) error {
	select {
	case a.places <- struct{}{}:
		return nil
	case <-stopping:
		return errClosing
	}
}

// wrote has a commit synced that has taken its place with wait.
func (a *asyncSync) wrote() {
	a.written.Add(1)
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

// syncWritten syncs the log and frees the places of its commits. If the sync fails
// the store stops: commits that have returned may be lost, and no other returns.
func (s *Store) syncWritten() {
	n := s.async.written.Swap(0)
	if n == 0 {
		return
	}
	s.syncLog() //nolint:errcheck // the store has stopped, and frees the places
	for range n {
		<-s.async.places
	}
}

// unsynced returns how many commits are at most not durable although they have returned.
func (s *Store) unsynced() int {
	if s.async == nil {
		return 0
	}
	return len(s.async.places)
}
