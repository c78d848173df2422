package admission

import "time"

const (
	// minLimit keeps enough at work to fill a batch of the ledger even where a
	// single commit takes longer than the target: a disk that is slow however
	// little it is asked must not throttle the server to nothing.
	minLimit = 64
	// maxLimit is within what the ledger's queue holds.
	maxLimit = 4096
	// startLimit is where a server begins, before it has measured anything.
	startLimit = 256
	// window is how long the limit stays before it is adapted.
	window = 100 * time.Millisecond
)

// limit is how many may be at work. It is adapted once a window so that the
// mean time at work meets the target.
type limit struct {
	n      int
	target time.Duration

	since   time.Time // start of the window
	reached bool      // the limit held a request back in the window
	sum     time.Duration
	count   int
}

func newLimit(target time.Duration) limit { return limit{n: startLimit, target: target} }

// observe notes a request that took d and ended at now.
func (l *limit) observe(now time.Time, d time.Duration) {
	if l.count == 0 && l.since.IsZero() {
		l.since = now
	}
	l.sum += d
	l.count++
	if now.Sub(l.since) < window {
		return
	}
	// Without reached, the limit changed nothing: neither would another one.
	if l.reached {
		ratio := float64(l.target) / float64(max(l.sum/time.Duration(l.count), 1))
		l.n = min(max(int(float64(l.n)*min(max(ratio, 0.7), 1.25)), minLimit), maxLimit)
	}
	l.since, l.reached, l.sum, l.count = now, false, 0, 0
}
