//go:build race

package engine_test

// raceEnabled says that the race detector is on. Tests cannot count allocations then, because the
// race detector drops pooled objects at random.
const raceEnabled = true
