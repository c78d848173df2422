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
// There are as many slots as processors: what has one runs, what has none waits
// without cost. The queues are served in turn. A [Gate] adds up the time that
// each organization held slots and gives a free slot to the one that has been
// charged least, so an organization whose requests are a hundred times dearer is
// served a hundred times less often. An organization that comes back after a
// pause starts where those that wait stand: it saves nothing up. This is
// start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996), with the mean of
// the organization's last requests charged in advance and corrected at the end.
//
// Work that can take longer calls [Slot.Yield] between its parts: conditions count
// steps, and a search of the history reads some hundreds of rows at a time. Then
// others go first, and what was begun goes on before the organization's next
// request. So what waits, waits for a slice of the others' work and not for its
// end.
//
// A slot cannot be taken away, and compiling a document does not yield, so none
// may hold all slots where there are several: neither an organization nor what is
// known to be dear. A decision takes
// some 10 µs of a slot; the rest of its time it reads, writes or waits outside. So
// even one slot is far more than an organization with cheap requests can use.
//
// What waits is bounded in each queue, in all, and by time. What would wait too
// long, judged by its queue's length and mean, is refused at once.
package admission
