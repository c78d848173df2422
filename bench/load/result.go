package main

import (
	"fmt"
	"slices"
	"time"
)

// result is what a run measured.
type result struct {
	// accepted and refused hold the latencies of the 200s and the 503s; other
	// counts the rest of the answers.
	accepted, refused []time.Duration
	other             int
	// acceptedSent and refusedSent are the same from the sending on.
	acceptedSent, refusedSent []time.Duration
	// unsent counts the arrivals of an open run that found no free connection.
	// late holds how late those were sent that did not have to wait for one: the
	// driver's own lateness.
	unsent int
	late   []time.Duration

	elapsed time.Duration
	server  time.Duration // of its processor time
	bytes   int           // of all bodies of 200s
}

func (r *result) add(s *result) {
	r.accepted = append(r.accepted, s.accepted...)
	r.refused = append(r.refused, s.refused...)
	r.acceptedSent = append(r.acceptedSent, s.acceptedSent...)
	r.refusedSent = append(r.refusedSent, s.refusedSent...)
	r.late = append(r.late, s.late...)
	r.other += s.other
	r.unsent += s.unsent
	r.bytes += s.bytes
}

// took notes an answer to a request that was due and sent then.
func (r *result) took(a answer, due, sent time.Time) {
	now := time.Now()
	d, s := now.Sub(due), now.Sub(sent)
	switch a.status {
	case 200:
		r.accepted = append(r.accepted, d)
		r.acceptedSent = append(r.acceptedSent, s)
		r.bytes += a.size
	case 503:
		r.refused = append(r.refused, d)
		r.refusedSent = append(r.refusedSent, s)
	default:
		r.other++
	}
}

// processor says how much of the server's processor time a decision took.
func (r *result) processor(o options) string {
	if o.pid == 0 {
		return ""
	}
	return fmt.Sprintf(" processor=%.1fus", float64(r.server.Microseconds())/float64(len(r.accepted)))
}

func (r *result) print(o options) {
	per := func(n int) float64 { return float64(n) / r.elapsed.Seconds() }
	n := len(r.accepted)
	if o.rate <= 0 && !o.honour {
		fmt.Printf("%-24s conns=%d closed requests=%d requests/s=%.0f intents/s=%.0f %s response=%dB%s\n",
			o.label, o.conns, n, per(n), per(n*max(1, o.batch)), percentiles(r.accepted), r.bytes/n, r.processor(o))
		return
	}
	model := "closed, honours Retry-After"
	if o.rate > 0 {
		model = fmt.Sprintf("open, offered/s=%.0f", o.rate)
	}
	fmt.Printf("%-16s conns=%d %s decided=%d 200/s=%.0f 503/s=%.0f other/s=%.0f unsent/s=%.0f%s\n",
		o.label, o.conns, model, n, per(n), per(len(r.refused)), per(r.other), per(r.unsent), r.processor(o))
	fmt.Printf("    200 from its sending: %s\n    503 from its sending: %s\n", percentiles(r.acceptedSent), percentiles(r.refusedSent))
	if o.rate > 0 {
		fmt.Printf("    200 from the schedule: %s\n    503 from the schedule: %s\n", percentiles(r.accepted), percentiles(r.refused))
		fmt.Printf("    the driver's own lateness: %s, of %d sends that had a free connection\n", percentiles(r.late), len(r.late))
	}
}

// percentiles sorts d and describes it.
func percentiles(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))] }
	return fmt.Sprintf("p50=%v p90=%v p99=%v p99.9=%v max=%v", at(.5), at(.9), at(.99), at(.999), at(1))
}
