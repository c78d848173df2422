package proof

import (
	"math/big"
	"slices"

	"writ.example/writ/engine/condition"
)

// facts has the known facts about a subject. They hold in each intent that has the subject.
type facts struct {
	literals []literal
	// If finite is set, a subject that exists has one of values.
	values []string
	finite bool
}

// settle finds the values of the subject. It returns false if no intent satisfies the literals.
func (k *facts) settle(c *Case) bool {
	for _, l := range k.literals {
		f := l.leaf.Field
		switch {
		case f.ID == condition.GovernedAgentStatus && !k.finite:
			k.values, k.finite = []string{"active", "disabled", "unregistered"}, true
		case l.truth && isEquality(l.leaf.Op) && f.Kind == condition.Text && f.ID != condition.Resource &&
			!l.leaf.IsRead() && !k.finite:
			k.values, k.finite = slices.Clone(l.leaf.Texts()), true
		}
	}
	for _, l := range k.literals {
		if !k.finite {
			break
		}
		k.values = slices.DeleteFunc(k.values, func(s string) bool {
			return c.prover.holdsOf(l.leaf, s) == condition.TruthOf(!l.truth)
		})
	}
	if k.finite && len(k.values) == 0 {
		return false
	}
	for i, l := range k.literals {
		if c.decideLeaf(l.leaf, i) == condition.TruthOf(!l.truth) {
			return false
		}
	}
	return true
}

// decideEach returns the truth of a leaf if all values give the same truth. Otherwise it returns
// Unknown.
func (k *facts) decideEach(c *Case, n *condition.Node) condition.Truth {
	if !k.finite {
		return condition.Unknown
	}
	all := c.prover.holdsOf(n, k.values[0])
	for _, s := range k.values[1:] {
		if c.prover.holdsOf(n, s) != all {
			return condition.Unknown
		}
	}
	return all
}

// holdsOf returns the truth of a leaf if its field is s. A comparison of decimals is false if s is
// not a decimal.
func (p *Prover) holdsOf(n *condition.Node, s string) condition.Truth {
	f, exists := n.Field, n.Op == condition.Exists
	if f.ID == condition.Resource || f.Kind != condition.Decimal && (f.Kind != condition.Text || exists) {
		return condition.Unknown
	}
	program, ok := p.asked[n]
	if !ok {
		ask := n
		if exists { // a comparison with any value shows whether the field exists
			ask = condition.Compare(f, condition.Eq, condition.Texts("0")...)
		}
		program, _ = condition.Plan(ask)
		p.asked[n] = program
	}
	p.frame.Work = condition.Work{}
	p.frame.SetMetadata(map[string]string{f.Key: s})
	p.frame.SetText(f.ID, s)
	p.frame.SetNames(condition.NamesOf(s, "", ""))
	holds, err := program.Eval(p.frame)
	switch {
	case err != nil && condition.CauseOf(err) == condition.CauseNotDecimal:
		return condition.False
	case err != nil:
		return condition.Unknown
	}
	return condition.TruthOf(holds || exists)
}

// interval is the range of numbers that a field can have.
type interval struct {
	// isNumber says that the field is known to be a number.
	isNumber  bool
	low, high end
}

// end is an end of an interval. A nil number means that the interval has no bound there. excluded
// says that the number itself is not in the interval.
type end struct {
	at       *big.Rat
	excluded bool
}

// isOrdered reports whether op can compare numbers. These are the first five operators.
func isOrdered(op condition.Operator) bool { return op <= condition.Lte }

// numberOf returns the number that a leaf compares with, or nil.
func numberOf(n *condition.Node) *big.Rat {
	if !isOrdered(n.Op) || len(n.Values) != 1 || n.IsRead() { // a list has several sizes
		return nil
	}
	switch v := n.Values[0]; n.Field.Kind {
	case condition.Int, condition.Digits, condition.Size:
		return big.NewRat(v.Num, 1)
	case condition.Decimal:
		if at, ok := new(big.Rat).SetString(v.Str); ok {
			return at
		}
	case condition.Time:
		if at, err := condition.ParseTime(v.Str); err == nil {
			return big.NewRat(at.UnixNano(), 1)
		}
	}
	return nil
}

// interval returns the range of f that the literals leave. It ignores one literal, given by its
// index. If the text of f is not a number, all comparisons of f with numbers are false.
func (k *facts) interval(c *Case, f condition.Field, without int) (in interval) {
	in.isNumber = c.isThere(f) == condition.True &&
		(f.Kind == condition.Int || f.Kind == condition.Size || f.Kind == condition.Time)
	switch {
	case f.ID == condition.CostAmount, f.Kind == condition.Size:
		in.low.at = new(big.Rat)
	case f.ID == condition.PolicyVersion:
		in.low.at = big.NewRat(1, 1)
	}
	for i, l := range k.literals {
		if i == without || l.leaf.Field != f {
			continue
		}
		if l.truth && (l.leaf.Op == condition.Exists || isOrdered(l.leaf.Op)) {
			in.isNumber = true
		}
		at, op := numberOf(l.leaf), l.leaf.Op
		if !l.truth {
			op = opposites[op]
		}
		if at != nil && (l.truth || op != condition.Eq) { // "not equal" excludes no end
			in.cut(op, at)
		}
	}
	return in
}

// opposites has the negation of each operator. The negation of Eq is not an operator.
var opposites = map[condition.Operator]condition.Operator{condition.Gt: condition.Lte, condition.Gte: condition.Lt,
	condition.Lt: condition.Gte, condition.Lte: condition.Gt}

// cut narrows the interval to the numbers for which the comparison is true. It reports whether the
// interval became smaller.
func (in *interval) cut(op condition.Operator, at *big.Rat) (less bool) {
	switch op {
	case condition.Gt, condition.Gte:
		return in.low.raise(at, op == condition.Gt, 1)
	case condition.Lt, condition.Lte:
		return in.high.raise(at, op == condition.Lt, -1)
	}
	low, high := in.low.raise(at, false, 1), in.high.raise(at, false, -1)
	return low || high
}

// raise moves an end inwards: up if sign is 1, down if sign is -1. The result says whether the end
// moved.
func (e *end) raise(at *big.Rat, excluded bool, sign int) bool {
	if e.at != nil {
		if c := sign * at.Cmp(e.at); c < 0 || c == 0 && (e.excluded || !excluded) {
			return false
		}
	}
	*e = end{at, excluded}
	return true
}

func (in interval) isEmpty() bool {
	if in.low.at == nil || in.high.at == nil {
		return false
	}
	c := in.low.at.Cmp(in.high.at)
	return c > 0 || c == 0 && (in.low.excluded || in.high.excluded)
}

// decide returns the truth of n if all numbers of the interval give the same truth. Otherwise it
// returns Unknown.
func (in interval) decide(n *condition.Node) condition.Truth {
	at, less := numberOf(n), false
	switch {
	case at != nil:
		less = in.cut(n.Op, at)
	case n.Op != condition.Exists:
		return condition.Unknown
	}
	switch {
	case at != nil && in.isEmpty():
		return condition.False
	case !less && in.isNumber:
		return condition.True
	}
	return condition.Unknown
}
