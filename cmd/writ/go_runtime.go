package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// processors returns how many processors the service may use. Its first call gives Go one
// thread more. Go's scheduler lets a goroutine run for 10 ms before another goroutine gets its
// thread, and the collector's goroutines for longer. With a thread to choose from, the kernel
// shares the processors more finely. Beside an attack, the extra thread reduced the p99 of
// other organizations from 17-29 ms to 6-9 ms: see bench/README.md.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + 1)
	return n
})

// Each garbage collection stops all requests for a moment. The moment is as long as the machine
// lets the slowest thread wait. With Go's default of 100 %, one organization that makes garbage
// causes ten or more collections a second.
const (
	garbagePercent = 800       // in percent of the live memory
	memoryGoal     = 640 << 20 // above this, collections come as often as necessary
)

// tuneGarbage sets the limits of the collector that the variables GOGC and GOMEMLIMIT of Go's
// runtime do not set.
func tuneGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryGoal)
	}
}
