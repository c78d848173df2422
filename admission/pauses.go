package admission

import "time"

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
