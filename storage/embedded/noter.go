package embedded

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// noteEvery is how often the tip is noted while it moves: what a crash of the
// disk takes unnoticed is less than a second old, with room for a slow sync.
const noteEvery = 500 * time.Millisecond

// noter notes the tip beside the store. No write waits for it.
type noter struct {
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the last tip is noted after that

	mu    sync.Mutex // held while the file is written
	noted tip        // what it says
}

func (s *Store) startNoting() {
	n := &noter{stop: make(chan struct{}), done: make(chan struct{})}
	s.noter = n
	go func() {
		defer close(n.done)
		tick := time.NewTicker(noteEvery)
		defer tick.Stop()
		for {
			s.note()
			select {
			case <-tick.C:
			case <-n.stop:
				s.note()
				return
			}
		}
	}()
}

// stopNoting returns when the last tip is noted. No write may come after it.
func (s *Store) stopNoting() {
	if s.noter == nil {
		return
	}
	close(s.noter.stop)
	<-s.noter.done
}

// note notes how far the store has come, if that has changed. A failure is
// reported and tried again: until then the file says less than it could.
func (s *Store) note() {
	s.noter.mu.Lock()
	defer s.noter.mu.Unlock()
	t := s.end()
	if t == s.noter.noted || s.sync() != nil {
		return
	}
	err := s.noteTip(t)
	s.health.report(noting, err)
	if err == nil {
		s.noter.noted = t
	}
}

// end returns how far the store has come. The last commits of it may not be
// durable yet, where they are written behind.
func (s *Store) end() tip {
	s.commits.Lock()
	t := tip{Head: s.tip.Seq, Hash: s.tip.Prev}
	s.commits.Unlock()
	s.writes.Lock()
	t.Change = s.change
	s.writes.Unlock()
	return t
}

// sync makes all durable that is written, or returns why the store has stopped.
func (s *Store) sync() error {
	if s.behind != nil {
		if err := s.db.LogData(nil, pebble.Sync); err != nil {
			s.health.stop("syncing the log behind commits", err)
		}
	}
	return s.health.stopped()
}

func (s *Store) noteTip(t tip) error { return writeTip(s.health.dir, s.health.fs, t) }
