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
// waits. A [Gate] charges each organization for the time that it holds slots. A free slot
// goes to the least charged organization, so one whose requests take a hundred times longer
// is served a hundred times less often. An organization that comes back after a pause
// starts level with the waiting ones: idle time is no credit. This is start-time fair
// queueing (Goyal, Vin and Cheng, SIGCOMM 1996). The mean of the organization's last
// requests is charged in advance and corrected at the end.
//
// Long work calls [Slot.Yield] between its parts: conditions count steps, and a search
// of the history reads some hundreds of rows at a time. Other organizations go first
// then, and yielded work continues before the organization's next request. A request
// therefore waits for slices of the others' work, not for all of it.
//
// A slot is for work that needs a processor. Work gives it back before it waits for the
// store, by [Slot.Pause], and asks for another one afterwards, by [Slot.Resume]. So a slow
// store stops only the decisions that need it. Paused work counts as waiting and keeps its
// order of arrival, because later work may wait for it.
//
// Otherwise a slot cannot be taken away, and compiling a document does not yield. If there
// are several slots, neither one organization nor costly work may hold all of them. A
// decision takes some 10 µs of a slot, and reads, writes or waits outside of it for the
// rest of its time. So one slot is more than an organization with cheap requests can use.
//
// Waiting is bounded in each queue, in all queues, and by time. A request is refused at once
// if two things hold: by the length and mean of its queue it would wait too long, and a
// request of the queue has already waited for half of its deadline. The second keeps one
// slow request, or a pause of the machine, from refusing requests of a queue that moves.
package admission
