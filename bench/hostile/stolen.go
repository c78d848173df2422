package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

const (
	// attempts is how often an attack is measured at most.
	attempts = 4
	// stolenAtMost is the share of processor time that may be withheld in a
	// measurement: a hundredth of the victim's requests is what its p99 stands on.
	stolenAtMost = 0.003
)

// processors is how much time the processors of this machine had since it started,
// and how much of it the host gave to others, in the unit of /proc/stat.
type processors struct{ all, stolen float64 }

// readProcessors returns zeros where there is no /proc/stat.
func readProcessors() (p processors) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return p
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	for i, field := range strings.Fields(line) {
		// cpu user nice system idle iowait irq softirq steal guest guest_nice, of
		// which the last two are within the first two.
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 {
			continue
		}
		p.all += n
		if i == 8 {
			p.stolen = n
		}
	}
	return p
}

// stolenSince returns the share of the time since before that was withheld.
func (p processors) stolenSince(before processors) float64 {
	if p.all == before.all {
		return 0
	}
	return (p.stolen - before.stolen) / (p.all - before.all)
}
