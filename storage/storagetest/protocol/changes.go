package protocol

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Changes is the size and the rules of the second model: how replicas hear of changes. Updates commit rows
// of changes. The position of a row in the store's stream is its time. The rows of one transaction have the time of
// the last of them. Each replica reads the stream, and is
// late at will. The agent of an organization is switched off, and another update belongs to this organization.
// All replicas hold slots. The fields from Breaks on add steps, each its own.
type Changes struct {
	Replicas int
	// Breaks says that one stream breaks once. The store may then have no changes of that time any more.
	Breaks bool
	// Signs says that changes are signed and trimmed, and nothing else. There is then an update of another
	// organization, too.
	Signs bool
	// Restore says that the store is restored once, to any earlier time. The times after it come again.
	Restore bool
	// Late says that each replica writes a beat, and that the bound of freshness passes once. There is then no
	// update beside the switch.
	Late bool
	// Groups says that the switch can share its transaction with an update of another organization. There is then no
	// other update.
	Groups bool
	// Without has the mechanisms that the protocol leaves out.
	Without Mechanism
}

func (c *Changes) has(m Mechanism) bool { return c.Without&m == 0 }

// changeKind is a kind of rows in the stream. Switches and rules are of one organization.
type changeKind int8

const (
	anySwitch changeKind = iota
	anyRule
	anyOther // of another organization, whose keys come after those of the first
	anyMark
	anyBeat
)

// org returns the organization of a kind of changes, or -1.
func (k changeKind) org() int8 { return [...]int8{0, 0, 1, -1, -1}[k] }

var changeNames = [...]string{"the switch", "a rule", "another organization", "a mark", "a beat"}

// row is a row in the stream.
type row struct {
	kind     changeKind
	by       int8 // the replica that wrote it
	revision int8 // in its organization
	id       int8 // unique, even after a restore
	left     int8 // how many rows of its transaction follow
	signed   bool
	trimmed  bool
}

// call is the progress of a replica's call of the switch.
type call int8

const (
	uncalled call = iota
	written       // waits for its row, or its mark, in the stream
	found         // the agent was off already, and nothing was written
	timed         // waits until all have acknowledged its time
)

// belief is what a replica's cache has of the agent.
type belief int8

const (
	nothing belief = iota
	on
	off
)

// hearer is a replica.
type hearer struct {
	up, broken, fresh bool
	// forgot says that the store has no changes any more of the time at which the stream broke.
	forgot bool
	// ahead says that it has heard of a row that a restore has taken back.
	ahead bool
	// got is the position up to which it has received rows, and told the one up to which it has told its
	// watchers. toldID is the id of the last row told. acked and ackedID are the
	// time up to which it has told all, and this id, in its slot.
	got, told, acked int8
	toldID, ackedID  int8
	part             int8    // how many rows before told are of a transaction that goes on
	last             [2]int8 // the last revision told, by organization
	cached           belief
	updates          changeKind // of the open transaction
	open, shared     bool       // shared says that the transaction has an update of another organization
	revision         int8       // that the open transaction writes
	call             call
	time             int8 // for which the call waits; if it is written, the id of its row
}

// stream is a state of the model.
type stream struct {
	rows     []row // not changed in place
	ids      int8  // how many rows there were
	listed   bool  // changes were signed and not trimmed yet
	answered bool
	restored bool
	broke    bool // a stream was broken; one is, once
	old      int8 // rows up to this time are older than the bound of freshness
	hearers  []hearer
}

