package load

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// schedule has the times of a run and the number of arrivals that were taken.
type schedule struct {
	ctx        context.Context
	start, end time.Time
	open       bool
	from, rate float64 // the arrivals per second at the start and at the end
	patience   time.Duration
	requests   int64 // a closed loop ends after this many requests; 0: it ends at end
	arrivals   atomic.Int64
	failed     atomic.Bool // a connection has failed, so the others stop
	hostile    bool
}

// run runs a closed or an open loop.
func (c *conn) run(s *schedule, r *Result) error {
	if s.open {
		return s.opened(c, r)
	}
	return s.closed(c, r)
}

// closed runs a closed loop: it sends the next request when the last one is answered.
func (s *schedule) closed(c *conn, r *Result) error {
	if s.hostile {
		c.discards, c.deadline = true, s.end.Add(time.Second)
	}
	for sent := time.Now(); s.lasts(sent) && !s.failed.Load(); {
		a, err := c.ask()
		now := time.Now()
		if err != nil && s.hostile {
			r.dropped()
			err = c.connect(s.ctx)
			a.status, sent = 0, now
		}
		if err != nil {
			return err
		}
		r.took(a, now, sent, sent)
		if a.status != 200 && !s.hostile {
			if a.status != 503 || a.retryAfter == 0 {
				return statusError(a)
			}
			if s.requests > 0 {
				s.arrivals.Add(-1) // the request is sent again
			} else if now.Add(a.retryAfter).After(s.end) {
				return nil
			}
			time.Sleep(a.retryAfter)
			now = time.Now()
		}
		sent = now
	}
	return nil
}

// lasts reports whether a closed loop sends another request now.
func (s *schedule) lasts(now time.Time) bool {
	if s.requests > 0 {
		return s.arrivals.Add(1) <= s.requests
	}
	return now.Before(s.end)
}

// opened runs an open loop. The first free connection takes
// the next arrival and sends it when it is due, or at once if it is late.
func (s *schedule) opened(c *conn, r *Result) error {
	for !s.failed.Load() {
		due := s.due()
		if !due.Before(s.end) {
			return nil
		}
		wait := time.Until(due)
		if wait < -s.patience {
			r.gaveUp(-wait)
			continue
		}
		if wait > 0 {
			time.Sleep(wait)
			r.late(time.Since(due))
		}
		sent := time.Now()
		a, err := c.ask()
		if err != nil {
			return err
		}
		r.took(a, time.Now(), due, sent)
		if a.status != 200 && a.status != 503 {
			return statusError(a)
		}
	}
	return nil
}

// due returns when the next arrival of an open loop is due. At a rate that stays, arrival i is due at start + i/rate.
// At a rate that goes evenly from one to another, from·t + (rate-from)·t²/2T arrivals are due before t.
func (s *schedule) due() time.Time {
	i := float64(s.arrivals.Add(1) - 1)
	at := i / s.rate
	if s.from != s.rate {
		a := (s.rate - s.from) / (2 * s.end.Sub(s.start).Seconds())
		at = (math.Sqrt(s.from*s.from+4*a*i) - s.from) / (2 * a)
	}
	if !(at < s.end.Sub(s.start).Seconds()) { // not a number, too: a rate that falls has no such arrival
		return s.end
	}
	return s.start.Add(time.Duration(at * float64(time.Second)))
}

func statusError(a answer) error {
	if a.status == 429 {
		return fmt.Errorf("answered with status 429: a rate limit of the server is in the way")
	}
	return fmt.Errorf("answered with status %d: %.300s", a.status, a.body)
}
