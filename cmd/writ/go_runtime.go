package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// processors returns how many processors the service may use. Its first call has
// Go run on one thread more. Go's scheduler lets a goroutine run for 10 ms, and
// the collector's for longer, before another that is ready gets its thread; the
// kernel, given a thread to choose from, shares the processors more finely. Beside
// an attack the p99 of others fell from 17-29 to 6-9 ms, see bench/README.md.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + 1)
	return n
})

// Each garbage collection stops all requests for a moment, which is as long as
// the machine lets the slowest thread wait. With Go's default of 100 % one
// organization that makes garbage causes ten and more a second.
const (
	garbagePercent = 800       // of what is live
	memoryGoal     = 640 << 20 // above it, collections come as often as they must
)

// tuneGarbage sets what the variables GOGC and GOMEMLIMIT of Go's runtime do not.
func tuneGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryGoal)
	}
}
