package embedded

import (
	"sync"
	"time"
)

// tipInterval is how often a moving tip is recorded. It leaves time for a slow sync: after
// a crash the loss of writes that are older than a second is noticed.
const tipInterval = 500 * time.Millisecond

// tipWriter records the tip in a file beside the store. No write waits for it.
type tipWriter struct {
	stop chan struct{} // closed by Close
	done chan struct{} // closed after the last tip is recorded

	mu    sync.Mutex // held while the file is written
	noted tip        // the recorded tip
}

func (s *Store) startTipWriter() {
	n := &tipWriter{stop: make(chan struct{}), done: make(chan struct{})}
	s.tipWriter = n
	go func() {
		defer close(n.done)
		tick := time.NewTicker(tipInterval)
		defer tick.Stop()
		for {
			s.recordTip()
			select {
			case <-tick.C:
			case <-n.stop:
				s.recordTip()
				return
			}
		}
	}()
}

// stopTipWriter returns after the last tip is recorded. No write may follow.
func (s *Store) stopTipWriter() {
	if s.tipWriter == nil {
		return
	}
	close(s.tipWriter.stop)
	<-s.tipWriter.done
}

// recordTip records the tip if it has moved. A failure is reported, and the next
// interval tries again; until then the file has an earlier tip.
func (s *Store) recordTip() {
	s.tipWriter.mu.Lock()
	defer s.tipWriter.mu.Unlock()
	t := s.end()
	if t == s.tipWriter.noted || s.sync() != nil {
		return
	}
	err := s.noteTip(t)
	s.health.report(tipTrouble, err)
	if err == nil {
		s.tipWriter.noted = t
	}
}

// end returns the tip. With [Options.WriteBehind] its last commits may not be
// durable yet.
func (s *Store) end() tip {
	s.commits.Lock()
	t := tip{Head: s.tip.Seq, Hash: s.tip.Prev, Frame: s.log.Last()}
	s.commits.Unlock()
	s.writes.Lock()
	t.Change = s.change
	s.writes.Unlock()
	return t
}

// sync syncs the log, or returns why the store has stopped.
func (s *Store) sync() error {
	if s.async != nil {
		if err := s.log.Sync(); err != nil {
			s.health.stop("syncing the history behind commits", err)
		}
	}
	return s.health.stopped()
}

func (s *Store) noteTip(t tip) error { return writeTip(s.health.dir, s.health.fs, t) }
