package protocol

import "slices"

// step is a transition of the model of a [World].
type step = stepTo[state]

// stepTo is a transition from a state to the state then.
type stepTo[S any] struct {
	who   int // the replica that makes the step; -1 if none
	does  string
	fault bool // the step is a fault
	then  *S
	// broken is the invariant that the step breaks, if any.
	broken string
}

// Names of steps that [Replay] uses.
const (
	begins    = "begins a transaction"
	noAnswer  = "gets no answer"
	again     = "appends the same batch again"
	refuses   = "refuses, and appends the same batch again with nothing signed"
	meets     = "meets another's row, and is to begin again"
	conflicts = "conflicts with a head of its chain"
	answers   = "commits, and answers"
	late      = "has its transaction committed, and is not told"
	crashes   = "crashes"
	givenUp   = "is given up"
	unsettled = "is given up, and its chain is not closed"
	settles   = "has its chain closed"
	spreads   = "a majority has what the primary has"
	lost      = "the primary is lost, with what a majority does not have"
	flips     = "switches the agent off"
	hears     = "hears of the switch"
	told      = "the switch is answered"
	notices   = "notices that the store was restored, and ends"
)

// stepper collects the steps of a state.
type stepper struct {
	w     *World
	s     *state
	steps []step
}

// add adds a step of p. change makes the step on a copy of the state. It returns the invariant that
// the step breaks, if any.
func (m *stepper) add(p int, does string, fault bool, change func(t *state, r *replica) string) {
	t := m.s.clone()
	broken := change(t, &t.replicas[max(p, 0)])
	if broken == "" {
		broken = m.w.check(t)
	}
	m.steps = append(m.steps, step{p, does, fault, t, broken})
}

// check returns the invariant of stored data that s breaks, if any.
func (w *World) check(s *state) string {
	allows := 0
	for i, d := range s.durable.rows {
		if s.acked[i] != 0 && s.acked[i] != d.id {
			return "kept"
		}
	}
	for _, d := range s.applied.rows {
		if d.place {
			allows++
		}
	}
	if w.Limit > 0 && allows > w.Limit {
		return "limit"
	}
	return ""
}

// next appends all steps from s except decisions.
func (w *World) next(steps []step, s *state) []step {
	m := stepper{w, s, steps}
	for p := range s.replicas {
		m.life(p)
		m.appending(p)
		m.committing(p)
		if w.Switch {
			m.switching(p)
		}
		if w.Limit > 0 {
			m.granting(p)
		}
		if r := &s.replicas[p]; r.up && (r.before || r.ahead) {
			m.add(p, notices, false, func(t *state, r *replica) string {
				r.up = false
				t.forget(p)
				return ""
			})
		}
	}
	m.store()
	if w.Restore && !s.restored {
		m.restoring()
	}
	return m.steps
}

// life adds the steps in which p starts, crashes, or is given up.
func (m *stepper) life(p int) {
	r := &m.s.replicas[p]
	if !r.up && !r.pending && r.chain < 0 {
		for c, holder := range m.s.holders {
			if holder != free || slices.Contains(m.s.holders, taken(p)) {
				continue
			}
			name := string(rune('1' + c))
			m.add(p, "starts, and takes the slot of chain "+name, true, func(t *state, _ *replica) string {
				m.w.begin(t, p, c)
				return ""
			})
		}
	}
	if r.up {
		m.add(p, crashes, true, func(t *state, r *replica) string {
			r.up = false
			t.forget(p)
			return ""
		})
	}
	if !slices.ContainsFunc(m.s.replicas, func(r replica) bool { return r.up }) {
		return
	}
	if m.s.holds(p) {
		m.add(p, givenUp, true, func(t *state, r *replica) string {
			m.w.giveUp(t, p, r.chain)
			return ""
		})
		if m.w.Unsettled {
			m.add(p, unsettled, true, func(t *state, r *replica) string {
				t.holders[r.chain] = taken(p)
				if t.durable = t.applied; !r.up {
					t.forget(p)
				}
				return ""
			})
		}
	}
	if c := slices.Index(m.s.holders, taken(p)); c >= 0 {
		m.add(p, settles, false, func(t *state, _ *replica) string {
			m.w.giveUp(t, p, int8(c))
			return ""
		})
	}
}

// free is the holder of a free slot.
const free = -1

// taken is the holder of a slot that was taken from p and is not settled.
func taken(p int) int8 { return int8(-2 - p) }

// begin starts p with the slot of a chain.
func (w *World) begin(t *state, p, chain int) {
	t.counted += t.given[p] // places of a lost replica: nobody returns them
	t.given[p] = 0
	t.holders[chain] = int8(p)
	for q := range t.replicas {
		if r := &t.replicas[q]; int(r.chain) == chain {
			r.named = false
		}
	}
	t.replicas[p] = replica{
		up: true, chain: int8(chain), batch: make([]decision, w.Intents), named: true, heard: t.flipped, fresh: true,
	}
	t.durable = t.applied
}

