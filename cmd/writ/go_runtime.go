package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
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
// causes ten or more collections a second. With a percentage that prevents this, a process takes many times the memory
// that is live. So the room for garbage follows what a collection costs, and how often it comes.
const (
	leastRoom  = 48 << 20  // for garbage, in bytes
	memoryGoal = 640 << 20 // above this, collections come as often as necessary
	// roomEvery is how often the room is set anew.
	roomEvery = time.Second

	// A process rests that has made less than restRate bytes of garbage in each of the last restFor
	// seconds. It gives back what it does not use, once it has made restLeast bytes of garbage.
	restRate  = 256 << 10
	restFor   = 10
	restLeast = 24 << 20
)

// roomFor returns how much garbage there may be, in bytes. scanned is how many bytes a collection has to scan, and made
// how many bytes of garbage are made in a second. There are at most three collections a second, and a collection scans
// at most half of the bytes that were allocated before it.
func roomFor(scanned, made uint64) uint64 { return max(leastRoom, 2*scanned, made/3) }

// scannedOf returns how many of the live bytes a collection scans. scannable is how many of the bytes of all objects it
// would scan. They have garbage, too: if the room grew with it, no collection would come.
func scannedOf(live, scannable, objects uint64) uint64 {
	return uint64(float64(live) * min(1, float64(scannable)/float64(max(objects, 1))))
}

// tuneGarbage sets the limits of the collector that the variables GOGC and GOMEMLIMIT of Go's
// runtime do not set. It keeps the room for garbage until stop is called.
func tuneGarbage() (stop func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryGoal)
	}
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	r := newRoom()
	r.set()
	ctx, cancel := context.WithCancel(context.Background())
	var kept sync.WaitGroup
	kept.Go(func() {
		tick := time.NewTicker(roomEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.set()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		kept.Wait()
	}
}

// room keeps the percentage of the collector.
type room struct {
	// sampled are the bytes that the last collection left, those of the heap that one would scan if nothing were
	// garbage, all that were allocated, the scanned ones of stacks and of globals, and those of all objects.
	sampled []metrics.Sample
	made    uint64 // allocated bytes at the last sample
	at      time.Time
	percent int
	rested  int    // seconds
	given   uint64 // allocated bytes when memory was last given back
}

func newRoom() *room {
	r := &room{}
	for _, name := range [...]string{
		"/gc/heap/live:bytes", "/gc/scan/heap:bytes", "/gc/heap/allocs:bytes", "/gc/scan/stack:bytes",
		"/gc/scan/globals:bytes", "/memory/classes/heap/objects:bytes",
	} {
		r.sampled = append(r.sampled, metrics.Sample{Name: name})
	}
	return r
}

// set sets the percentage. A change stops all requests for a moment, so it sets none that is nearly the same.
func (r *room) set() {
	metrics.Read(r.sampled)
	live, made := r.sampled[0].Value.Uint64(), r.sampled[2].Value.Uint64()
	scanned := scannedOf(live, r.sampled[1].Value.Uint64(), r.sampled[5].Value.Uint64())
	now := time.Now()
	rate := uint64(0)
	if since := now.Sub(r.at); !r.at.IsZero() && since > 0 {
		rate = uint64(float64(made-r.made) / since.Seconds())
	}
	r.made, r.at = made, now
	if r.rests(rate) {
		giveBack()
	}
	base := live + r.sampled[3].Value.Uint64() + r.sampled[4].Value.Uint64()
	percent := int(100 * roomFor(scanned, rate) / max(base, 1<<20)) //nolint:gosec // a share of the memory there is
	if percent*10 < r.percent*9 || percent*10 > r.percent*11 {
		r.percent = percent
		debug.SetGCPercent(percent)
	}
}

// rests reports whether the process should give memory back. rate is how many bytes of garbage it
// made in the last second.
func (r *room) rests(rate uint64) bool {
	if r.rested++; rate >= restRate {
		r.rested = 0
	}
	if r.rested < restFor || r.made-r.given < restLeast {
		return false
	}
	r.given = r.made
	return true
}

// giveBack collects garbage, and returns its memory to the system. A start, or a burst of requests,
// leaves memory that Go keeps for the next one, and nearly all pages of the program's file.
func giveBack() {
	debug.FreeOSMemory()
	unmapProgram()
}
