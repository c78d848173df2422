package protocol

import "slices"

// numbered is an event in which intents and decisions have numbers instead of names.
type numbered struct {
	Event
	rows map[int]uint16 // decisions by intent
	// last has the intents that no later event mentions. Their numbers are used again for other
	// intents. Therefore a state has only the intents that are under way.
	last []int
}

// number gives numbers to the intents and decisions of a trace. It also returns the largest number
// of intents at the same time.
func number(events []Event) ([]numbered, int) {
	n := &numbering{
		mentioned: make(map[string]int), numbers: make(map[string]int),
		batches: make(map[string]*batch), decisions: make(map[string]uint16),
	}
	for i, e := range events {
		for intent := range e.Rows {
			n.mentioned[intent] = i
		}
	}
	all := make([]numbered, len(events))
	for i, e := range events {
		all[i] = numbered{Event: e, rows: n.rows(&e)}
		for _, intent := range n.ended(&e) {
			if n.mentioned[intent] <= i && !n.underWay(intent) {
				all[i].last = append(all[i].last, n.numbers[intent])
				n.free = append(n.free, n.numbers[intent])
				delete(n.numbers, intent)
			}
		}
	}
	return all, n.intents
}

// numbering is the state of number.
type numbering struct {
	mentioned map[string]int    // index of the last event that mentions an intent
	numbers   map[string]int    // numbers of intents
	batches   map[string]*batch // batches under way, by replica
	decisions map[string]uint16
	free      []int // numbers that can be used again
	intents   int   // how many numbers are in use or free
}

// batch is a batch that a replica appends. doubt says that a replica has lost an answer for it.
type batch struct {
	rows  map[string]string
	doubt bool
}

// rows returns the decisions of an event by intent, both as numbers.
func (n *numbering) rows(e *Event) map[int]uint16 {
	rows := make(map[int]uint16, len(e.Rows))
	for intent, decision := range e.Rows {
		number, ok := n.numbers[intent]
		if !ok {
			if number = n.intents; len(n.free) > 0 {
				number, n.free = n.free[len(n.free)-1], n.free[:len(n.free)-1]
			} else {
				n.intents++
			}
			n.numbers[intent] = number
		}
		if n.decisions[decision] == 0 {
			n.decisions[decision] = uint16(len(n.decisions) + 1)
		}
		rows[number] = n.decisions[decision]
	}
	return rows
}

// ended returns the intents of the batch that ends with an event. The batch of a killed replica
// never ends, because its transaction may still be committed.
func (n *numbering) ended(e *Event) (intents []string) {
	b := n.batches[e.Replica]
	switch e.Did {
	case Append:
		if b == nil {
			b = &batch{rows: e.Rows}
			n.batches[e.Replica] = b
		}
		return nil
	case Doubt:
		if b != nil {
			b.doubt = true
		}
		return nil
	case Answer:
	case Refuse:
		if b == nil || b.doubt {
			return nil
		}
	default:
		return nil
	}
	if delete(n.batches, e.Replica); b != nil {
		for intent := range b.rows {
			intents = append(intents, intent)
		}
	}
	return intents
}

func (n *numbering) underWay(intent string) bool {
	for _, b := range n.batches {
		if _, ok := b.rows[intent]; ok {
			return true
		}
	}
	return false
}

// retire forgets intents that are in no batch under way.
func (s *state) retire(intents []int) {
	if len(intents) == 0 {
		return
	}
	s.applied.rows, s.durable.rows = slices.Clone(s.applied.rows), slices.Clone(s.durable.rows)
	s.acked = slices.Clone(s.acked)
	for _, i := range intents {
		s.applied.rows[i], s.durable.rows[i], s.acked[i] = decision{}, decision{}, 0
	}
}
