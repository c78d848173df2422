package condition

import "slices"

// Truth is what is known of a node: that it is true, that it is false, or neither, such as
// where it is an error.
type Truth int8

// The truths.
const (
	Unknown Truth = iota
	False
	True
)

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Prover proves what follows from conditions. What it knows is less than what is so:
// it answers Unknown rather than guess. It is of valid intents, and of comparisons that
// have work left. One goroutine at a time uses it.
type Prover struct {
	asked  map[*Node]*Program // leaves, each as it runs
	frame  *Frame             // of which they are asked
	shapes map[shapeKey]shape // patterns of leaves
}

// NewProver returns a Prover.
func NewProver() *Prover {
	return &Prover{asked: make(map[*Node]*Program), frame: new(Frame), shapes: make(map[shapeKey]shape)}
}

// Case is what is so of some intents: comparisons, each of which is true or false of
// all of them.
type Case struct {
	prover *Prover
	known  map[subject]*known
	// present says of what may be absent whether it is there.
	present map[subject]Truth
}

// subject is what comparisons are about, whatever they take it for.
type subject struct {
	id  FieldID
	key string
}

func (f Field) subject() subject {
	if f.ID == GovernedAgentID { // which is the intent's
		return subject{id: AgentID}
	}
	return subject{f.ID, f.Key}
}

// owner is the subject with which f is absent.
func (f Field) owner() subject { return subject{f.row().owner, f.Key} }

// literal is a leaf, and whether it is true.
type literal struct {
	leaf  *Node
	truth bool
}

// Cases returns cases of which each intent that n is true of has one. There is none
// where n is false of every intent.
//
// Where n is asked once for each reading of the resource, so is each case.
func (p *Prover) Cases(n *Node) []*Case {
	var cases []*Case
	for _, literals := range alternatives(n, true) {
		if c := p.newCase(literals); c != nil {
			cases = append(cases, c)
		}
	}
	return cases
}

// alternatives returns lists of literals, of which one holds where n is truth. It leaves
// out what would make too many.
func alternatives(n *Node, truth bool) [][]literal {
	switch {
	case n.Kind == Not:
		return alternatives(n.Kids[0], !truth)
	case n.Kind == Leaf:
		return [][]literal{{{n, truth}}}
	case n.Kind == Opaque:
		return [][]literal{nil}
	case (n.Kind == All) == truth:
		return together(n.Kids, truth)
	}
	var all [][]literal
	for _, k := range n.Kids {
		if all = append(all, alternatives(k, truth)...); len(all) > maxCases {
			return [][]literal{nil}
		}
	}
	return all
}

// together returns the alternatives of all kids at once.
func together(kids []*Node, truth bool) [][]literal {
	all := [][]literal{nil}
	for _, k := range kids {
		more := alternatives(k, truth)
		if len(more) == 0 {
			return nil
		}
		size := 0
		for _, a := range all {
			size += len(a)
		}
		if len(all)*len(more) > maxCases || size*len(more) > 64*maxCases {
			continue
		}
		product := make([][]literal, 0, len(all)*len(more))
		for _, a := range all {
			for _, b := range more {
				product = append(product, slices.Concat(a, b))
			}
		}
		all = product
	}
	return all
}

// newCase returns the case of which literals are so, nil where there is no such intent.
func (p *Prover) newCase(literals []literal) *Case {
	c := &Case{prover: p, known: make(map[subject]*known), present: make(map[subject]Truth)}
	for _, l := range literals {
		if !c.learn(l) {
			return nil
		}
	}
	for s, there := range c.present {
		if s.id == MetadataValue && there == True && !c.set(subject{id: Metadata}, True) {
			return nil
		}
	}
	for _, k := range c.known {
		if !k.settle(c) {
			return nil
		}
	}
	return c
}

// learn adds a literal, and reports whether it contradicts none of the others about
// what is there.
func (c *Case) learn(l literal) bool {
	f := l.leaf.Field
	if l.leaf.Op != Exists || f.Kind == Digits || f.Kind == Decimal {
		k := c.known[f.subject()]
		if k == nil {
			k = &known{}
			c.known[f.subject()] = k
		}
		k.literals = append(k.literals, l)
		return !l.truth || !f.Optional() || c.set(f.owner(), True)
	}
	return c.set(f.owner(), truth(l.truth))
}

func (c *Case) set(s subject, there Truth) bool {
	if known := c.present[s]; known != Unknown {
		return known == there
	}
	c.present[s] = there
	return true
}

func (c *Case) isThere(f Field) Truth {
	switch {
	case !f.Optional():
		return True
	case f.isMetadata() && c.present[subject{id: Metadata}] == False:
		return False
	}
	return c.present[f.owner()]
}

// Decide says what n is of all intents of the case.
func (c *Case) Decide(n *Node) Truth {
	switch n.Kind {
	case Not:
		return opposite(c.Decide(n.Kids[0]))
	case Leaf:
		return c.decideLeaf(n, -1)
	case Opaque:
		return Unknown
	}
	return joinedTruth(n.Kind, n.Kids, c.Decide)
}

// joinedTruth is what a conjunction (All) or a disjunction (Any) is. An operand that decides
// wins over one that is Unknown.
func joinedTruth[T any](kind NodeKind, kids []T, of func(kid T) Truth) Truth {
	decides, result := truth(kind == Any), truth(kind == All)
	for _, k := range kids {
		switch of(k) {
		case decides:
			return decides
		case Unknown:
			result = Unknown
		}
	}
	return result
}

func opposite(t Truth) Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

// decideLeaf decides a leaf from all that is known of its field but the literal at
// without.
func (c *Case) decideLeaf(n *Node, without int) Truth {
	f := n.Field
	there := c.isThere(f)
	switch {
	case there == False:
		return False
	case n.Op == Exists && f.Kind != Digits && f.Kind != Decimal:
		return there
	}
	k := c.known[f.subject()]
	if k == nil {
		k = &known{}
	}
	if t := k.decideEach(c, n); t != Unknown {
		return t
	}
	if t := k.interval(c, f, without).decide(n); t != Unknown {
		return t
	}
	for i, l := range k.literals {
		switch {
		case i == without:
		case l.truth && c.prover.implies(l.leaf, n):
			return True
		case !l.truth && c.prover.implies(n, l.leaf):
			return False
		}
	}
	return Unknown
}

// Forget returns a tree that is true where n is for some value of f, which the intent
// has.
func (n *Node) Forget(f Field) *Node { return n.forget(f.owner(), true) }

func (n *Node) forget(owner subject, positive bool) *Node {
	switch {
	case n.Kind == Not:
		return Negate(n.Kids[0].forget(owner, !positive))
	case n.Kind == Leaf && n.Field.Optional() && n.Field.owner() == owner:
		return Always(positive)
	case n.Kind == Leaf || len(n.Kids) == 0:
		return n
	}
	return combine(n.Kind, each(n.Kids, func(k *Node) *Node { return k.forget(owner, positive) }))
}
