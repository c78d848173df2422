// Package admission shares the processors of a server among organizations, so that no
// organization slows another down.
//
//	           refused: queue_full, queue_deadline
//	                  ▲
//	arrival ─▶ Enter ─┴─▶ queue of the organization ─▶ slot ─▶ Leave
//	                      least charged first            │
//	                              ▲                      ▼
//	                              ├──── Yield, once a millisecond
//	                              └──── charged for the time in the slot
//
// There are as many slots as processors. A request with a slot runs; a request without a slot
// waits. A [Gate] charges each organization for the time that it holds slots. A free slot goes
// to the least charged organization. So if the requests of an organization take a hundred times
// longer, it is served a hundred times less often. An organization that comes back after a
// pause starts level with the waiting ones: idle time is no credit. This is start-time fair
// queueing (Goyal, Vin and Cheng, SIGCOMM 1996). When a request starts, its organization is
// charged the mean time of its last requests. The charge is corrected when the request ends.
//
// Long work calls [Slot.Yield] between its parts. A condition yields after a number of steps,
// and a search of the history yields after some hundreds of rows. Other organizations then go
// first. Work that has yielded continues before the next request of its organization. A request
// therefore waits for slices of the others' work, not for all of it.
//
// A slot is for work that needs a processor. Before work waits for the store, it gives its slot
// back with [Slot.Pause]. Afterwards it asks for another slot with [Slot.Resume]. So a slow
// store stops only the decisions that need it. Paused work counts as waiting. It keeps its
// place in the order of arrival, because later work may wait for it.
//
// Otherwise a slot cannot be taken away, and the compilation of a document does not yield. If
// there are several slots, one organization may not hold all of them, and costly work may not
// either. A decision holds a slot for some 10 µs. For the rest of its time it reads, writes or
// waits without a slot. So one slot is more than an organization with cheap requests can use.
//
// Three limits bound the waiting: the length of each queue, the length of all queues, and time.
// A request is refused at once if two things are true. First, its queue is so long that it
// would wait too long, given the mean time of the queue's requests. Second, a request of the
// queue has already waited for half of its deadline. Because of the second condition, one slow
// request or a pause of the machine does not refuse requests while the queue moves.
package admission