// ExploreChanges visits every state of c, breadth first, until an invariant breaks.
func ExploreChanges(c Changes) Result {
	start := &stream{hearers: make([]hearer, c.Replicas)}
	for p := range start.hearers {
		start.hearers[p] = hearer{up: true, fresh: true}
	}
	var key, other []byte
	names := orders(c.Replicas)
	return explore(model[stream]{
		start: start,
		key: func(s *stream) []byte { // states that differ only in the names of replicas have one key
			key = key[:0]
			for _, replicas := range names {
				other = s.encode(other[:0], replicas)
				if len(key) == 0 || bytes.Compare(other, key) < 0 {
					key, other = other, key
				}
			}
			return key
		},
		next: func(steps []stepTo[stream], s *stream) []stepTo[stream] {
			m := changer{c: &c, s: s, steps: steps}
			m.next()
			return m.steps
		},
		able: func(s *stream) bool {
			return slices.ContainsFunc(s.hearers, func(h hearer) bool { return h.up && !h.ahead })
		},
		ended: func(s *stream) bool {
			if c.Signs {
				return s.allTrimmed()
			}
			return s.answered
		},
	})
}

// encode appends s with its replicas in the given order.
func (s *stream) encode(b []byte, replicas []int) []byte {
	b = append(b, flags(s.listed, s.answered, s.restored, s.broke), byte(s.old), byte(len(s.rows)))
	var ids [64]byte // new numbers of ids, from one
	n := byte(0)
	name := func(id int8) byte {
		if id == 0 {
			return 0
		}
		if ids[id] == 0 {
			n++
			ids[id] = n
		}
		return ids[id]
	}
	for _, r := range s.rows {
		b = append(b, byte(r.kind), byte(slices.Index(replicas, int(r.by))), byte(r.revision), name(r.id),
			flags(r.left > 0, r.signed, r.trimmed))
	}
	for _, p := range replicas {
		h := &s.hearers[p]
		b = append(b, flags(h.up, h.broken, h.fresh, h.forgot, h.ahead, h.open, h.shared), byte(h.got), byte(h.told),
			byte(h.part), byte(h.acked), name(h.toldID), name(h.ackedID), byte(h.last[0]), byte(h.last[1]), byte(h.cached),
			byte(h.updates), byte(h.revision), byte(h.call))
		if h.call == written {
			b = append(b, name(h.time))
		} else {
			b = append(b, byte(h.time))
		}
	}
	return b
}

// allTrimmed reports whether all changes were made, signed and trimmed.
func (s *stream) allTrimmed() bool {
	return len(s.rows) == 3 && !slices.ContainsFunc(s.rows, func(r row) bool { return !r.trimmed })
}

// isOff reports whether the agent is switched off in the store.
func (s *stream) isOff() bool {
	return slices.ContainsFunc(s.rows, func(r row) bool { return r.kind == anySwitch })
}

// revision returns the last revision of an organization.
func (s *stream) revision(org int8) (last int8) {
	for _, r := range s.rows {
		if r.kind.org() == org {
			last = max(last, r.revision)
		}
	}
	return last
}

// write adds a row of p at the end of the stream, and returns its id.
func (s *stream) write(p int, kind changeKind, revision int8) int8 {
	s.ids++
	s.rows = append(slices.Clone(s.rows), row{kind: kind, by: int8(p), revision: revision, id: s.ids})
	return s.ids
}

// toldAll returns the time up to which a replica has told its watchers everything.
func (h *hearer) toldAll() int8 { return h.told - h.part }

// changer collects the steps of a state.
type changer struct {
	c     *Changes
	s     *stream
	steps []stepTo[stream]
}

// add adds a step of p, as stepper.add does.
func (m *changer) add(p int, does string, fault bool, change func(t *stream, h *hearer) string) {
	t := *m.s
	t.hearers = slices.Clone(m.s.hearers)
	broken := change(&t, &t.hearers[max(p, 0)])
	if broken == "" {
		broken = t.check()
	}
	m.steps = append(m.steps, stepTo[stream]{p, does, fault, &t, broken})
}

// only makes a step that breaks nothing by itself.
func only(f func(t *stream, h *hearer)) func(*stream, *hearer) string {
	return func(t *stream, h *hearer) string {
		f(t, h)
		return ""
	}
}

