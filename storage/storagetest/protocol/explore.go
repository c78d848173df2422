package protocol

import (
	"fmt"
	"math/bits"
	"strings"
)

// Result is the result of an exploration.
type Result struct {
	States, Steps int
	// Broken is the invariant that does not hold, if any. Trace has the shortest list of steps to a
	// state that breaks it.
	Broken string
	Trace  []string
}

// node is a state that was reached.
type node struct {
	state *state // nil once the steps from it are known
	from  int32
	who   int8
	does  string
}

// Explore visits every state of w, breadth first, until an invariant breaks.
func Explore(w World) Result {
	x := explorer{w: &w, keys: newKeys(&w), known: make(map[string]int32)}
	x.visit(-1, step{then: w.start()})
	var steps []step
	for at := 0; at < len(x.nodes); at++ {
		s := x.nodes[at].state
		x.nodes[at].state = nil
		x.note(s, int32(at))
		steps = w.decisions(w.next(steps[:0], s), s)
		for _, next := range steps {
			x.result.Steps++
			to := x.visit(int32(at), next)
			if next.broken != "" {
				x.result.Broken, x.result.Trace = next.broken, append(x.trace(at), tell(next.who, next.does))
				return x.result
			}
			if !next.fault {
				x.back = append(x.back, [2]int32{to, int32(at)})
			}
		}
	}
	x.live()
	return x.result
}

func tell(who int, does string) string {
	if who < 0 {
		return does
	}
	return fmt.Sprintf("replica %d %s", who+1, does)
}

type explorer struct {
	w      *World
	nodes  []node
	known  map[string]int32
	keys   *keys
	result Result
	// able has the states with a live replica. ends has the states in which all intents are
	// decided. back has the steps without a fault, backwards: each has the state after the step and
	// the state before it.
	able, ends []int32
	back       [][2]int32
}

// visit returns the number of the state to which a step leads.
func (x *explorer) visit(from int32, by step) int32 {
	key := x.keys.of(by.then)
	if at, ok := x.known[string(key)]; ok {
		return at
	}
	at := int32(len(x.nodes))
	x.known[string(key)] = at
	x.nodes = append(x.nodes, node{by.then, from, int8(by.who), by.does})
	x.result.States++
	return at
}

// note records for live the state with number at.
func (x *explorer) note(s *state, at int32) {
	for p := range s.replicas {
		if r := &s.replicas[p]; r.up && s.holds(p) && !r.before && !r.ahead {
			x.able = append(x.able, at)
			break
		}
	}
	for _, id := range s.acked {
		if id == 0 {
			return
		}
	}
	x.ends = append(x.ends, at)
}

// trace returns the steps to a state.
func (x *explorer) trace(at int) (steps []string) {
	for ; x.nodes[at].from >= 0; at = int(x.nodes[at].from) {
		steps = append(steps, tell(int(x.nodes[at].who), x.nodes[at].does))
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return steps
}

// live finds the first state from which the intents can't all be decided. The state has a live
// replica, but no steps without a fault lead to a state in ends.
func (x *explorer) live() {
	first := make([]int32, len(x.nodes)+1) // first is an index into from, by state
	for _, b := range x.back {
		first[b[0]+1]++
	}
	for i := range len(x.nodes) {
		first[i+1] += first[i]
	}
	from, fill := make([]int32, len(x.back)), append([]int32(nil), first...)
	for _, b := range x.back {
		from[fill[b[0]]] = b[1]
		fill[b[0]]++
	}
	reaches := make([]bool, len(x.nodes))
	todo := append([]int32(nil), x.ends...)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if reaches[at] {
			continue
		}
		reaches[at] = true
		todo = append(todo, from[first[at]:first[at+1]]...)
	}
	for _, at := range x.able {
		if !reaches[at] {
			x.result.Broken, x.result.Trace = "live", x.trace(int(at))
			return
		}
	}
}

// decisions appends the steps in which a replica decides intents. A batch may have any of the
// intents.
func (w *World) decisions(steps []step, s *state) []step {
	m := stepper{w, s, steps}
	for p := range s.replicas {
		r := &s.replicas[p]
		if !r.up || r.phase != idle {
			continue
		}
		for batch := uint(1); batch < 1<<w.Intents; batch++ {
			ids := make(map[int]uint16, bits.OnesCount(batch))
			var names []string
			for i := range w.Intents {
				if batch>>i&1 != 0 {
					ids[i] = s.unused(i)
					names = append(names, string(rune('a'+i)))
				}
			}
			m.add(p, "", false, func(t *state, _ *replica) string { return w.decide(t, p, ids) })
			last := &m.steps[len(m.steps)-1]
			last.does = "decides " + strings.Join(names, " and ")
			if w.Switch || w.Limit > 0 {
				last.does += ": " + last.then.outcomes(p)
			}
		}
	}
	return m.steps
}

// unused returns a number that no decision of the intent has.
func (s *state) unused(intent int) uint16 {
	used := []uint16{s.acked[intent], s.applied.rows[intent].id, s.durable.rows[intent].id}
	for p := range s.replicas {
		used = append(used, s.replicas[p].batch[intent].id)
	}
	id := uint16(1)
	for i := 0; i < len(used); i++ {
		if used[i] == id {
			id, i = id+1, -1
		}
	}
	return id
}

// outcomes returns the decisions of p's batch as text.
func (s *state) outcomes(p int) string {
	var all []string
	for _, d := range s.replicas[p].batch {
		switch {
		case d.id == 0:
		case d.allow:
			all = append(all, "allow")
		default:
			all = append(all, "deny")
		}
	}
	return strings.Join(all, ", ")
}
