// Package load drives one HTTP endpoint and measures it.
//
// The arrival model is closed or open. Closed: each connection sends its next
// request when the last is answered, so latencies are those at saturation, and a
// slow server is asked less. A connection that is answered with 503 waits for as
// long as Retry-After says.
//
// Open: requests arrive on a schedule whatever the answers are. The first
// connection that is free sends the next arrival. Its latency counts from its place
// in the schedule, so the wait for a connection is part of it: what a stalled server
// keeps from being sent is measured (no coordinated omission). An arrival that finds
// no connection within the patience is given up; its wait counts as its latency.
//
// Every request carries random intent ids, so nothing is answered from an earlier
// decision.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Placeholders of a body. Each request replaces an IntentID by a random UUID of version
// 4, a PolicyID by the policy of its [Caller], and a Number by one that grows with each
// request.
const (
	IntentID = "00000000-0000-4000-8000-000000000000"
	PolicyID = "00000000-0000-4000-8000-000000000001"
	Number   = 1_000_000_001
)

// Target is what is asked.
type Target struct {
	URL     *url.URL // of scheme http
	Body    []byte   // JSON with the placeholders; nil: a GET
	Callers []Caller // each request is of a random one; none: no header, no policy
	// Allowed is what the body of an answer contains for each intent that was
	// allowed, Intents how often it must: anything else is an error of the run.
	Allowed string
	Intents int
}

// Caller is an API key and a policy of its organization. Keys of one target are of
// one length.
type Caller struct{ Key, PolicyID string }

// Options describe one run.
type Options struct {
	Conns    int
	Duration time.Duration
	Requests int           // of a closed loop that ends after as many; 0: after Duration
	Rate     float64       // requests that arrive a second; 0 is a closed loop
	Patience time.Duration // of an arrival of an open loop
	// Hostile: a closed loop counts every answer, keeps no body, ignores Retry-After,
	// and opens a connection that breaks again. Requests that are under way a second
	// after Duration are given up.
	Hostile bool
}

// ErrNone says that no request was answered with 200.
var ErrNone = errors.New("no request was answered with 200")

// Driver holds connections to a target.
type Driver struct {
	conns []*conn
	sent  atomic.Int64 // numbers
}

// Dial opens connections.
func Dial(ctx context.Context, t *Target, conns int) (*Driver, error) {
	if t.URL.Scheme != "http" {
		return nil, fmt.Errorf("%s: only http can be driven", t.URL)
	}
	d := &Driver{}
	for range conns {
		c, err := dial(ctx, t)
		if err != nil {
			d.Close()
			return nil, err
		}
		c.sent = &d.sent
		d.conns = append(d.conns, c)
	}
	return d, nil
}

// Close closes the connections.
func (d *Driver) Close() {
	for _, c := range d.conns {
		c.close()
	}
}

// Drive runs o against t over connections of its own.
func Drive(ctx context.Context, t *Target, o Options) (*Result, error) {
	d, err := Dial(ctx, t, o.Conns)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Drive(ctx, o)
}

// Drive runs o over all connections, whatever o says of their number. It fails when a
// connection does, and at an answer that is neither 200 nor a 503 with Retry-After.
// After an error, and after the end of ctx, the driver is of no use.
func (d *Driver) Drive(ctx context.Context, o Options) (*Result, error) {
	conns := d.conns
	// Reads and writes fail at once when ctx ends.
	stop := context.AfterFunc(ctx, d.Close)
	defer stop()
	r := &Result{Others: make(map[int]int)}
	s := &schedule{ctx: ctx, start: time.Now(), rate: o.Rate, patience: o.Patience, requests: int64(o.Requests),
		hostile: o.Hostile}
	s.end = s.start.Add(o.Duration)
	var (
		wg   sync.WaitGroup
		once sync.Once
		fail error
	)
	for _, c := range conns {
		wg.Go(func() {
			loop := s.closed
			if o.Rate > 0 {
				loop = s.open
			}
			if err := loop(c, r); err != nil {
				once.Do(func() { fail = err })
				s.failed.Store(true)
			}
		})
	}
	wg.Wait()
	r.Elapsed = time.Since(s.start)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if fail == nil && r.Accepted == 0 && !o.Hostile {
		fail = ErrNone
	}
	return r, fail
}

// Ask sends one request and returns the bytes of the answer's body.
func Ask(ctx context.Context, t *Target) (size int, err error) {
	c, err := dial(ctx, t)
	if err != nil {
		return 0, err
	}
	defer c.close()
	a, err := c.ask()
	if err == nil && a.status != 200 {
		err = statusError(a)
	}
	return a.size, err
}
