// Package proc reads the figures that Linux has about processes and processors, for benchmarks.
// On other systems it reads zeros.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const tick = 10 * time.Millisecond // the unit of /proc

// Processors has times of all processors of this machine together since the machine started.
// All is the whole time. Stolen is the time that the host gave to others. Used is the time that
// programs used, without the time that the kernel spent on interrupts. The times are multiples
// of a tick.
type Processors struct{ All, Stolen, Used time.Duration }

// ReadProcessors returns the times so far.
func ReadProcessors() (p Processors) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	// The fields are: cpu user nice system idle iowait irq softirq steal guest guest_nice. The
	// times of guest and guest_nice are included in user and nice.
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

// StolenSince returns the share of the time since before that the host gave to others.
func (p Processors) StolenSince(before Processors) float64 {
	if p.All == before.All {
		return 0
	}
	return float64(p.Stolen-before.Stolen) / float64(p.All-before.All)
}

// Other returns how many processors others used since before. 0.5 is half of a processor. The
// others are other programs, and the host when it serves other machines. own is the time that
// the caller's own programs have used.
func (p Processors) Other(before Processors, own, elapsed time.Duration) float64 {
	if elapsed <= 0 || p.All == before.All {
		return 0
	}
	other := p.Used - before.Used + p.Stolen - before.Stolen - own
	return max(0, other.Seconds()/elapsed.Seconds())
}

// Resident returns the resident memory of a process in bytes. It returns 0 if the memory cannot
// be read.
func Resident(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(string(fields[1])) // 0 if it is not a number
	return pages * os.Getpagesize()
}

// Group returns the processes of the process group that leader leads, without leader.
func Group(leader int) (members []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == leader {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		// After the name, in parentheses, come the state, the parent and the group.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(leader) {
			members = append(members, pid)
		}
	}
	return members
}

// ticks parses a number of ticks of /proc. If there is no number, it returns 0.
func ticks(number []byte) time.Duration {
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * tick
}
