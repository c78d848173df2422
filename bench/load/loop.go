package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// loop has c send requests from start to end and notes in r what became of
// them.
type loop func(c *conn, start, end time.Time, r *result) error

// closedLoop sends the next request when the last one is answered. It fails at
// a refusal, which is no throughput, unless honour has it wait for Retry-After.
func closedLoop(honour bool) loop {
	return func(c *conn, _, end time.Time, r *result) error {
		for sent := time.Now(); sent.Before(end); {
			a, err := c.ask()
			if err != nil {
				return err
			}
			r.took(a, sent, sent)
			now := time.Now()
			if a.status != 200 {
				if !honour || a.retryAfter == 0 {
					return fmt.Errorf("answered with status %d", a.status)
				}
				if now.Add(a.retryAfter).After(end) {
					return nil
				}
				time.Sleep(a.retryAfter)
				now = time.Now()
			}
			sent = now
		}
		return nil
	}
}

// openLoop sends arrival i of a schedule at start + i/rate, or as soon after as
// a connection is free: whichever connection comes first takes it.
func openLoop(rate float64, patience time.Duration) loop {
	var arrivals atomic.Int64
	return func(c *conn, start, end time.Time, r *result) error {
		for {
			due := start.Add(time.Duration(float64(arrivals.Add(1)-1) / rate * float64(time.Second)))
			if !due.Before(end) {
				return nil
			}
			wait := time.Until(due)
			if wait < -patience {
				r.unsent++
				continue
			}
			if wait > 0 {
				time.Sleep(wait)
				r.late = append(r.late, time.Since(due))
			}
			sent := time.Now()
			a, err := c.ask()
			if err != nil {
				return err
			}
			r.took(a, due, sent)
		}
	}
}
