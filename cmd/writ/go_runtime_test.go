package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestTuneGarbage_LeavesWhatTheVariablesSay(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	for _, tt := range []struct {
		gogc, gomemlimit string
		own              bool // the percentage of GOGC stays
		limit            int64
	}{
		{"", "", false, memoryGoal},
		{"50", "", true, memoryGoal},
		{"", "1GiB", false, math.MaxInt64},
	} {
		t.Setenv("GOGC", tt.gogc)
		t.Setenv("GOMEMLIMIT", tt.gomemlimit)
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		tuneGarbage()()
		if got := debug.SetMemoryLimit(-1); got != tt.limit {
			t.Errorf("GOMEMLIMIT=%s: limit = %d, want %d", tt.gomemlimit, got, tt.limit)
		}
		if got := debug.SetGCPercent(100); (got == 100) != tt.own {
			t.Errorf("GOGC=%s: percent = %d, want that of GOGC: %t", tt.gogc, got, tt.own)
		}
	}
}

// TestRoom checks that the room for garbage follows what a collection scans and how much garbage is made.
func TestRoom(t *testing.T) {
	const MiB = 1 << 20
	for _, tt := range []struct{ scanned, made, want uint64 }{
		{0, 0, leastRoom},
		{20 * MiB, 100 * MiB, leastRoom},
		{100 * MiB, 150 * MiB, 200 * MiB},
		{30 * MiB, 900 * MiB, 300 * MiB},
	} {
		if got := roomFor(tt.scanned, tt.made); got != tt.want {
			t.Errorf("roomFor(%d, %d) = %d, want %d", tt.scanned, tt.made, got, tt.want)
		}
	}
	for _, tt := range []struct{ live, scannable, objects, want uint64 }{
		{40 * MiB, 30 * MiB, 40 * MiB, 30 * MiB},
		{40 * MiB, 300 * MiB, 400 * MiB, 30 * MiB}, // most is garbage
		{40 * MiB, 50 * MiB, 45 * MiB, 40 * MiB},   // sampled while a collection ends
		{0, 0, 0, 0},
	} {
		if got := scannedOf(tt.live, tt.scannable, tt.objects); got != tt.want {
			t.Errorf("scannedOf(%d, %d, %d) = %d, want %d", tt.live, tt.scannable, tt.objects, got, tt.want)
		}
	}
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	r := newRoom()
	r.set()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	metrics.Read(r.sampled)
	live := r.sampled[0].Value.Uint64()
	if got := stats.NextGC - live; got < leastRoom*8/10 || got > leastRoom*12/10 {
		t.Errorf("%d bytes above the live heap of %d, want about %d", got, live, leastRoom)
	}
}

// TestRests checks that memory is given back once after a burst, when nothing happens any more.
func TestRests(t *testing.T) {
	r := &room{made: restLeast}
	rests := func(seconds int, rate uint64) (times int) {
		for range seconds {
			if r.rests(rate) {
				times++
			}
		}
		return times
	}
	if got := rests(restFor-1, 0); got != 0 {
		t.Errorf("memory is given back before %d seconds", restFor)
	}
	if got := rests(1, restRate); got != 0 {
		t.Error("memory is given back while much garbage is made")
	}
	if got := rests(restFor-1, 0); got != 0 {
		t.Errorf("memory is given back before %d seconds after a burst", restFor)
	}
	if got := rests(100, restRate-1); got != 1 {
		t.Errorf("memory is given back %d times after a burst, want once", got)
	}
	r.made += restLeast
	if got := rests(100, 0); got != 1 {
		t.Errorf("memory is given back %d times after more garbage, want once", got)
	}
}
