package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// latencies are those of one run.
type latencies struct {
	took   []time.Duration
	failed int
}

func (l *latencies) note(took time.Duration, ok bool) {
	l.took = append(l.took, took)
	if !ok {
		l.failed++
	}
}

// at returns the quantile q.
func (l *latencies) at(q float64) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[int(q*float64(len(l.took)-1))]
}

// report is what an attacker was answered.
type report struct {
	statuses map[int]int
	refused  latencies // the 503s
	dropped  int       // connections
	err      error
}

func (r *report) add(other report) {
	if r.statuses == nil {
		r.statuses = make(map[int]int)
	}
	for status, n := range other.statuses {
		r.statuses[status] += n
	}
	r.refused.took = append(r.refused.took, other.refused.took...)
	r.dropped += other.dropped
	if r.err == nil {
		r.err = other.err
	}
}

// String gives answers a second by status.
func (r *report) String(d time.Duration) string {
	var b strings.Builder
	b.WriteString("attacker:")
	for _, status := range slices.Sorted(maps.Keys(r.statuses)) {
		fmt.Fprintf(&b, " %d/s=%.0f", status, float64(r.statuses[status])/d.Seconds())
	}
	if r.dropped > 0 {
		fmt.Fprintf(&b, " dropped=%d", r.dropped)
	}
	if len(r.refused.took) > 0 {
		fmt.Fprintf(&b, " 503 p50=%s p99=%s", ms(r.refused.at(.5)), ms(r.refused.at(.99)))
	}
	return b.String()
}

// watchMemory sends the most resident memory of the server, in bytes, once ctx
// has ended.
func (s *server) watchMemory(ctx context.Context) <-chan int {
	most := make(chan int, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		top := 0
		for {
			top = max(top, resident(s.pid))
			select {
			case <-tick.C:
			case <-ctx.Done():
				most <- top
				return
			}
		}
	}()
	return most
}

// resident returns the resident memory of a process, 0 where it cannot be read.
func resident(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}