// check returns the invariant that the caches of the replicas break, if any.
func (s *stream) check() string {
	for i := range s.hearers {
		h := &s.hearers[i]
		if !h.up || !h.fresh || h.cached != on {
			continue
		}
		if s.answered {
			return "switch"
		}
		for at, r := range s.rows {
			if r.kind == anySwitch && at < int(s.old) {
				return "bound"
			}
		}
	}
	return ""
}

// next adds all steps.
func (m *changer) next() {
	for p := range m.s.hearers {
		switch h := &m.s.hearers[p]; {
		case !h.up:
			m.add(p, "starts", true, only(func(t *stream, h *hearer) {
				*h = hearer{up: true, fresh: true}
				t.skip(h)
			}))
		case h.ahead:
			m.acknowledging(p)
			m.add(p, notices, false, only(func(_ *stream, h *hearer) { h.up = false }))
		case m.c.Signs:
			m.updating(p)
		default:
			m.updating(p)
			m.hearing(p)
			m.acknowledging(p)
			m.calling(p)
			m.beating(p)
			if h.cached == nothing {
				m.add(p, "reads the agent", false, only(func(t *stream, h *hearer) {
					if h.cached = on; t.isOff() {
						h.cached = off
					}
				}))
			}
		}
	}
	if m.c.Signs {
		m.signing()
	}
	if m.c.Restore && !m.s.restored {
		m.restoring()
	}
}

// updating adds the steps in which p begins and commits a transaction. Each change is made once. A call of the
// switch that finds it made writes nothing.
func (m *changer) updating(p int) {
	h := &m.s.hearers[p]
	if h.open {
		org := h.updates.org()
		if m.c.has(Counter) && m.s.revision(org) != h.revision-1 {
			m.add(p, "conflicts with an update of its organization", false, only(func(_ *stream, h *hearer) { h.end() }))
			return
		}
		if h.shared {
			m.committing(p, "commits another organization and "+changeNames[h.updates], anyOther, h.updates)
			m.committing(p, "commits "+changeNames[h.updates]+" and another organization", h.updates, anyOther)
		} else {
			m.committing(p, "commits "+changeNames[h.updates], h.updates)
		}
		return
	}
	for _, kind := range []changeKind{anySwitch, anyRule, anyOther} {
		is := func(r row) bool { return r.kind == kind }
		begun := func(h hearer) bool { return h.open && h.updates == kind }
		if kind == anyOther && !m.c.Signs || kind == anyRule && (m.c.Late || m.c.Groups) {
			continue
		}
		switch there := slices.ContainsFunc(m.s.rows, is); {
		case kind == anySwitch && h.call != uncalled:
		case kind == anySwitch && there:
			m.add(p, "finds the agent switched off, and writes nothing", false,
				only(func(_ *stream, h *hearer) { h.call = found }))
		case !there && (kind == anySwitch || !slices.ContainsFunc(m.s.hearers, begun)):
			begin := func(does string, shared bool) {
				m.add(p, "begins to write "+does, false, only(func(t *stream, h *hearer) {
					h.open, h.shared, h.updates, h.revision = true, shared, kind, t.revision(kind.org())+1
				}))
			}
			begin(changeNames[kind], false)
			if m.c.Groups && m.s.revision(anyOther.org()) == 0 &&
				!slices.ContainsFunc(m.s.hearers, func(h hearer) bool { return h.shared }) {
				begin(changeNames[kind]+" and another organization", true)
			}
		}
	}
}

// end ends a transaction.
func (h *hearer) end() { h.open, h.shared, h.updates, h.revision = false, false, 0, 0 }

// committing adds the step in which p commits rows of kinds in one transaction.
func (m *changer) committing(p int, does string, kinds ...changeKind) {
	m.add(p, does, false, func(t *stream, h *hearer) (broken string) {
		updates, revision := h.updates, h.revision
		h.end()
		for i, kind := range kinds {
			if kind != updates {
				t.write(p, kind, t.revision(kind.org())+1)
			} else if id := t.write(p, kind, revision); kind == anySwitch {
				h.call, h.time = written, id
			}
			t.rows[len(t.rows)-1].left = int8(len(kinds) - 1 - i)
			if !m.c.has(InPlace) {
				broken = cmp.Or(broken, h.tell(kind, t.rows[len(t.rows)-1].revision))
			}
		}
		return broken
	})
}

