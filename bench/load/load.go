// Package load sends requests to one HTTP endpoint and measures the answers.
//
// Requests arrive in a closed loop or in an open loop. In a closed loop, each connection sends
// its next request when the last one is answered. So the latencies are those at saturation, and
// a slow server gets fewer requests. If the answer is a 503, the connection waits as long as
// Retry-After says.
//
// In an open loop, requests arrive on a schedule that does not depend on the answers. The first
// free connection sends the next arrival. The latency counts from the scheduled time, so it
// includes the wait for a connection. A server that stalls prevents requests from being sent,
// and this delay is measured too (no coordinated omission). If an arrival finds no connection
// within the patience, it is given up, and its wait counts as its latency.
//
// Every request has random intent ids, so the server cannot answer with an earlier decision.
package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Placeholders of a body. In each request, every IntentID is replaced by a random UUID of
// version 4, every PolicyID by the policy of the [Caller], every Number by a number that
// grows with each request, and every Time by the time of the request.
const (
	IntentID = "00000000-0000-4000-8000-000000000000"
	PolicyID = "00000000-0000-4000-8000-000000000001"
	Number   = 1_000_000_001
	Time     = "2000-01-01T00:00:01Z"
)

// Target describes the requests to an endpoint.
type Target struct {
	URL     *url.URL    // the scheme must be http or https
	TLS     *tls.Config // for https; nil: the system's authorities
	Header  http.Header // is sent with each request
	Body    []byte      // JSON with the placeholders; nil without Messages: the requests are GETs
	Callers []Caller    // each request has a random caller; empty: requests have no credential and no policy
	InTurn  bool        // each request has the next caller in place of a random one
	// Messages stand in place of Body. A request has as many as Intents says, each drawn at random by its weight, with
	// commas between them and the texts Before and After around them.
	Messages      []Message
	Before, After string
	// Intents is how many intents a request has.
	Intents int
	// Allowed is a text that the body of an answer has once for each intent. An answer with another number is an error
	// of the run.
	Allowed string
	// Decides says that the answers are those of a writ server, whose decisions are counted. A decision that its
	// message does not want is an error of the run, or with Counts a mismatch, which is counted.
	Decides, Counts bool
	// Window makes each connection a stream of intents with so many on their way. A request is one intent then.
	Window int
	// Manner is how each connection misuses its streams. It is for a hostile load of a target with a Window.
	Manner Manner
	// Approves has the approver of the caller approve each intent, which must be held. A request is then the intent,
	// the approval, and the intent again, which must be allowed.
	Approves bool
}

// Caller is an API key and a policy of the key's organization. All keys of a target have the
// same length.
type Caller struct {
	Key, PolicyID string
	Approver      string // the key that approves intents of Key
}

// Options describe one run.
type Options struct {
	Conns    int
	Duration time.Duration
	Requests int     // a closed loop ends after this many requests; 0: it ends after Duration
	Rate     float64 // the arrivals per second; 0: a closed loop
	// Ramp makes the arrivals per second go evenly from From to Rate, which may be 0.
	Ramp bool
	From float64
	// Live is called now and then while the run lasts, if it is set.
	Live     func(Progress)
	Patience time.Duration // how long an arrival of an open loop may wait
	// Hostile changes a closed loop. It counts every answer, keeps no body and ignores
	// Retry-After. If a connection breaks, it opens the connection again. It gives up requests
	// that have no answer one second after Duration.
	Hostile bool
}

// ErrNone means that no request was answered with 200.
var ErrNone = errors.New("no request was answered with 200")

// Driver holds connections to a target.
type Driver struct {
	conns []lane
	sent  atomic.Int64 // the last number that was sent
}

// lane is a connection that carries requests.
type lane interface {
	run(s *schedule, r *Result) error
	close()
}

// Dial opens connections.
func Dial(ctx context.Context, t *Target, conns int) (*Driver, error) {
	if t.URL.Scheme != "http" && t.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: only http and https can be driven", t.URL)
	}
	d := &Driver{}
	for range conns {
		c, err := dialLane(ctx, t, &d.sent)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.conns = append(d.conns, c)
	}
	return d, nil
}

func dialLane(ctx context.Context, t *Target, sent *atomic.Int64) (lane, error) {
	if t.Manner != "" {
		return &abuser{target: t, sent: sent}, nil
	}
	if t.Window > 0 {
		return dialStream(ctx, t, sent)
	}
	return dial(ctx, t, sent)
}

// Close closes all connections.
func (d *Driver) Close() {
	for _, c := range d.conns {
		c.close()
	}
}

// Drive opens connections, runs o against t and closes the connections.
func Drive(ctx context.Context, t *Target, o Options) (*Result, error) {
	d, err := Dial(ctx, t, o.Conns)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Drive(ctx, o)
}

// Drive runs o over all connections of d. It ignores o.Conns. It fails if a connection fails,
// and if an answer is neither a 200 nor a 503 with Retry-After. After an error or the end of
// ctx, the driver cannot be used any more.
func (d *Driver) Drive(ctx context.Context, o Options) (*Result, error) {
	conns := d.conns
	// When ctx ends, reads and writes fail at once.
	stop := context.AfterFunc(ctx, d.Close)
	defer stop()
	r := &Result{Others: make(map[int]int), Decisions: make(map[string]int)}
	s := &schedule{ctx: ctx, start: time.Now(), open: o.Rate > 0 || o.Ramp, from: o.Rate, rate: o.Rate,
		patience: o.Patience, requests: int64(o.Requests), hostile: o.Hostile}
	if o.Ramp {
		s.from = o.From
	}
	s.end = s.start.Add(o.Duration)
	var (
		wg   sync.WaitGroup
		once sync.Once
		fail error
	)
	for _, c := range conns {
		wg.Go(func() {
			if err := c.run(s, r); err != nil {
				once.Do(func() { fail = err })
				s.failed.Store(true)
			}
		})
	}
	if o.Live != nil {
		defer r.watch(s.start, o.Live)()
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

// Ask sends one request and returns the size of the answer's body in bytes.
func Ask(ctx context.Context, t *Target) (size int, err error) {
	c, err := dial(ctx, t, new(atomic.Int64))
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
