// Package proof proves statements about conditions without evaluating an intent. If it finds no
// proof, it answers [condition.Unknown], even for a statement that is true. It assumes that intents
// are valid and that comparisons have work left.
//
//	p := proof.New()
//	for _, c := range p.Cases(n) {               // one holds of each intent that n is true of
//		if c.Decide(m) != condition.True { … }   // else m is true of all of them
//	}
package proof

import (
	"slices"

	"writ.example/writ/engine/condition"
)

// Prover proves statements about conditions. Only one goroutine at a time may use it.
type Prover struct {
	asked  map[*condition.Node]*condition.Program // the compiled leaves
	frame  *condition.Frame                       // the memory of the running program
	shapes map[shapeKey]shape                     // the shapes of the patterns in leaves
}

// New returns a Prover.
func New() *Prover {
	return &Prover{make(map[*condition.Node]*condition.Program), condition.NewFrame(), make(map[shapeKey]shape)}
}

// Case is a set of comparisons, each with its truth. It stands for all intents that give the
// comparisons these truths.
type Case struct {
	prover *Prover
	facts  map[subject]*facts
	// present has the known existence of optional subjects.
	present map[subject]condition.Truth
}

// subject is a field, regardless of the type as which a comparison reads it.
type subject struct {
	id  condition.FieldID
	key string
}

func subjectOf(f condition.Field) subject {
	if f.ID == condition.GovernedAgentID { // this field is also the intent's agent
		return subject{id: condition.AgentID}
	}
	return subject{f.ID, f.Key}
}

// ownerOf returns the subject that f is part of. If that subject is absent, f is absent.
func ownerOf(f condition.Field) subject { return subject{f.Owner().ID, f.Key} }

// literal is a leaf and its truth.
type literal struct {
	leaf  *condition.Node
	truth bool
}

// Cases returns cases that cover n: each intent for which n is true belongs to a case. If there are
// no cases, n is false for every intent.
//
// A condition on the resource is evaluated once for each reading. Then each case also stands for
// one reading.
func (p *Prover) Cases(n *condition.Node) []*Case {
	var cases []*Case
	for _, literals := range alternatives(n, true) {
		if c := p.newCase(literals); c != nil {
			cases = append(cases, c)
		}
	}
	return cases
}

// maxCases is the greatest number of cases of a condition. All cases together have at most
// 64*maxCases comparisons.
const maxCases = 32

// alternatives returns lists of literals. If n has the given truth, all literals of at least one
// list hold. To keep the number of lists small, it may drop literals.
func alternatives(n *condition.Node, truth bool) [][]literal {
	switch {
	case n.Kind == condition.Not:
		return alternatives(n.Kids[0], !truth)
	case n.Kind == condition.Leaf:
		return [][]literal{{{n, truth}}}
	case n.Kind == condition.Opaque:
		return [][]literal{nil}
	case (n.Kind == condition.All) == truth:
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

// together returns the alternatives in which every kid has the given truth.
func together(kids []*condition.Node, truth bool) [][]literal {
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

// newCase returns the case of literals, or nil if the literals contradict each other.
func (p *Prover) newCase(literals []literal) *Case {
	c := &Case{prover: p, facts: make(map[subject]*facts), present: make(map[subject]condition.Truth)}
	for _, l := range literals {
		if !c.learn(l) {
			return nil
		}
	}
	for s, there := range c.present {
		if s.id == condition.MetadataValue && there == condition.True &&
			!c.set(subject{id: condition.Metadata}, condition.True) {
			return nil
		}
	}
	for _, k := range c.facts {
		if !k.settle(c) {
			return nil
		}
	}
	return c
}

// learn adds a literal. It returns false if two literals contradict each other about the existence
// of a field.
func (c *Case) learn(l literal) bool {
	f := l.leaf.Field
	if l.leaf.Op != condition.Exists || f.Kind == condition.Digits || f.Kind == condition.Decimal {
		k := c.about(subjectOf(f))
		k.literals = append(k.literals, l)
		c.facts[subjectOf(f)] = k
		return !l.truth || !f.Optional() || c.set(ownerOf(f), condition.True)
	}
	return c.set(ownerOf(f), condition.TruthOf(l.truth))
}

func (c *Case) about(s subject) *facts {
	if k := c.facts[s]; k != nil {
		return k
	}
	return &facts{}
}

func (c *Case) set(s subject, there condition.Truth) bool {
	if before := c.present[s]; before != condition.Unknown {
		return before == there
	}
	c.present[s] = there
	return true
}

func (c *Case) isThere(f condition.Field) condition.Truth {
	switch {
	case !f.Optional():
		return condition.True
	case f.ID == condition.MetadataValue && c.present[subject{id: condition.Metadata}] == condition.False:
		return condition.False
	}
	return c.present[ownerOf(f)]
}

// Decide returns the truth of n if all intents of the case give the same truth. Otherwise it
// returns [condition.Unknown].
func (c *Case) Decide(n *condition.Node) condition.Truth {
	switch n.Kind {
	case condition.Not:
		return c.Decide(n.Kids[0]).Opposite()
	case condition.Leaf:
		return c.decideLeaf(n, -1)
	case condition.Opaque:
		return condition.Unknown
	}
	return condition.Joined(n.Kind, n.Kids, c.Decide)
}

// decideLeaf decides a leaf from the literals about its field. It ignores one literal, given by its
// index.
func (c *Case) decideLeaf(n *condition.Node, without int) condition.Truth {
	f := n.Field
	there := c.isThere(f)
	switch {
	case there == condition.False:
		return condition.False
	case n.Op == condition.Exists && f.Kind != condition.Digits && f.Kind != condition.Decimal:
		return there
	}
	k := c.about(subjectOf(f))
	if f.ID == condition.AgentName && len(k.literals) == 0 { // n is also evaluated for the name that was sent
		k = c.about(subject{id: condition.AgentID})
	}
	if t := k.decideEach(c, n); t != condition.Unknown {
		return t
	}
	// The name that was sent is one of the agent's names.
	if n.AsksNames() && c.about(subject{id: condition.AgentID}).decideEach(c, n) == condition.True {
		return condition.True
	}
	if t := k.interval(c, f, without).decide(n); t != condition.Unknown {
		return t
	}
	for i, l := range k.literals {
		switch {
		case i == without:
		case l.truth && c.prover.implies(l.leaf, n):
			return condition.True
		case !l.truth && c.prover.implies(n, l.leaf):
			return condition.False
		}
	}
	return condition.Unknown
}

// Forget returns a tree that is true if some value of f makes n true. It assumes that the intent
// has f.
func Forget(n *condition.Node, f condition.Field) *condition.Node { return forget(n, ownerOf(f), true) }

func forget(n *condition.Node, owner subject, positive bool) *condition.Node {
	kids := make([]*condition.Node, len(n.Kids))
	for i, k := range n.Kids {
		kids[i] = forget(k, owner, positive != (n.Kind == condition.Not))
	}
	switch {
	case n.Kind == condition.Not:
		return condition.Negate(kids[0])
	case n.Kind == condition.All:
		return condition.Both(kids...)
	case n.Kind == condition.Any:
		return condition.Either(kids...)
	case n.Kind == condition.Leaf && n.Field.Optional() && ownerOf(n.Field) == owner:
		return condition.Always(positive)
	}
	return n
}
