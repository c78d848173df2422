package protocol

import "slices"

// obstacle is a reason why the store cannot commit a transaction.
type obstacle int

const (
	none obstacle = iota
	racer
	rival
)

// obstacle returns the reason why the transaction of p cannot be committed. Either an intent has
// got a row since the transaction began, or the row of the chain does not name p and the head before, or
// another head has the sequence of the transaction's head.
func (w *World) obstacle(s *state, p int) obstacle {
	r := &s.replicas[p]
	writes := false
	for i, d := range r.batch {
		if d.fresh && s.applied.rows[i].id != 0 && w.has(Unique) {
			return racer
		}
		writes = writes || d.fresh
	}
	switch last := s.applied.heads[max(r.chain, 0)]; {
	case !writes:
	case w.refused(s, r), w.has(Fence) && r.tip < last:
		return rival
	}
	return none
}

// refused reports whether the row of a chain does not let a replica add the head that follows its tip.
func (w *World) refused(s *state, r *replica) bool {
	return w.has(Named) && !r.named || w.has(Number) && r.tip != s.applied.heads[r.chain]
}

// committing adds the steps in which the store commits or refuses the open transaction of p, with
// and without an answer to p.
func (m *stepper) committing(p int) {
	r := &m.s.replicas[p]
	if !r.pending {
		return
	}
	waits := r.up && r.phase == open
	switch m.w.obstacle(m.s, p) {
	case racer:
		m.add(p, meets, false, func(t *state, _ *replica) string {
			t.end(p)
			return ""
		})
		return
	case rival:
		m.add(p, conflicts, false, func(t *state, r *replica) string {
			if t.end(p); waits {
				r.drop(m.w)
			}
			return ""
		})
		return
	}
	if waits {
		m.add(p, answers, false, func(t *state, r *replica) string {
			broken := m.w.commit(t, p)
			t.durable = t.applied
			if broken == "" {
				broken = t.answer(r)
			}
			return broken
		})
	}
	if waits {
		return // it can commit late only after the step noAnswer
	}
	m.add(p, late, true, func(t *state, r *replica) string {
		broken := m.w.commit(t, p)
		if !r.up {
			t.forget(p)
		}
		return broken
	})
}

// doubts records that r does not know whether its batch is stored.
func (r *replica) doubts(w *World) {
	r.phase = doubt
	if w.has(SameBatch) {
		r.sure = false
	}
}

// commit stores the writes of p's transaction. It returns the invariant that the commit breaks.
func (w *World) commit(t *state, p int) (broken string) {
	r := &t.replicas[p]
	r.pending = false
	signed, stored := uint8(0), uint8(0)
	rows := slices.Clone(t.applied.rows)
	for i, d := range r.batch {
		if !d.fresh {
			continue
		}
		if signed++; rows[i].id != 0 {
			continue
		}
		switch {
		case d.allow && d.late:
			broken = "switch"
		case d.allow && t.answered && r.passed:
			broken = "passed"
		}
		rows[i] = decision{id: d.id, place: d.place, uncounted: d.uncounted}
		stored++
	}
	if signed == 0 {
		return broken
	}
	if signed != stored || r.gone || r.tip != t.applied.heads[r.chain] {
		broken = "chain"
	}
	t.applied = log{rows, slices.Clone(t.applied.heads)}
	t.applied.heads[r.chain]++
	r.tip++
	return broken
}

// answer ends the batch of r. The callers of r get the stored decisions, unless they got an error
// before. It returns the invariant that the answer breaks.
func (t *state) answer(r *replica) (broken string) {
	acked := slices.Clone(t.acked)
	for i, d := range r.batch {
		stands := t.applied.rows[i].id
		if d.place && stands != d.id {
			r.places++
		}
		if d.id == 0 || r.refused {
			continue
		}
		if acked[i] != 0 && acked[i] != stands {
			broken = "one"
		}
		acked[i] = stands
	}
	t.acked = acked
	r.phase, r.refused, r.sure, r.batch = idle, false, true, make([]decision, len(r.batch))
	return broken
}

