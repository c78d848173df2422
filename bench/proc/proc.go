// Package proc reads what Linux says of processes and processors, for benchmarks.
// Elsewhere it reads zeros.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const tick = 10 * time.Millisecond // of /proc

// Spent returns the processor time of processes so far, together.
func Spent(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the state, field 3, on
		sum += ticks(fields[14-3]) + ticks(fields[15-3])                // of the user and of the system
	}
	return sum
}

// Processors is how much time the processors of this machine had since it started,
// and how much of it the host gave to others.
type Processors struct{ All, Stolen time.Duration }

// ReadProcessors returns what there is by now.
func ReadProcessors() (p Processors) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	// cpu user nice system idle iowait irq softirq steal guest guest_nice, of which the
	// last two are within the first two.
	const steal = 8
	for i, field := range bytes.Fields(line) {
		if i == 0 || i > steal {
			continue
		}
		p.All += ticks(field)
		if i == steal {
			p.Stolen = ticks(field)
		}
	}
	return p
}

// StolenSince returns the share of the time since before that was given to others.
func (p Processors) StolenSince(before Processors) float64 {
	if p.All == before.All {
		return 0
	}
	return float64(p.Stolen-before.Stolen) / float64(p.All-before.All)
}

// ticks returns what a number of /proc says, 0 where it is none.
func ticks(number []byte) time.Duration {
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * tick
}
