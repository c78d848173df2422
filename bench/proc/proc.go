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

// Processors is how much time the processors of this machine had since it started,
// how much of it the host gave to others (Stolen), and how much programs used (Used,
// without what the kernel spent on interrupts). It counts in ticks.
type Processors struct{ All, Stolen, Used time.Duration }

// ReadProcessors returns what there is by now.
func ReadProcessors() (p Processors) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	// cpu user nice system idle iowait irq softirq steal guest guest_nice, of which the
	// last two are within the first two.
	const user, nice, system, steal = 1, 2, 3, 8
	for i, field := range bytes.Fields(line) {
		if i == 0 || i > steal {
			continue
		}
		p.All += ticks(field)
		switch i {
		case user, nice, system:
			p.Used += ticks(field)
		case steal:
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

// Other returns how many processors others used since before (0.5 is half of one):
// other programs, and the host for other machines. The caller's own programs have spent
// own.
func (p Processors) Other(before Processors, own, elapsed time.Duration) float64 {
	if elapsed <= 0 || p.All == before.All {
		return 0
	}
	other := p.Used - before.Used + p.Stolen - before.Stolen - own
	return max(0, other.Seconds()/elapsed.Seconds())
}

// Resident returns the resident memory of a process in bytes, 0 where it cannot be read.
func Resident(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(string(fields[1])) // 0 where it is none
	return pages * os.Getpagesize()
}

// ticks reads a number of ticks of /proc. Without a number it is 0.
func ticks(number []byte) time.Duration {
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * tick
}
