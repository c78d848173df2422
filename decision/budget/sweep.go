package budget

import "time"

// sweep makes room for another window: it forgets those that are empty once there are
// twice as many as the last sweep left, and any that nothing is reserved in where there
// are [maxWindows].
func (k *Counters) sweep(at time.Time) {
	if k.kept < maxWindows && k.kept < 2*k.swept+maxWindows/1024 {
		return
	}
	for id, s := range k.series {
		now := bucketAt(s.counter, at)
		for of, w := range s.windows {
			if w.held == 0 && (w.isEmpty(now) || k.kept >= maxWindows*7/8) {
				delete(s.windows, of)
				k.kept--
			}
		}
		if len(s.windows) == 0 {
			delete(k.series, id)
		}
	}
	k.swept = k.kept
}
