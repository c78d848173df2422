package main

import "golang.org/x/sys/unix"

// clockKept reports whether the kernel says that something keeps the clock right. It is not known if the kernel does
// not say so.
func clockKept() (kept, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return state != unix.TIME_ERROR, err == nil
}
