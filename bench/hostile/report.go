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
	Took   []int64 // nanoseconds
	Failed int
}

func (l *latencies) note(took time.Duration, ok bool) {
	l.Took = append(l.Took, int64(took))
	if !ok {
		l.Failed++
	}
}

// at returns the quantile q.
func (l *latencies) at(q float64) time.Duration {
	if len(l.Took) == 0 {
		return 0
	}
	slices.Sort(l.Took)
	return time.Duration(l.Took[int(q*float64(len(l.Took)-1))])
}

// report is what an attacker was answered.
type report struct {
	Statuses map[int]int
	Refused  latencies // the 503s
	Dropped  int       // connections
	err      error
}

func (r *report) add(other report) {
	if r.Statuses == nil {
		r.Statuses = make(map[int]int)
	}
	for status, n := range other.Statuses {
		r.Statuses[status] += n
	}
	r.Refused.Took = append(r.Refused.Took, other.Refused.Took...)
	r.Dropped += other.Dropped
	if r.err == nil {
		r.err = other.err
	}
}

// describe gives answers a second by status.
func (r *report) describe(d time.Duration) string {
	var b strings.Builder
	b.WriteString("attacker:")
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		fmt.Fprintf(&b, " %d/s=%.0f", status, float64(r.Statuses[status])/d.Seconds())
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, " dropped=%d", r.Dropped)
	}
	if len(r.Refused.Took) > 0 {
		fmt.Fprintf(&b, " 503 p50=%s p99=%s", ms(r.Refused.at(.5)), ms(r.Refused.at(.99)))
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
