package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxReplayed is the largest number of replicas in a trace. The keys of states have no room for
// more.
const maxReplayed = 12

// maxVisited is the largest number of states that Replay looks at, which takes about 15 s. After
// outages there may be thousands of states before each event.
const maxVisited = 200_000

// Replay reads a trace and returns how many of its events it has replayed. It stops early if too
// many states are possible. Its error names the first event that the model can't do.
func Replay(trace io.Reader) (replayed int, err error) {
	var events []Event
	for in := json.NewDecoder(trace); ; {
		var e Event
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, fmt.Errorf("reading event %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	r := newReplayer(events)
	if r.w.Replicas > maxReplayed {
		return 0, fmt.Errorf("the trace has %d replicas: at most %d can be replayed", r.w.Replicas, maxReplayed)
	}
	can := []*state{r.w.start()}
	for n := range r.events {
		if r.visited > maxVisited {
			return n, nil
		}
		e := &r.events[n]
		if can = r.after(r.hidden(can, e), e); len(can) == 0 {
			line, err := json.Marshal(e.Event)
			return n, errors.Join(fmt.Errorf("event %d is none that the protocol has: %s", n+1, line), err)
		}
		for _, s := range can {
			s.retire(e.last)
		}
	}
	return len(r.events), nil
}

// replayer maps the names of a trace to the model.
type replayer struct {
	w                World
	keys             *keys
	events           []numbered
	replicas, chains map[string]int
	doubts           map[int]bool // replicas that have lost the answer for their batch
	visited          int          // number of visited states
}

func newReplayer(events []Event) *replayer {
	r := &replayer{replicas: make(map[string]int), chains: make(map[string]int), doubts: make(map[int]bool)}
	for _, e := range events {
		add(r.replicas, e.Replica)
		if e.Did == Start {
			add(r.chains, e.Chain)
		}
	}
	var intents int
	r.events, intents = number(events)
	r.w = World{Replicas: len(r.replicas), Intents: intents}
	r.keys = &keys{replicas: [][]int{upTo(r.w.Replicas)}, intents: [][]int{upTo(intents)}}
	return r
}

func add(names map[string]int, name string) {
	if _, ok := names[name]; !ok {
		names[name] = len(names)
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// hidden returns the states that can be reached before an event without any recorded event.
func (r *replayer) hidden(from []*state, e *numbered) []*state {
	known := make(map[string]bool)
	var all []*state
	visit := func(s *state) {
		if key := r.keys.of(s); !known[string(key)] {
			known[string(key)] = true
			all = append(all, s)
			r.visited++
		}
	}
	for _, s := range from {
		visit(s)
	}
	for n := 0; n < len(all); n++ {
		for _, step := range r.w.next(nil, all[n]) {
			if step.broken == "" && r.hides(all[n], &step, e) {
				visit(step.then)
			}
		}
		for p := range all[n].replicas {
			if t := r.commits(all[n], p); t != nil {
				visit(t)
			}
		}
	}
	return all
}

// commits returns the state in which p's transaction is committed but p has no answer yet. It
// returns nil if the transaction cannot be committed.
func (r *replayer) commits(s *state, p int) *state {
	was := &s.replicas[p]
	if !was.up || was.phase != open || !was.pending || r.w.obstacle(s, p) != none {
		return nil
	}
	t := s.clone()
	if r.w.commit(t, p) != "" {
		return nil
	}
	t.durable, t.replicas[p].phase = t.applied, done
	return t
}

func (r *replayer) hides(s *state, step *step, e *numbered) bool {
	switch step.does {
	case begins, meets, late, spreads, lost:
		return true
	case givenUp: // matters only to p and the next holder of its slot
		chain, takes := r.chains[e.Chain]
		return step.who == r.replicas[e.Replica] || takes && e.Did == Start && int(s.replicas[step.who].chain) == chain
	}
	return false
}

// after returns the states that an event can reach from any of the given states.
func (r *replayer) after(from []*state, e *numbered) (then []*state) {
	p := r.replicas[e.Replica]
	for _, s := range from {
		switch e.Did {
		case Start:
			if c := r.chains[e.Chain]; !s.replicas[p].up && s.holders[c] < 0 {
				t := s.clone()
				r.w.begin(t, p, c)
				then = append(then, t)
			}
		case Append:
			then = append(then, r.appends(s, p, e.rows)...)
		case Answer:
			if t := r.answers(s, p, e.rows, e.Head); t != nil {
				then = append(then, t)
			}
		case Doubt:
			if phase := s.replicas[p].phase; phase == ready || phase == open || phase == done {
				t := s.clone()
				t.replicas[p].doubts(&r.w)
				then = append(then, t)
			}
		case Refuse:
			then = append(then, r.refuses(s, p)...)
		case Crash:
			then = append(then, r.steps(s, p, crashes)...)
		case SlotLost:
			if s.holds(p) {
				then = append(then, r.steps(s, p, givenUp)...)
			} else {
				then = append(then, s)
			}
		}
	}
	switch e.Did {
	case Doubt:
		r.doubts[p] = true
	case Answer, Crash:
		delete(r.doubts, p)
	}
	return then
}

// steps returns the states that p can reach with the named step.
func (r *replayer) steps(s *state, p int, does string) (then []*state) {
	for _, step := range r.w.next(nil, s) {
		if step.who == p && step.does == does && step.broken == "" {
			then = append(then, step.then)
		}
	}
	return then
}

// appends returns the states after p calls Append. The batch is new, or its outcome is unknown and
// p repeats it.
func (r *replayer) appends(s *state, p int, rows map[int]uint16) []*state {
	switch s.replicas[p].phase {
	case idle:
		t := s.clone()
		r.w.decide(t, p, rows)
		return []*state{t}
	case doubt:
		for i, d := range s.replicas[p].batch {
			if d.id != rows[i] {
				return nil
			}
		}
		return append(r.steps(s, p, again), r.steps(s, p, refuses)...)
	}
	return nil
}

// answers returns the state after p has got the stored decisions, and the signed head if there is
// one. It returns nil if p can't get this answer.
func (r *replayer) answers(s *state, p int, rows map[int]uint16, head uint64) *state {
	was := &s.replicas[p]
	signed := slices.ContainsFunc(was.batch, func(d decision) bool { return d.fresh })
	if was.phase != done || signed != (head > 0) || signed && uint64(was.tip) != head {
		return nil
	}
	for i, d := range was.batch {
		if d.id != 0 && s.applied.rows[i].id != rows[i] {
			return nil
		}
	}
	t := s.clone()
	if t.answer(&t.replicas[p]) != "" {
		return nil
	}
	return t
}

// refuses returns the states after p has learned that nothing was stored. Either p was given up,
// its chain has another head, or the store has returned an error. An unknown outcome stays unknown.
func (r *replayer) refuses(s *state, p int) (then []*state) {
	was := &s.replicas[p]
	if was.phase == idle && !s.holds(p) {
		return []*state{s}
	}
	then = r.steps(s, p, conflicts)
	if was.phase != ready && was.phase != open {
		return then
	}
	t := s.clone()
	if r.doubts[p] {
		t.replicas[p].phase = doubt
	} else {
		t.end(p)
		t.replicas[p].drop(&r.w)
	}
	return append(then, t)
}
