package embedded

import (
	"fmt"
	"time"

	"writ.example/writ/storage/receipt"
)

// maxBehind is how far the clock may stand before the newest head's time. Receipts are dated by the clock.
const maxBehind = 30 * time.Second

// signed notes the time of a head. A row that is decided after the clock went back does not hide that it did, so the
// newest time counts. A caller holds s.commits, or nobody else knows s.
func (s *Store) signed(h receipt.Head) { s.newest.Store(max(s.newest.Load(), h.UnixMilli)) }

// behind returns how far the clock stands before the newest head's time.
func (s *Store) behind() time.Duration {
	newest := s.newest.Load()
	if newest == 0 {
		return 0
	}
	return max(0, -time.Since(time.UnixMilli(newest)))
}

// checkClock begins or ends the trouble of a clock that went back.
func (s *Store) checkClock() {
	var err error
	if behind := s.behind(); behind > maxBehind {
		over := time.UnixMilli(s.newest.Load()).Add(-maxBehind).UTC().Format(time.RFC3339)
		err = fmt.Errorf("the clock stands %v before the time of the newest decision: set it, since it dates "+
			"receipts; if it is right and was ahead then, this ends at %s", behind.Round(time.Second), over)
	}
	s.health.report(clock, err)
}
