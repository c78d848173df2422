package scrub

// automaton finds all keywords of all rules in one pass (Aho and Corasick, 1975), ignoring
// case. Bytes that are in no keyword share one class, so that the table fits in a processor's
// cache.
type automaton struct {
	class   [256]uint8
	classes int
	next    [][1 << classBits]uint16 // by state and class
	out     []uint16                 // by state; an index of sets, 0 for none
	sets    []ruleSet
	opens   []bool // by index of sets; whether the set has a contextual rule
}

// classBits is the room for classes: letters, digits and punctuation.
const classBits = 6

func newAutomaton(rules []*rule) automaton {
	a := automaton{
		classes: 1, next: make([][1 << classBits]uint16, 1), sets: make([]ruleSet, 1), opens: make([]bool, 1),
	}
	found := make([]ruleSet, 1) // by state: the rules whose keywords end there
	for i, r := range rules {
		for _, k := range r.keywords {
			at := a.add(k)
			found = append(found, make([]ruleSet, len(a.next)-len(found))...)
			found[at].add(i)
		}
	}
	if len(a.next) > 1<<16 {
		panic("scrub: more keywords than the automaton can number")
	}
	a.link(found)
	for _, set := range found {
		if set.empty() {
			a.out = append(a.out, 0)
			continue
		}
		opens := false
		for i, r := range rules {
			opens = opens || r.contextual && set.has(i)
		}
		a.out = append(a.out, uint16(len(a.sets)))
		a.sets, a.opens = append(a.sets, set), append(a.opens, opens)
	}
	return a
}

// add adds the states of a keyword and returns the last one.
func (a *automaton) add(keyword string) (at uint16) {
	for i := range len(keyword) {
		c := a.classify(keyword[i])
		if a.next[at][c] == 0 {
			a.next[at][c] = uint16(len(a.next))
			a.next = append(a.next, [1 << classBits]uint16{})
		}
		at = a.next[at][c]
	}
	return at
}

// classify returns the class of b, which is also the class of its upper case.
func (a *automaton) classify(b byte) uint8 {
	if a.class[b] == 0 {
		if a.classes == 1<<classBits {
			panic("scrub: keywords of more bytes than the automaton can number")
		}
		a.class[b] = uint8(a.classes)
		if b >= 'a' && b <= 'z' {
			a.class[b-'a'+'A'] = uint8(a.classes)
		}
		a.classes++
	}
	return a.class[b]
}

// link adds to each state the edges and the found rules of its longest suffix that is also
// a state, breadth first.
func (a *automaton) link(found []ruleSet) {
	suffix := make([]uint16, len(a.next))
	for queue := []uint16{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		found[at].join(&found[suffix[at]])
		for c, child := range a.next[at] {
			other := a.next[suffix[at]][c]
			switch {
			case child == 0:
				a.next[at][c] = other
				continue
			case at != 0:
				suffix[child] = other
			}
			queue = append(queue, child)
		}
	}
}
