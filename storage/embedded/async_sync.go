package embedded

import (
	"errors"
	"sync/atomic"
)

// asyncSync syncs commits after they have returned: see [Options.WriteBehind]. It limits the number
// of commits that are not synced. It needs no queue of its own, because readers find the commits in
// the segment log, in their order.
type asyncSync struct {
	// places has a value for each commit that is not synced. Its capacity limits those commits.
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

// wrote wakes the goroutine that syncs. It is called after each commit.
func (a *asyncSync) wrote() {
	a.written.Add(1)
	select {
	case a.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// syncWritten syncs the log and frees the places of the synced commits. If the sync fails, the
// store stops: no further commit succeeds, and commits that have returned may be lost.
func (s *Store) syncWritten() {
	n := s.async.written.Swap(0)
	if n == 0 {
		return
	}
	s.syncLog() //nolint:errcheck // a failure has stopped the store; the places are freed anyway
	for range n {
		<-s.async.places
	}
}

// unsynced returns an upper limit of the number of commits that have returned but are not durable
// yet.
func (s *Store) unsynced() int {
	if s.async == nil {
		return 0
	}
	return len(s.async.places)
}