// tell tells the watchers a change. It returns the invariant that is broken if it is not in order.
func (h *hearer) tell(kind changeKind, revision int8) string {
	org := kind.org()
	if org < 0 {
		return ""
	}
	if revision <= h.last[org] {
		return "order"
	}
	if h.last[org] = revision; org == 0 {
		h.cached = nothing
	}
	return ""
}

// hearing adds the steps in which p's stream delivers a row, breaks and is opened again.
func (m *changer) hearing(p int) {
	h := &m.s.hearers[p]
	if h.told < h.got {
		m.add(p, "tells its watchers", false, func(t *stream, h *hearer) string { return m.c.hear(t, p) })
	}
	if h.broken {
		if !h.forgot && int(h.told) < len(m.s.rows) {
			m.add(p, "is to hear of what the store has no more", true,
				only(func(_ *stream, h *hearer) { h.forgot = true }))
		}
		m.add(p, "opens its stream again", false, only(func(t *stream, h *hearer) {
			if h.forgot || !m.c.has(Resume) {
				if h.forgot && m.c.has(Everything) {
					h.cached = nothing
				}
				t.skip(h)
			}
			h.broken, h.forgot = false, false
		}))
		return
	}
	if int(h.got) < len(m.s.rows) {
		name := changeNames[m.s.rows[h.got].kind]
		if m.c.has(Told) {
			m.add(p, "hears of "+name, false, func(t *stream, h *hearer) string {
				h.got++
				return m.c.hear(t, p)
			})
		} else {
			m.add(p, "receives "+name, false, only(func(_ *stream, h *hearer) { h.got++ }))
		}
		if m.c.Breaks && !m.s.broke {
			m.add(p, "has its stream broken", true, only(func(t *stream, h *hearer) {
				h.got, h.broken, t.broke = h.told, true, true
			}))
		}
	}
}

// skip makes a replica begin at the end of the stream. A call that waits for a row in between then needs a
// mark.
func (s *stream) skip(h *hearer) {
	h.got, h.told, h.part, h.toldID = int8(len(s.rows)), int8(len(s.rows)), 0, 0
	if n := len(s.rows); n > 0 {
		h.toldID = s.rows[n-1].id
	}
	h.last = [2]int8{s.revision(0), s.revision(1)}
	if h.call == written {
		h.call, h.time = found, 0
	}
}

// hear makes p tell its watchers the next row.
func (c *Changes) hear(t *stream, p int) (broken string) {
	h := &t.hearers[p]
	r := t.rows[h.told]
	h.told++
	switch h.toldID = r.id; {
	case r.left == 0:
		h.part = 0
	case c.has(Whole):
		h.part++
	default:
		h.part = -r.left
	}
	if c.has(InPlace) || r.by != int8(p) {
		broken = h.tell(r.kind, r.revision)
	}
	if r.kind == anyBeat && (r.by == int8(p) && h.told > t.old || r.by != int8(p) && !c.has(OwnBeat)) {
		h.fresh = true
	}
	if h.call == written && h.time == r.id {
		h.call, h.time = timed, h.told+r.left
	}
	return broken
}

func (m *changer) acknowledging(p int) {
	h := &m.s.hearers[p]
	time, id := h.toldAll(), h.toldID
	if !m.c.has(Told) && h.got > h.told {
		time, id = h.got, m.s.rows[h.got-1].id
	}
	if time > h.acked || time == h.acked && id != h.ackedID {
		m.add(p, "acknowledges", false, only(func(_ *stream, h *hearer) { h.acked, h.ackedID = time, id }))
	}
}

