package protocol

import "slices"

// Mechanism is what the protocol does to keep an invariant.
type Mechanism uint

// The mechanisms. A [World] may go without some.
const (
	// Fence: the key of a head, {chain, sequence}, is unique.
	Fence Mechanism = 1 << iota
	// Holder: a transaction sees that its replica still holds its slot.
	Holder
	// Ended: who gives a replica up ends the transactions that it has open.
	Ended
	// FindFirst: a transaction finds which intents stand before it signs a head.
	FindFirst
	// SameBatch: after an unknown outcome the same batch is committed again.
	SameBatch
	// Sure: what a transaction has read of the end of the chain is believed once that
	// transaction is committed, not before.
	Sure
	// Barrier: the switch is answered once every replica that holds a slot has heard.
	Barrier
	// GivenUp: who has not heard is waited for until it is given up, not only until its
	// lease has run out.
	GivenUp
	// Bound: what is known is believed for so long without proof that nothing was missed.
	Bound
	// Grant: places in the meter are granted by the store.
	Grant
	// Forget: who returns a place has it no more, even if the answer is an error.
	Forget
)

// World is what there is.
type World struct {
	Replicas, Intents int
	// Switch says that an agent, of which all intents are, is switched off once.
	Switch bool
	// Limit is how many allows the meter has, without limit where it is 0. Where it has
	// none left a decision is a deny, which takes no place.
	Limit int
	// Without are the mechanisms that the protocol goes without.
	Without Mechanism
}

func (w *World) has(m Mechanism) bool { return w.Without&m == 0 }

// decision is a decision of an intent, stored or not.
type decision struct {
	id    uint16 // 0: there is none
	allow bool
	// late: it was made after the switch was answered.
	late bool
	// place: it has a place in the meter. If uncounted is not 0, the place was given to
	// replica uncounted-1 and is not counted yet.
	place     bool
	uncounted uint8
	// fresh: it is being stored, and its intent had no decision before.
	fresh bool
}

// log is what is stored. Its slices are not changed in place.
type log struct {
	rows  []decision // by intent
	heads []uint16   // how many a chain has
}

// phase is how far the batch of a replica is.
type phase uint8

const (
	idle  phase = iota
	ready       // it is decided, and to be appended
	open        // its transaction has read and written, and is to be committed
	done        // that is committed, and the answer on its way: only Replay parts these
	doubt       // the answer of the commit was lost
)

// replica is one process and its transaction in the store.
type replica struct {
	up    bool
	chain int8 // of the slot that it believes to hold, -1 if none
	phase phase
	batch []decision // by intent
	// refused says that the callers of the batch were refused. It is then appended
	// again with nothing signed, to find out what became of it.
	refused bool
	// pending is its transaction that the store has, committed or not. It outlives a
	// crash.
	pending bool
	// tip is the end of the chain, if sure. gone says that it was rolled back.
	tip        uint16
	sure, gone bool
	// places are those in the meter that it may use.
	places uint8
	// heard says that it knows of the switch, fresh that it believes what it knows.
	heard, fresh bool
	// passed says that the switch was answered though it had not heard.
	passed bool
}

// state is one of the model.
type state struct {
	// applied is what the primary has, durable what a majority has: what is left of it
	// when the primary is lost.
	applied, durable log
	acked            []uint16 // decisions by intent; not changed in place
	holders          []int8   // of the slots, by chain, -1 where nobody is
	// counted are the places that are used for good, given those that each replica has
	// or has used since it has its slot.
	counted  int
	given    []int
	flipped  bool // the switch is off
	answered bool // and whoever did that was told so
	old      bool // and that is longer ago than the bound
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

// holds reports whether replica p holds the slot that it believes to hold.
func (s *state) holds(p int) bool {
	c := s.replicas[p].chain
	return c >= 0 && int(s.holders[c]) == p
}

// taken is how many places of the meter are decided or given.
func (s *state) taken() int {
	n := s.counted
	for _, g := range s.given {
		n += g
	}
	return n
}
