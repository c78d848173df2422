package protocol

import (
	"fmt"
	"math/bits"
	"slices"
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

// model is what an exploration visits.
type model[S any] struct {
	start *S
	// key returns the key of a state. It is valid until the next call.
	key func(*S) []byte
	// next appends the steps from a state.
	next func([]stepTo[S], *S) []stepTo[S]
	// able reports whether a replica is live, and ended whether everything was done.
	able, ended func(*S) bool
}

// Explore visits every state of w, breadth first, until an invariant breaks.
func Explore(w World) Result {
	return explore(model[state]{
		start: w.start(), key: newKeys(&w).of, able: (*state).able, ended: (*state).ended,
		next: func(steps []step, s *state) []step { return w.decisions(w.next(steps, s), s) },
	})
}

// able reports whether a replica can decide.
func (s *state) able() bool {
	for p := range s.replicas {
		if r := &s.replicas[p]; r.up && s.holds(p) && !r.before && !r.ahead {
			return true
		}
	}
	return false
}

// ended reports whether all intents are decided.
func (s *state) ended() bool { return !slices.Contains(s.acked, 0) }

// node is a state that was reached.
type node[S any] struct {
	state *S // nil once the steps from it are known
	from  int32
	who   int8
	does  string
}

func explore[S any](m model[S]) Result {
	x := explorer[S]{model: m, known: make(map[string]int32)}
	x.visit(-1, stepTo[S]{then: m.start})
	var steps []stepTo[S]
	for at := 0; at < len(x.nodes); at++ {
		s := x.nodes[at].state
		x.nodes[at].state = nil
		if m.able(s) {
			x.able = append(x.able, int32(at))
		}
		if m.ended(s) {
			x.ends = append(x.ends, int32(at))
		}
		steps = m.next(steps[:0], s)
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

type explorer[S any] struct {
	model[S]
	nodes  []node[S]
	known  map[string]int32
	result Result
	// able and ends have the states of which the model says so. back has the steps without a fault,
	// backwards: each has the state after the step and the state before it.
	able, ends []int32
	back       [][2]int32
}

// visit returns the number of the state to which a step leads.
func (x *explorer[S]) visit(from int32, by stepTo[S]) int32 {
	key := x.key(by.then)
	if at, ok := x.known[string(key)]; ok {
		return at
	}
	at := int32(len(x.nodes))
	x.known[string(key)] = at
	x.nodes = append(x.nodes, node[S]{by.then, from, int8(by.who), by.does})
	x.result.States++
	return at
}

// trace returns the steps to a state.
func (x *explorer[S]) trace(at int) (steps []string) {
	for ; x.nodes[at].from >= 0; at = int(x.nodes[at].from) {
		steps = append(steps, tell(int(x.nodes[at].who), x.nodes[at].does))
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return steps
}

// live finds the first state from which not everything can be done. The state has a live
// replica, but no steps without a fault lead to a state in ends.
func (x *explorer[S]) live() {
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
