// Package admission keeps a server at the load it can bear: it bounds how many
// requests are worked on at once, lets a few wait for a bounded time, and has
// the rest refused before they cost anything.
//
//	          refused: queue_full            refused: queue_deadline
//	                  ▲                              ▲
//	arrival ─▶ Enter ─┴─▶ room (FIFO, ≤ limit) ──────┴─▶ at work (≤ limit) ─▶ Leave
//
// The limit follows the time that requests spend at work (see [Config]). By
// Little's law limit = throughput × time, so holding the time at a tenth of the
// queue deadline holds the limit at what the server finishes in that time,
// whatever a request costs. The room holds at most another limit, which takes
// another tenth to empty: a request that gets in is started long before the
// deadline, and the deadline itself is met only when work stalls.
//
// The room is first in, first out. Last in, first out would start fresh
// requests sooner when the room is overfull, at the price of starving the
// oldest; a room that is emptied within a tenth of the deadline has nothing to
// win from that.
//
// Refusing costs, too: reading a request and writing an answer is a fifth of a
// small decision. So a client that sends again at once after a refusal is
// slowed down: [Gate.Pause] says how long to leave its connection unread, and a
// request that came within that time is early: it gets in only where there is
// room to spare, never before those that keep to their Retry-After. The
// pauses space all refusals out to Config.Refusals a second, and none is longer
// than four fifths of the queue deadline or of a second: with the room and the
// work, a request that was read late is still answered in about the deadline.
// With so many connections that the longest pause does not space them out
// enough, refusing costs what it costs.
package admission
