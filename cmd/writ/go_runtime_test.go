package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTuneGarbage_LeavesWhatTheVariablesSay(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	for _, tt := range []struct {
		gogc, gomemlimit string
		percent          int
		limit            int64
	}{
		{"", "", garbagePercent, memoryGoal},
		{"50", "", 100, memoryGoal},
		{"", "1GiB", garbagePercent, math.MaxInt64},
	} {
		t.Setenv("GOGC", tt.gogc)
		t.Setenv("GOMEMLIMIT", tt.gomemlimit)
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		tuneGarbage()
		if got := debug.SetMemoryLimit(-1); got != tt.limit {
			t.Errorf("GOMEMLIMIT=%s: limit = %d, want %d", tt.gomemlimit, got, tt.limit)
		}
		if got := debug.SetGCPercent(100); got != tt.percent {
			t.Errorf("GOGC=%s: percent = %d, want %d", tt.gogc, got, tt.percent)
		}
	}
}
