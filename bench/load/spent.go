package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// spent returns the processor time of a process so far, 0 where it is not known.
func spent(pid int) (sum time.Duration) {
	const tick = 10 * time.Millisecond // of /proc
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the state, field 3, on
	for _, n := range []int{14 - 3, 15 - 3} {
		ticks, _ := strconv.Atoi(string(fields[n])) //nolint:errcheck // a number
		sum += time.Duration(ticks) * tick
	}
	return sum
}
