package admission

import "time"

// maxPause is less than the second after which the refused are told to come
// again: who keeps to that is never early, and whatever else comes over the
// connection is not held up for longer, however long the queue deadline is.
const maxPause = 800 * time.Millisecond

// pauses spaces out what refused connections send next.
type pauses struct {
	every time.Duration // between the ends of two pauses
	most  time.Duration
	until time.Time // the latest end
}

// next returns the pause of a connection that is refused at now: none while
// refusals are rarer than every.
func (p *pauses) next(now time.Time) time.Duration {
	p.until = p.until.Add(p.every)
	if p.until.Before(now) {
		p.until = now
	}
	if end := now.Add(p.most); p.until.After(end) {
		p.until = end
	}
	return p.until.Sub(now)
}