// store adds the steps that the store makes without a replica.
func (m *stepper) store() {
	s := m.s
	behind := !slices.Equal(s.applied.rows, s.durable.rows) || !slices.Equal(s.applied.heads, s.durable.heads)
	if behind {
		m.add(-1, spreads, false, func(t *state, _ *replica) string {
			t.durable = t.applied
			return ""
		})
	}
	if behind || slices.ContainsFunc(s.replicas, func(r replica) bool { return r.pending }) {
		m.add(-1, lost, true, func(t *state, _ *replica) string {
			t.applied = t.durable
			for p := range t.replicas {
				r := &t.replicas[p]
				t.end(p)
				r.gone = r.gone || r.chain >= 0 && r.tip > t.durable.heads[r.chain]
			}
			return ""
		})
	}
	if s.flipped && !s.old {
		m.add(-1, "the bound of freshness passes", false, func(t *state, _ *replica) string {
			t.old = true
			for p := range t.replicas {
				t.replicas[p].fresh = t.replicas[p].heard
			}
			return ""
		})
	}
	if m.w.Switch && s.flipped && !s.answered && m.w.heard(s) {
		m.add(-1, told, false, func(t *state, _ *replica) string {
			t.answered = true
			for p := range t.replicas {
				t.replicas[p].passed = !t.replicas[p].heard
			}
			return ""
		})
	}
}

// heard reports whether the caller of the switch can get the answer. Every running replica that
// must know of the switch has then heard of it. With the mechanism Barrier, these are all fresh
// holders of slots. With Barrier and GivenUp, these are all holders.
func (w *World) heard(s *state) bool {
	for _, p := range s.holders {
		if p < free && w.has(Settled) {
			return false
		}
		if p < 0 || s.replicas[p].heard || !w.has(Barrier) || s.replicas[p].ahead && !w.has(RowHeard) {
			continue
		}
		if w.has(GivenUp) || s.replicas[p].fresh {
			return false
		}
	}
	return slices.ContainsFunc(s.replicas, func(r replica) bool { return r.up && r.heard })
}

// restoring adds the steps in which the whole store is restored, or its documents alone. Nothing of it was
// stored at first. A restore waits for open transactions.
func (m *stepper) restoring() {
	for _, whole := range []bool{true, false} {
		does := "the documents are restored"
		if whole {
			does = "the store is restored"
		}
		m.add(-1, does, true, func(t *state, _ *replica) string {
			t.restored, t.flipped, t.answered, t.old = true, false, false, false
			if whole {
				t.applied = m.w.start().applied
				t.durable, t.acked = t.applied, make([]uint16, m.w.Intents)
			}
			for p := range t.replicas {
				t.end(p)
				r := &t.replicas[p]
				r.ahead, r.heard, r.passed = r.heard, false, false
				if whole {
					r.before, r.gone = r.up, r.gone || r.tip > 0
				}
			}
			return ""
		})
	}
}

// switching adds three steps: p switches the agent off, p hears of the switch, or p loses the proof
// that it has missed no change.
func (m *stepper) switching(p int) {
	r := &m.s.replicas[p]
	if !r.up {
		return
	}
	switch {
	case r.before || r.ahead:
		// It hears no change whose number it has heard already, and an update of its own makes it end.
	case !m.s.flipped:
		m.add(p, flips, false, func(t *state, r *replica) string {
			t.flipped, r.heard, t.durable = true, true, t.applied
			return ""
		})
	case !r.heard:
		m.add(p, hears, false, func(_ *state, r *replica) string {
			r.heard, r.fresh = true, true
			return ""
		})
		if r.fresh {
			const stale = "has no proof that it is fresh, for longer than the bound"
			m.add(p, stale, true, func(_ *state, r *replica) string {
				r.fresh = false
				return ""
			})
		}
	}
}

// granting adds the steps in which p asks for a place in the meter or returns one.
func (m *stepper) granting(p int) {
	r := &m.s.replicas[p]
	if !r.up || r.phase != idle || !m.w.has(Grant) {
		return
	}
	move := func(does string, fault bool, given, places int) {
		m.add(p, does, fault, func(t *state, r *replica) string {
			t.given[p] += given
			r.places = uint8(int(r.places) + places)
			if given != 0 {
				t.durable = t.applied
			}
			return ""
		})
	}
	if m.s.taken() < m.w.Limit {
		move("is granted a place", false, 1, 1)
		move("is granted a place, and is not told", true, 1, 0)
	}
	if r.places == 0 {
		return
	}
	back := min(m.s.given[p], 1) // a replica that was given up has no places left
	move("returns a place", true, -back, -1)
	forget := 0
	if m.w.has(Forget) {
		forget = -1
	}
	move("returns a place, and is not told", true, -back, forget)
	if forget < 0 {
		move("does not reach the store to return a place", true, 0, forget)
	}
}
