package admission

import "time"

const (
	// slice is how long work holds a slot before it yields to other work. A thousand yields per
	// second cost a thousandth of a core.
	slice = time.Millisecond
	// maxBegun bounds the pieces of costly work that have begun, with or without a slot. Work that
	// has begun keeps its memory. A condition in Rego keeps up to 16 MiB.
	maxBegun = 16
	// maxWaiting bounds the requests at the gate without a slot, queued or paused. They take some
	// megabytes, and the search for the least charged queue stays within 5 µs. One queue has at
	// most a quarter of these requests, and never more than places that are left for other queues.
	// If a decision takes 50 µs, the last request of such a queue waits 25 ms. The gate remembers
	// twice as many organizations as maxWaiting. A forgotten organization is charged like a new
	// one.
	maxWaiting = 2048
	// meanOver is the weight of a queue's mean. The next request has the weight 1.
	meanOver = 8
	// managingPatience is how many times longer work on documents may wait than a decision. A
	// policy takes 100 ms to compile, and several may be registered concurrently.
	managingPatience = 8
)
