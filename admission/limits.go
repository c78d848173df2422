package admission

import "time"

const (
	// slice is how long work holds a slot before it lets others go first. A
	// thousand yields a second cost a thousandth of a core.
	slice = time.Millisecond
	// maxBegun is how much costly work may be begun at once, with or without a slot.
	// What is begun keeps its memory: conditions in Rego up to 16 MiB.
	maxBegun = 16
	// maxQueue is how many requests of one queue may wait. At 50 µs a decision
	// the last waits 25 ms.
	maxQueue = 512
	// maxWaiting is how many may wait in all: some megabytes of goroutines and
	// bodies, and the search for the least charged queue stays within 5 µs.
	maxWaiting = 2048
	// meanOver is the weight of the mean against one more request.
	meanOver = 8
	// maxOrganizations is how many organizations are remembered: one that is forgotten
	// has its next request judged as its first.
	maxOrganizations = 4096
	// managingPatience is how many times longer than a decision work on documents
	// may wait: a policy takes 100 ms to compile, and several may be registered at
	// once.
	managingPatience = 8
)
