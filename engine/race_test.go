//go:build race

package engine_test

// raceEnabled says that allocations cannot be counted: the race detector drops
// pooled objects at random.
const raceEnabled = true
