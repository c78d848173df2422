package admission

import "time"

const (
	// slice is how long work holds a slot before it lets others go first. A
	// thousand yields a second cost a thousandth of a core.
	slice = time.Millisecond
	// maxBegun is how much costly work may be begun at once, with or without a slot.
	// Begun work keeps its memory: conditions in Rego up to 16 MiB.
	maxBegun = 16
	// maxWaiting is how many requests may be at the gate without a slot, queued or paused.
	// They take some megabytes, and the search for the least charged queue stays within
	// 5 µs. One queue has at most a quarter of them, and never more than it leaves to
	// others: at 50 µs a decision its last request waits 25 ms. Twice as many
	// organizations are remembered. A forgotten one is charged like a new one.
	maxWaiting = 2048
	// meanOver is the weight of the mean against the next request.
	meanOver = 8
	// managingPatience is how many times longer than a decision work on documents
	// may wait: a policy takes 100 ms to compile, and several may be registered at
	// once.
	managingPatience = 8
)
