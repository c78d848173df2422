package protocol

import "slices"

// Mechanism is a part of the protocol that protects an invariant.
type Mechanism uint

// The mechanisms. A [World] can leave some of them out.
const (
	// Fence: the key of a head, {chain, sequence}, is unique.
	Fence Mechanism = 1 << iota
	// Named: a transaction that adds a head changes the row of the chain, which must name its replica.
	Named
	// Closed: giving a replica up takes its name out of that row.
	Closed
	// Unique: the key of a row is unique. A transaction is not committed if one of its intents has a row.
	Unique
	// LookAgain: after a transaction has met such a row, the next one looks up which of its intents have rows,
	// and signs only the others.
	LookAgain
	// LookUnsigned: what a replica does not sign, it looks up.
	LookUnsigned
	// SameBatch: after an unknown outcome the same batch is committed again.
	SameBatch
	// Sure: a replica trusts the end of the chain that a transaction has read only once the
	// transaction is committed.
	Sure
	// Barrier: the caller of the switch gets the answer only once every replica that holds a slot
	// has heard of the switch.
	Barrier
	// GivenUp: the switch waits for each replica that has not heard of it. Only giving the replica
	// up ends the wait. The end of its lease is not enough.
	GivenUp
	// Bound: a replica trusts its cached documents only for a limited time without proof that it
	// has missed no change.
	Bound
	// Grant: the store grants places in the meter.
	Grant
	// Forget: a replica that returns a place no longer uses it, even if the answer is an error.
	Forget
	// Number: the row of the chain also has the number of the last head, which must be the head before.
	Number
	// RowHeard: a replica acknowledges the row of changes that it has heard, and not only its number.
	RowHeard
	// Settled: the caller of the switch gets the answer only once no transaction of a replica that was given
	// up can be committed.
	Settled

	// The mechanisms below, and RowHeard, are those of [Changes].

	// Counter: an update changes the counter of its organization, and so conflicts with another update of the
	// organization.
	Counter
	// InPlace: a replica tells its watchers its own change where it comes in its stream, and not at the commit.
	InPlace
	// OwnRow: the caller of the switch waits for the time of its own change.
	OwnRow
	// Mark: a caller that finds the agent switched off already writes a mark, and waits for its time.
	Mark
	// Told: a replica acknowledges the time up to which its watchers were told, and not what it has received.
	Told
	// Resume: a stream that broke is opened again at the time up to which the watchers were told.
	Resume
	// Everything: if the store has no changes of that time any more, the watchers are told that everything may
	// have changed.
	Everything
	// ByKey: the signed changes are trimmed by their keys, and not all up to the last one of them.
	ByKey
	// OwnBeat: only a beat of its own that it has written since proves to a replica that it is fresh.
	OwnBeat
	// Whole: a replica acknowledges the time of a transaction once it has told all of its rows.
	Whole
)

// World is the size and the rules of a model.
type World struct {
	Replicas, Intents int
	// Switch says that the agent of all intents is switched off once.
	Switch bool
	// Unsettled says that the slot of a replica can be taken without closing its chain. The chain is closed
	// later.
	Unsettled bool
	// Restore says that the store is restored once, as it was at first. Slots keep their holders.
	Restore bool
	// Limit is the number of places in the meter. 0 means no limit. Each allow takes a place. If no
	// place is left, the decision is a deny.
	Limit int
	// Without has the mechanisms that the protocol leaves out.
	Without Mechanism
}

func (w *World) has(m Mechanism) bool { return w.Without&m == 0 }

// decision is a decision of an intent, stored or not.
type decision struct {
	id    uint16 // 0 if there is no decision
	allow bool
	// late says that the decision was made after the caller of the switch got the answer.
	late bool
	// place says that the decision has a place in the meter. If uncounted is not 0, the place was
	// given to replica uncounted-1 and is not counted yet.
	place     bool
	uncounted uint8
	// fresh says that the decision is being stored. As far as its replica knows, its intent had no decision before.
	fresh bool
}

// log has the stored data. Its slices are not changed in place.
type log struct {
	rows  []decision // by intent
	heads []uint16   // number of heads by chain
}

// phase is the progress of a replica's batch.
type phase uint8

const (
	idle  phase = iota
	ready       // decided, but not appended yet
	open        // the transaction has read and written, but is not committed
	done        // committed, but not answered; only Replay uses it
	doubt       // the answer of the commit was lost
)

// replica is one process and its transaction in the store.
type replica struct {
	up    bool
	chain int8 // chain of the slot that it thinks it holds; -1 if none
	phase phase
	batch []decision // decisions by intent
	// refused says that the callers of the batch got an error. The replica then appends the batch
	// again and signs nothing. So it learns whether the batch is stored.
	refused bool
	// pending says that the store has an open transaction of the replica. The transaction survives
	// a crash of the replica.
	pending bool
	// tip is the end of the chain if sure is set. gone says that the tip was rolled back.
	tip        uint16
	sure, gone bool
	// places is the number of places in the meter that the replica may use.
	places uint8
	// heard says that the replica knows of the switch. fresh says that it trusts its cached
	// documents.
	heard, fresh bool
	// named says that the row of the replica's chain names it.
	named bool
	// passed says that the caller of the switch got the answer, although the replica had not heard
	// of the switch.
	passed bool
	// before says that the slot of the replica was restored, with an earlier beat than the last one. ahead
	// says that the replica has heard of a change that a restore has taken back. Changes after the restore
	// have the same numbers.
	before, ahead bool
}

// state is a state of the model.
type state struct {
	// applied is the data of the primary. durable is the data that a majority has. If the primary
	// is lost, durable remains.
	applied, durable log
	acked            []uint16 // decisions by intent; not changed in place
	// holders has the replicas that hold the slots, by chain. It is -1 for a free slot, and -2-p for a slot
	// that was taken from p and is not settled.
	holders []int8
	// counted is the number of places that are used for good. given has, for each replica, the
	// number of places that it has or has used since it got its slot.
	counted  int
	given    []int
	flipped  bool // the agent was switched off
	answered bool // the caller of the switch got the answer
	old      bool // the bound of freshness has passed since the answer
	restored bool // the store was restored
	replicas []replica
}

// start returns the state in which all replicas are down.
func (w *World) start() *state {
	s := &state{
		acked: make([]uint16, w.Intents), holders: slices.Repeat([]int8{-1}, w.Replicas),
		given: make([]int, w.Replicas), replicas: make([]replica, w.Replicas),
	}
	s.applied = log{make([]decision, w.Intents), make([]uint16, w.Replicas)}
	s.durable = s.applied
	for p := range s.replicas {
		s.replicas[p] = replica{chain: -1, batch: make([]decision, w.Intents)}
	}
	return s
}

// clone returns a copy of s whose replicas, holders and places can be changed.
func (s *state) clone() *state {
	t := *s
	t.holders, t.given, t.replicas = slices.Clone(s.holders), slices.Clone(s.given), slices.Clone(s.replicas)
	return &t
}

// holds reports whether replica p still holds the slot that it believes it holds.
func (s *state) holds(p int) bool {
	c := s.replicas[p].chain
	return c >= 0 && int(s.holders[c]) == p
}

// taken returns how many places of the meter are used or given.
func (s *state) taken() int {
	n := s.counted
	for _, g := range s.given {
		n += g
	}
	return n
}
