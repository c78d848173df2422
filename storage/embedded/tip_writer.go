package embedded

import "time"

// tipInterval is the time after which a changed tip is recorded again. It is half a second, so that
// even with a slow sync the recorded tip is at most a second old. A crash that loses writes older
// than a second is then noticed.
const tipInterval = 500 * time.Millisecond

// startTipWriter records the tip in a file beside the store until Close. No write waits for
// it. It also checks the clock.
func (s *Store) startTipWriter() {
	s.background.Go(func() {
		tick := time.NewTicker(tipInterval)
		defer tick.Stop()
		for {
			s.recordTip()
			s.checkClock()
			select {
			case <-tick.C:
			case <-s.stopping:
				s.recordTip()
				return
			}
		}
	})
}

// recordTip records the tip if it has moved. It reports a failure to health and tries again after
// the next interval. Until then the file has an earlier tip.
func (s *Store) recordTip() {
	s.recording.Lock()
	defer s.recording.Unlock()
	t := s.end()
	if t == s.recorded || s.sync() != nil {
		return
	}
	err := s.noteTip(t)
	s.health.report(tipTrouble, err)
	if err == nil {
		s.recorded = t
	}
}

// end returns the tip. With [Options.WriteBehind] the last commits before it may not be durable
// yet.
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
		return s.syncLog()
	}
	return s.health.Stopped()
}

func (s *Store) noteTip(t tip) error { return writeTip(s.health.dir, s.health.fs, t) }
