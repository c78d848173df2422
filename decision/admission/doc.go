// Package admission shares a server's processors out among organizations, so
// that none slows another down.
//
//	           refused: queue_full, queue_deadline
//	                  ▲
//	arrival ─▶ Enter ─┴─▶ queue of the organization ─▶ slot ─▶ Leave
//	                      least charged first            │
//	                              ▲                      ▼
//	                              ├──── Yield, once a millisecond
//	                              └──── charged for the time in the slot
//
// There are as many slots as processors: a request with a slot runs, one without
// waits. A [Gate] charges each organization for the time that it holds slots and
// gives a free slot to the one that was charged least, so an organization whose
// requests take a hundred times longer is served a hundred times less often. An
// organization that comes back after a pause starts level with those that wait: idle
// time is no credit. This is
// start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996), with the mean of
// the organization's last requests charged in advance and corrected at the end.
//
// Long work calls [Slot.Yield] between its parts: conditions count steps, and a search
// of the history reads some hundreds of rows at a time. Other organizations go first
// then, and yielded work continues before the organization's next request. A request
// therefore waits for slices of the others' work, not for all of it.
//
// A slot is for what needs a processor. Work leaves it before it waits for the store, by
// [Slot.Pause], and asks for another one afterwards, by [Slot.Resume]. So a store that is slow or
// does not answer stops the decisions that need it, and no others. Paused work has the place of a
// request that waits, and keeps its order of arrival: what came later may wait for it.
//
// Otherwise a slot cannot be taken away, and compiling a document does not yield. Where there
// are several slots, neither one organization nor costly work may hold all of them. A
// decision takes some 10 µs of a slot; the rest of its time it reads, writes or waits
// outside. One slot is far more than an organization with cheap requests can use.
//
// Waiting is bounded in each queue, in all queues, and by time. A request that would wait too long
// is refused at once: by its queue's length and mean, and if the first of the queue has in fact
// waited for half of its deadline. One request that took seconds, on a machine that was busy with
// other things, says nothing about a queue that moves, nor does a pause about one that is short.
package admission