// forget drops everything that p loses when its process ends. p is then down.
func (s *state) forget(p int) {
	r := &s.replicas[p]
	kept := replica{chain: r.chain, batch: make([]decision, len(r.batch))}
	if r.pending {
		kept = replica{
			chain: r.chain, batch: r.batch, pending: true, phase: doubt, tip: r.tip, gone: r.gone, passed: r.passed,
			before: r.before, ahead: r.ahead, named: r.named,
		}
	} else if !s.holds(p) {
		kept.chain = -1
	}
	*r = kept
}

// giveUp closes the chain of p and frees its slot, in any phase of p. It counts p's decisions in the meter.
func (w *World) giveUp(t *state, p int, chain int8) {
	r := &t.replicas[p]
	if w.has(Closed) {
		r.named = false
		if w.has(Named) {
			t.end(p) // it can't be committed any more
		}
	}
	t.applied.rows = slices.Clone(t.applied.rows)
	for i := range t.applied.rows {
		if d := &t.applied.rows[i]; int(d.uncounted) == p+1 {
			d.uncounted = 0
			t.counted++
		}
	}
	t.given[p] = 0
	t.holders[chain] = free
	if t.durable = t.applied; !r.up {
		t.forget(p)
	}
}

// end ends the open transaction of p, so that it can no longer be committed.
func (s *state) end(p int) {
	r := &s.replicas[p]
	if r.pending = false; r.phase == open {
		r.phase = ready
	}
	if !r.up {
		s.forget(p)
	}
}

// appending adds the steps in which p appends its batch. p repeats the Append until it knows
// whether the batch is stored.
func (m *stepper) appending(p int) {
	r := &m.s.replicas[p]
	if !r.up {
		return
	}
	switch r.phase {
	case ready:
		m.add(p, begins, false, func(t *state, _ *replica) string { return m.w.read(t, p) })
	case open:
		m.add(p, noAnswer, true, func(_ *state, r *replica) string {
			r.doubts(m.w)
			return ""
		})
	case doubt:
		if !m.w.has(SameBatch) {
			m.add(p, "takes the batch for lost", false, func(_ *state, r *replica) string {
				r.drop(m.w)
				return ""
			})
			return
		}
		m.add(p, again, false, func(_ *state, r *replica) string {
			r.phase = ready
			return ""
		})
		if !r.refused {
			m.add(p, refuses, true, func(_ *state, r *replica) string {
				r.phase, r.refused = ready, true
				return ""
			})
		}
	}
}

// decide makes decisions of replica p and puts them into its batch. A decision is an allow unless p
// knows a reason for a deny.
func (w *World) decide(t *state, p int, ids map[int]uint16) string {
	r := &t.replicas[p]
	r.phase, r.batch = ready, slices.Clone(r.batch)
	cached := !r.heard && (r.fresh || !w.has(Bound))
	for i, id := range ids {
		d := decision{id: id, allow: cached || !t.flipped}
		d.late = d.allow && t.answered
		if w.Limit > 0 && d.allow {
			if d.place = w.place(t, r); d.place {
				d.uncounted = uint8(p + 1)
			} else {
				d.allow = false
			}
		}
		r.batch[i] = d
		if d.allow && cached && t.old {
			return "bound"
		}
	}
	return ""
}

// place takes a place for a decision of r.
func (w *World) place(t *state, r *replica) bool {
	if w.has(Grant) {
		if r.places == 0 {
			return false
		}
		r.places--
		return true
	}
	n := 0
	for i := range r.batch {
		if r.batch[i].place || t.durable.rows[i].place {
			n++
		}
	}
	return n < w.Limit
}

// drop ends the batch of r without storing anything.
func (r *replica) drop(w *World) {
	for _, d := range r.batch {
		if d.place && w.has(Grant) {
			r.places++
		}
	}
	r.phase, r.refused, r.batch = idle, false, make([]decision, w.Intents)
}

// read begins a transaction for p's batch, which ends the previous transaction. If p does not know the end
// of the chain, it reads that. If the batch has a row that exists, the transaction ends at once, and nobody else
// sees it. The next one is part of the same step: it reads which intents are already decided.
func (w *World) read(t *state, p int) string {
	r := &t.replicas[p]
	r.pending = false
	exists := func(i int) bool { return r.batch[i].id != 0 && t.applied.rows[i].id != 0 }
	look := r.refused
	for i := range r.batch {
		look = look || exists(i) && w.has(Unique)
	}
	switch {
	case r.refused && !w.has(LookUnsigned): // it takes the batch for lost
		r.drop(w)
		return ""
	case look && !r.refused && !w.has(LookAgain):
		return ""
	}
	if w.has(Number) && r.before && r.gone { // p remembers a head that the chain does not have
		r.drop(w)
		return ""
	}
	if !r.sure {
		r.tip, r.gone, r.sure = t.applied.heads[r.chain], false, !w.has(Sure)
	}
	r.batch = slices.Clone(r.batch)
	writes := false
	for i := range r.batch {
		d := &r.batch[i]
		d.fresh = d.id != 0 && !r.refused && (!look || !exists(i))
		writes = writes || d.fresh
	}
	if writes && w.refused(t, r) { // it will never be committed, and nobody else sees it
		r.drop(w)
		return ""
	}
	r.phase, r.pending = open, true
	return ""
}
