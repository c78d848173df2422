package main

import (
	"fmt"
	"strconv"
	"strings"

	"writ.example/writ/bench/proc"
)

// pinTo pins this process as --pin says and returns the processors for servers. auto pins only
// if this process has started the servers on this machine.
func pinTo(pin string, started bool) (server []int, pinned string, err error) {
	text := pin
	if text == "auto" {
		text = "off"
		if all := proc.Allowed(); len(all) >= 2 && started {
			text = fmt.Sprintf("%d:%d", all[0], all[1])
		}
	}
	if text == "off" {
		return nil, "not pinned", nil
	}
	first, second, ok := strings.Cut(text, ":")
	server, err1 := processorList(first)
	driver, err2 := processorList(second)
	if !ok || err1 != nil || err2 != nil {
		return nil, "",
			&usageError{fmt.Sprintf(
				"--pin %q: want auto, off, or processors of server and driver such as 0:1 or 0-1:2,3", pin,
			)}
	}
	return server, fmt.Sprintf("servers on processor %s, driver on %s", first, second), proc.Pin(driver)
}

// lastProcessor is the highest number of a processor that a list may contain.
const lastProcessor = 1023

// processorList parses a list such as 0-1,3.
func processorList(text string) (all []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last > lastProcessor {
			return nil, fmt.Errorf("processors %q", part)
		}
		for i := first; i <= last; i++ {
			all = append(all, i)
		}
	}
	return all, nil
}
