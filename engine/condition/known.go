package condition

import (
	"errors"
	"slices"
	"strconv"
)

// known is what is known of a subject that is there.
type known struct {
	literals []literal
	// values are the only ones that it can have, if finite is set: it is there then.
	values []string
	finite bool
}

// settle finds the values, and reports whether the literals leave any intent.
func (k *known) settle(c *Case) bool {
	for _, l := range k.literals {
		f := l.leaf.Field
		switch {
		case f.ID == GovernedAgentStatus && !k.finite:
			k.values, k.finite = []string{"active", "disabled", "unregistered"}, true
		case l.truth && (l.leaf.Op == Eq || l.leaf.Op == In) && f.Kind == Text && f.ID != Resource && !k.finite:
			k.values, k.finite = slices.Clone(l.leaf.Texts()), true
		}
	}
	for _, l := range k.literals {
		if !k.finite {
			break
		}
		k.values = slices.DeleteFunc(k.values, func(s string) bool {
			t := c.prover.holdsOf(l.leaf, s)
			return t != Unknown && (t == True) != l.truth
		})
	}
	if k.finite && len(k.values) == 0 {
		return false
	}
	for i, l := range k.literals {
		if t := c.decideLeaf(l.leaf, i); t != Unknown && (t == True) != l.truth {
			return false
		}
	}
	return true
}

// decideEach decides a leaf where it is the same of all values.
func (k *known) decideEach(c *Case, n *Node) Truth {
	if !k.finite {
		return Unknown
	}
	all := c.prover.holdsOf(n, k.values[0])
	for _, s := range k.values[1:] {
		if c.prover.holdsOf(n, s) != all {
			return Unknown
		}
	}
	return all
}

// holdsOf asks a leaf of a text that its field has. What is no decimal compares with none.
func (p *Prover) holdsOf(n *Node, s string) Truth {
	f := n.Field
	switch {
	case n.Op == Exists && f.Kind == Decimal:
		_, ok := parseDecimal(s)
		return truth(ok)
	case f.Kind != Text && f.Kind != Decimal || f.ID == Resource || n.Op == Exists:
		return Unknown
	}
	program, ok := p.asked[n]
	if !ok {
		program, _ = Plan(n)
		p.asked[n] = program
	}
	p.frame.Work, p.frame.metadata = Work{}, map[string]string{f.Key: s}
	p.frame.SetText(f.ID, s)
	holds, err := program.Eval(p.frame)
	switch {
	case errors.Is(err, notDecimal):
		return False
	case err != nil:
		return Unknown
	}
	return truth(holds)
}

// interval is the numbers that a field can be, read as one kind.
type interval struct {
	// isNumber is set where it is known to be one.
	isNumber  bool
	low, high end
}

// end is an end of an interval, which is open where excluded is set.
type end struct {
	at       decimal
	is       bool
	excluded bool
}

// numberOf returns the number that a leaf compares with.
func numberOf(n *Node) (decimal, bool) {
	if table[n.Op].order == nil || len(n.Values) != 1 {
		return decimal{}, false
	}
	switch v := n.Values[0]; n.Field.Kind {
	case Int, Digits, Size:
		return parseDecimal(strconv.FormatInt(v.Num, 10))
	case Decimal:
		return parseDecimal(v.Str)
	case Time:
		at, err := ParseTime(v.Str)
		if err != nil {
			return decimal{}, false
		}
		return parseDecimal(strconv.FormatInt(at.UnixNano(), 10))
	}
	return decimal{}, false
}

// interval returns what the literals but the one at without leave of f. What is no
// number compares with none, as what the literals leave out does.
func (k *known) interval(c *Case, f Field, without int) (in interval) {
	sameKind := func(l literal) bool { return l.leaf.Field == f }
	in.isNumber = (f.Kind == Int || f.Kind == Size || f.Kind == Time) && c.isThere(f) == True
	switch {
	case f.ID == CostAmount:
		in.low = end{is: true}
	case f.ID == PolicyVersion:
		in.low.at, in.low.is = parseDecimal("1")
	case f.Kind == Size:
		in.low = end{is: true}
	}
	for i, l := range k.literals {
		if i != without && l.truth && sameKind(l) && (l.leaf.Op == Exists || table[l.leaf.Op].order != nil) {
			in.isNumber = true
		}
	}
	for i, l := range k.literals {
		if at, ok := numberOf(l.leaf); ok && i != without && sameKind(l) {
			in.cut(l.leaf.Op, at, l.truth)
		}
	}
	return in
}

// cut leaves of the interval what compares as op with at, or what does not.
func (in *interval) cut(op Operator, at decimal, holds bool) {
	if !holds {
		op = map[Operator]Operator{Gt: Lte, Gte: Lt, Lt: Gte, Lte: Gt}[op] // Eq leaves both sides
	}
	switch op {
	case Gt, Gte:
		in.low.raise(at, op == Gt, 1)
	case Lt, Lte:
		in.high.raise(at, op == Lt, -1)
	case Eq:
		if holds {
			in.low.raise(at, false, 1)
			in.high.raise(at, false, -1)
		}
	}
}

// raise moves an end inwards, which is up where sign is 1.
func (e *end) raise(at decimal, excluded bool, sign int) {
	switch c := sign * at.compare(e.at); {
	case !e.is || c > 0:
		*e = end{at, true, excluded}
	case c == 0:
		e.excluded = e.excluded || excluded
	}
}

// decide says how all numbers of the interval compare.
func (in interval) decide(n *Node) Truth {
	at, ok := numberOf(n)
	if !ok {
		if n.Op == Exists && in.isNumber {
			return True
		}
		return Unknown
	}
	// above is set where all are greater than at, over where none is less; below and under
	// are the same the other way.
	above, over := in.low.beyond(at, 1)
	below, under := in.high.beyond(at, -1)
	var all, none bool
	switch n.Op {
	case Gt:
		all, none = above, under
	case Gte:
		all, none = over, below
	case Lt:
		all, none = below, over
	case Lte:
		all, none = under, above
	case Eq:
		all, none = over && under, above || below
	}
	switch {
	case none:
		return False
	case all && in.isNumber:
		return True
	}
	return Unknown
}

// beyond reports whether all on the inner side of e are beyond at, and whether none is
// before it.
func (e end) beyond(at decimal, sign int) (strictly, atLeast bool) {
	if !e.is {
		return false, false
	}
	c := sign * e.at.compare(at)
	return c > 0 || c == 0 && e.excluded, c >= 0
}
