//go:build unix

package conditiontest

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// Slowest is the longest processor time that the conditions of one evaluation may take together.
const Slowest = 100 * time.Millisecond

// Spent returns the processor time that f takes, with the collection of its garbage.
func Spent(t testing.TB, f func()) time.Duration {
	t.Helper()
	var before, after syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	f()
	if err := errors.Join(err, syscall.Getrusage(syscall.RUSAGE_SELF, &after)); err != nil {
		t.Fatal(err)
	}
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}

// LeastSpent returns the least processor time of several runs of f. It runs f again only if f took
// longer than Slowest: then the machine may be the reason, or garbage that others have left.
func LeastSpent(t testing.TB, f func()) time.Duration {
	t.Helper()
	least := Spent(t, f)
	for i := 0; i < 4 && least > Slowest; i++ {
		least = min(least, Spent(t, f))
	}
	return least
}