// calling adds the steps of p's call of the switch after its update: its time is known, and all have
// acknowledged it.
func (m *changer) calling(p int) {
	h := &m.s.hearers[p]
	now := func(does string) {
		m.add(p, does, false, only(func(_ *stream, h *hearer) { h.call, h.time = timed, h.toldAll() }))
	}
	switch h.call {
	case found:
		if m.c.has(Mark) {
			m.add(p, "writes a mark", false, only(func(t *stream, h *hearer) {
				h.call, h.time = written, t.write(p, anyMark, 0)
			}))
		} else {
			now("takes the time up to which it was told")
		}
	case written:
		if !m.c.has(OwnRow) {
			now("takes the time up to which it was told")
		}
	case timed:
		if m.c.acknowledged(m.s, h.time) {
			m.add(p, "answers the switch", false, only(func(t *stream, _ *hearer) { t.answered = true }))
		}
	}
}

// acknowledged reports whether all replicas have acknowledged a time. Nobody is taken at his word who has
// heard of a row that the store does not have.
func (c *Changes) acknowledged(s *stream, time int8) bool {
	for i := range s.hearers {
		h := &s.hearers[i]
		if !h.up {
			continue
		}
		if h.acked < time {
			return false
		}
		heard := func(r row) bool { return r.id == h.ackedID }
		if c.has(RowHeard) && h.ackedID != 0 && !slices.ContainsFunc(s.rows, heard) {
			return false
		}
	}
	return true
}

// beating adds the steps in which p writes its beat, and the bound of freshness passes.
func (m *changer) beating(p int) {
	if !m.c.Late {
		return
	}
	if !slices.ContainsFunc(m.s.rows, func(r row) bool { return r.kind == anyBeat && r.by == int8(p) }) {
		m.add(p, "writes a beat", false, only(func(t *stream, _ *hearer) { t.write(p, anyBeat, 0) }))
	}
	if p == 0 && m.s.old == 0 && len(m.s.rows) > 0 {
		m.add(-1, "the bound of freshness passes", false, only(func(t *stream, _ *hearer) {
			t.old = int8(len(t.rows))
			for i := range t.hearers {
				t.hearers[i].fresh = false
			}
		}))
	}
}

// signing adds the steps in which the changes that wait are signed, and then trimmed.
func (m *changer) signing() {
	key := func(r row) int8 { return r.kind.org()<<4 + r.revision }
	if !m.s.listed {
		if slices.ContainsFunc(m.s.rows, func(r row) bool { return r.kind.org() >= 0 && !r.signed }) {
			m.add(-1, "the changes are signed", false, only(func(t *stream, _ *hearer) {
				t.rows, t.listed = slices.Clone(t.rows), true
				for i := range t.rows {
					t.rows[i].signed = t.rows[i].signed || t.rows[i].kind.org() >= 0
				}
			}))
		}
		return
	}
	m.add(-1, "the signed changes are trimmed", false, func(t *stream, _ *hearer) (broken string) {
		t.rows, t.listed = slices.Clone(t.rows), false
		last := int8(0)
		for _, r := range t.rows {
			if r.signed && !r.trimmed {
				last = max(last, key(r))
			}
		}
		for i := range t.rows {
			r := &t.rows[i]
			r.trimmed = r.trimmed || r.signed
			if !m.c.has(ByKey) && r.kind.org() >= 0 && !r.signed && key(*r) <= last {
				broken = "signed"
			}
		}
		return broken
	})
}

// restoring adds the steps in which the store is restored. Calls and transactions under way end.
func (m *changer) restoring() {
	for n := range m.s.rows {
		if n > 0 && m.s.rows[n-1].left > 0 {
			continue // a transaction is restored as a whole
		}
		m.add(-1, fmt.Sprintf("the store is restored as it was with %d changes", n), true,
			only(func(t *stream, _ *hearer) {
				t.rows, t.restored, t.listed = t.rows[:n:n], true, false
				t.answered = t.answered && t.isOff()
				for i := range t.hearers {
					h := &t.hearers[i]
					h.ahead = h.up && int(h.got) > n
					h.end()
					h.call, h.time = uncalled, 0
				}
			}))
	}
}
