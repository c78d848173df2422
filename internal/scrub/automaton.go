package scrub

// automaton finds all keywords of all rules in one pass (Aho and Corasick, 1975),
// ignoring case. Bytes that occur in no keyword share one class, which keeps the table
// small enough for a processor's cache.
type automaton struct {
	class [256]uint8
	width int      // number of classes
	next  []uint16 // by state<<classBits and class
	out   []uint16 // by state; an index of sets, 0 for none
	sets  []ruleSet
	opens []bool // by index of sets: has a contextual rule
}

// classBits is the room for classes: letters, digits and punctuation.
const classBits = 6

func newAutomaton(rules []*rule) automaton {
	a := automaton{width: 1}
	for _, r := range rules {
		for _, k := range r.keywords {
			for i := range len(k) {
				a.classify(k[i])
			}
		}
	}
	t := trie{width: a.width, nodes: []node{{next: make([]int, a.width)}}}
	for i, r := range rules {
		for _, k := range r.keywords {
			t.add(&a.class, k, i)
		}
	}
	t.link()
	a.tabulate(t.nodes, rules)
	return a
}

// classify gives b and its upper case a class.
func (a *automaton) classify(b byte) {
	if a.class[b] != 0 {
		return
	}
	a.class[b] = uint8(a.width)
	if b >= 'a' && b <= 'z' {
		a.class[b-'a'+'A'] = uint8(a.width)
	}
	a.width++
}

// tabulate fills a's tables from the nodes of a linked trie.
func (a *automaton) tabulate(nodes []node, rules []*rule) {
	if len(nodes) > 1<<16 || a.width > 1<<classBits {
		panic("scrub: more keywords than the automaton can number")
	}
	a.next = make([]uint16, len(nodes)<<classBits)
	a.sets, a.opens = make([]ruleSet, 1), make([]bool, 1)
	for state, n := range nodes {
		for class, to := range n.next {
			a.next[state<<classBits|class] = uint16(to)
		}
		out := 0
		if !n.rules.empty() {
			out = len(a.sets)
			opens := false
			for i, r := range rules {
				opens = opens || r.contextual && n.rules.has(i)
			}
			a.sets, a.opens = append(a.sets, n.rules), append(a.opens, opens)
		}
		a.out = append(a.out, uint16(out))
	}
}

type trie struct {
	width int
	nodes []node
}

type node struct {
	next  []int // by class; 0: the root
	rules ruleSet
}

func (t *trie) add(class *[256]uint8, keyword string, rule int) {
	at := 0
	for i := range len(keyword) {
		c := class[keyword[i]]
		if t.nodes[at].next[c] == 0 {
			t.nodes[at].next[c] = len(t.nodes)
			t.nodes = append(t.nodes, node{next: make([]int, t.width)})
		}
		at = t.nodes[at].next[c]
	}
	t.nodes[at].rules.add(rule)
}

// link adds to each node the edges and rules of its longest suffix that is also a node,
// breadth first.
func (t *trie) link() {
	suffix := make([]int, len(t.nodes))
	var queue []int
	for _, child := range t.nodes[0].next {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		n := &t.nodes[at]
		n.rules.join(&t.nodes[suffix[at]].rules)
		for c, child := range n.next {
			other := t.nodes[suffix[at]].next[c]
			if child == 0 {
				n.next[c] = other
				continue
			}
			suffix[child] = other
			queue = append(queue, child)
		}
	}
}
