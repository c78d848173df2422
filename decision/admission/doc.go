// Package admission divides the processors of a server among organizations. No organization can
// slow another one down.
//
//	           refused: queue_full, queue_deadline
//	                  ▲
//	arrival ─▶ Enter ─┴─▶ queue of the organization ─▶ slot ─▶ Leave
//	                      least charged first            │
//	                              ▲                      ▼
//	                              ├──── Yield, once a millisecond
//	                              └──── charged for the time in the slot
//
// There are as many slots as processors. A request runs while it has a slot; otherwise it waits. A
// [Gate] charges each organization for the time that it holds slots. A free slot goes to the
// organization with the least charge. If the requests of an organization take a hundred times
// longer, it is served a hundred times less often. After a pause an organization starts at the
// charge of the queue that was served last: idle time is no credit. This is start-time fair
// queueing (Goyal, Vin and Cheng, SIGCOMM 1996). When a request starts, its organization is charged
// the mean time of its last requests. When the request ends, the charge is corrected.
//
// Long work calls [Slot.Yield] between its parts, so that other organizations go first. A condition
// yields after a number of steps. A search of the history yields after some hundreds of rows. Work
// that has yielded continues before the next request of its organization. So a request waits for
// parts of other organizations' work, not for all of that work.
//
// A slot is for work that needs a processor. Before work waits for the store, it returns its slot
// with [Slot.Pause]. Afterwards it gets another slot with [Slot.Resume]. So a slow store delays
// only the decisions that need the store. Paused work counts as waiting. It keeps its place in the
// order of arrival, because later work may depend on it.
//
// A slot cannot be taken away in other ways. The compilation of a document does not yield. So if
// there are several slots, one organization may not hold all of them, and costly work may not
// either. A decision holds a slot for some 10 µs. For the rest of its time it reads, writes or
// waits without a slot. So one slot is more than an organization with cheap requests can use.
//
// Three limits bound the waiting: the length of each queue, the length of all queues, and a
// deadline. A request is refused at once if two conditions hold. First, it would wait too long,
// given the length of its queue and the mean time of the queue's requests. Second, a request of the
// queue has already waited for half of its deadline. Because of the second condition, a moving
// queue refuses no request after one slow request or a pause of the machine.
package admission
