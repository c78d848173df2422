package main

import (
	"os"
	"runtime/debug"
)

// Each garbage collection stops all requests for a moment, which is as long as
// the machine lets the slowest thread wait. With Go's default of 100 % one
// organization that makes garbage causes ten and more a second.
const (
	garbagePercent = 400       // of what is live
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
