package admission

import "time"

const (
	// slice is how long work holds a slot before it lets others go first. A thousand yields a
	// second cost a thousandth of a core.
	slice = time.Millisecond
	// maxBegun is how many pieces of costly work may have begun at once, with or without a
	// slot. Work that has begun keeps its memory. A condition in Rego keeps up to 16 MiB.
	maxBegun = 16
	// maxWaiting is how many requests may be at the gate without a slot, queued or paused. They
	// take some megabytes, and the search for the least charged queue stays within 5 µs. One
	// queue has at most a quarter of them, and never more than it leaves to others. At 50 µs a
	// decision, the last request of such a queue waits 25 ms. The gate remembers twice as many
	// organizations as maxWaiting. An organization that it has forgotten is charged like a new
	// one.
	maxWaiting = 2048
	// meanOver is the weight of the mean of a queue. The next request has the weight 1.
	meanOver = 8
	// managingPatience is how many times longer than a decision work on documents may wait. A
	// policy takes 100 ms to compile, and several may be registered at once.
	managingPatience = 8
)
