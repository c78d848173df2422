// Package pace lets work in the background rest, so that requests get the processor and the disk.
package pace

import "time"

// Pace is the pace of some work, which is done in slices. Its zero value is ready.
type Pace struct{ slice time.Time }

// Rest ends a slice and begins the next. In between it waits for the given multiple of the time that the slice took,
// but no longer than until hurry is closed. The first call waits for nothing.
func (p *Pace) Rest(times int, hurry <-chan struct{}) {
	if !p.slice.IsZero() {
		rested := time.NewTimer(time.Duration(times) * time.Since(p.slice))
		select {
		case <-rested.C:
		case <-hurry:
			rested.Stop()
		}
	}
	p.slice = time.Now()
}
