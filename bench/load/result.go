package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies is a histogram of durations from 1 µs to 100 s. It is exact to a thousandth. The
// zero value is empty.
type Latencies struct{ h *hdrhistogram.Histogram }

// longest is the greatest latency that is distinguished from greater ones, in µs. digits is the
// number of significant digits.
const (
	longest = 100_000_000
	digits  = 3
)

// Record adds the latency d.
func (l *Latencies) Record(d time.Duration) {
	if l.h == nil {
		l.h = hdrhistogram.New(1, longest, digits)
	}
	// RecordValue cannot fail within the bounds.
	_ = l.h.RecordValue(min(max(1, d.Microseconds()), longest))
}

// Add adds all latencies of other.
func (l *Latencies) Add(other Latencies) {
	if other.h == nil {
		return
	}
	if l.h == nil {
		l.h = hdrhistogram.New(1, longest, digits)
	}
	l.h.Merge(other.h)
}

// Count returns the number of latencies.
func (l *Latencies) Count() int64 {
	if l.h == nil {
		return 0
	}
	return l.h.TotalCount()
}

// At returns the latency that a share q of the latencies, 0 to 1, does not exceed. It returns 0 if
// l is empty.
func (l *Latencies) At(q float64) time.Duration {
	if l.h == nil {
		return 0
	}
	return time.Duration(l.h.ValueAtPercentile(100*q)) * time.Microsecond
}

// MarshalText returns the latencies in HdrHistogram's compressed encoding, version 2, in µs.
// HdrHistogram's tools in other languages read this encoding. Empty latencies are an empty text.
func (l Latencies) MarshalText() ([]byte, error) {
	if l.h == nil {
		return nil, nil
	}
	return l.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads the output of [Latencies.MarshalText].
func (l *Latencies) UnmarshalText(text []byte) (err error) {
	l.h = nil
	if len(text) == 0 {
		return nil
	}
	l.h, err = hdrhistogram.Decode(text)
	return err
}

// Result is the measurements of a run.
type Result struct {
	mu sync.Mutex // guards all fields while the run lasts

	Accepted int         // answers with 200
	Refused  int         // answers with 503
	Unsent   int         // arrivals that were given up
	Dropped  int         // connections that broke
	Others   map[int]int // answers with other statuses
	Bytes    int         // the size of the bodies of answers with 200
	Elapsed  time.Duration

	// Decisions counts the decisions of a target that decides, by their names. Mismatched counts those that were not
	// wanted, and Mismatch describes the first of them.
	Decisions  map[string]int
	Mismatched int
	Mismatch   string

	// Scheduled holds the latencies of answers with 200, from the time when the request was
	// due. It also holds the waits of arrivals that were given up. Sent holds the latencies of
	// answers with 200, from the time when the request was sent. Scheduled and Sent differ
	// only in an open loop.
	Scheduled, Sent Latencies
	// Refusals holds the latencies of answers with 503, from the time when the request was
	// sent.
	Refusals Latencies
	// Lateness holds the driver's own delay: how late it sent each request that did not wait
	// for a connection.
	Lateness Latencies
}

// took records an answer that arrived at now. due and sent are the times of its request.
func (r *Result) took(a answer, now, due, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch a.status {
	case 200:
		r.Accepted++
		r.Bytes += a.size
		r.Scheduled.Record(now.Sub(due))
		r.Sent.Record(now.Sub(sent))
		for i, n := range a.got.counts {
			if n > 0 {
				r.Decisions[decisions[i]] += n
			}
		}
		r.Mismatched += a.got.mismatched
		if r.Mismatch == "" {
			r.Mismatch = a.got.mismatch
		}
	case 503:
		r.Refused++
		r.Refusals.Record(now.Sub(sent))
	case 0: // there was no answer
	default:
		r.Others[a.status]++
	}
}

// Progress is what a run has measured so far.
type Progress struct {
	Elapsed                       time.Duration
	Accepted, Refused, Mismatched int
	P99                           time.Duration // from the schedule
}

// watch calls live now and then until the function that it returns is called.
func (r *Result) watch(start time.Time, live func(Progress)) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			r.mu.Lock()
			p := Progress{time.Since(start), r.Accepted, r.Refused, r.Mismatched, r.Scheduled.At(.99)}
			r.mu.Unlock()
			live(p)
		}
	}()
	return func() { close(stop); <-stopped }
}

const liveEvery = 250 * time.Millisecond

func (r *Result) dropped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Dropped++
}

func (r *Result) gaveUp(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Unsent++
	r.Scheduled.Record(after)
}

func (r *Result) late(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Lateness.Record(by)
}
