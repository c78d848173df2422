package condition

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// hasReadings reports whether a comparison has to heed that its metadata value, or its item, can be
// read in several ways. A whole value has readings for operands with an @. In an allowance a * must
// not cross an @ of a whole value either.
func (n *Node) hasReadings(side resource.Side) bool {
	switch f := n.Field; {
	case f.Kind == Size:
		return true
	case f.Kind != Text || n.Op == Exists:
		return false
	case f.ID == Item:
		return true
	case f.ID != MetadataValue:
		return false
	}
	switch n.Op {
	case InList:
		return true
	case Eq, In:
		return n.hasOperand("@")
	case Glob:
		return n.hasOperand("@") || side == resource.ForAllow && n.hasOperand("*")
	}
	return false
}

func (n *Node) hasOperand(part string) bool {
	return slices.ContainsFunc(n.Values, func(v Constant) bool { return strings.Contains(v.Str, part) })
}

// IsRead reports whether n compares the readings of a metadata value or of an item with its
// operands, and not a text.
func (n *Node) IsRead() bool { return n.Kind == Leaf && n.Side != 0 && !n.isResource() }

// Operands splits a comparison for which [Node.IsRead] holds. plain is the comparison of a text with
// the operands without an @. mail is the comparison with those that have one, their domains folded:
// a block also takes them as they are. Both read the text of [Item].
func (n *Node) Operands() (plain, mail *Node) {
	text := FieldOf(Item)
	with, without := n.Values, []Constant(nil)
	if n.Op != InList {
		without = slices.DeleteFunc(slices.Clone(n.Values), func(v Constant) bool {
			return strings.Contains(v.Str, "@")
		})
		with = slices.DeleteFunc(slices.Clone(n.Values), func(v Constant) bool { return !strings.Contains(v.Str, "@") })
	}
	switch n.Op {
	case InList:
		at := Compare(text, Contains, Constant{Str: "@"})
		plain, mail = Both(Compare(text, InList, with...), Negate(at)), Compare(text, InAddresses, with...)
		if n.Side == resource.ForBlock {
			mail = Either(mail, Both(Compare(text, InList, with...), at))
		}
		return plain, mail
	case Eq, In:
		return among(text, without), among(text, n.folded(with, resource.FoldAddress))
	case Glob:
		op := Glob
		if n.Side == resource.ForAllow {
			op = AddressGlob
		}
		return patterned(op, without), patterned(op, n.folded(with, glob.FoldDomains))
	}
	plain, mail = Compare(text, n.Op, n.Values...), Always(false)
	if len(with) > 0 {
		plain, mail = mail, plain
	}
	return plain, mail
}

// patterned returns a comparison of an item with globs. Without globs it is false.
func patterned(op Operator, patterns []Constant) *Node {
	if len(patterns) == 0 {
		return Always(false)
	}
	return Compare(FieldOf(Item), op, patterns...)
}

// folded returns the readings of operands with an @. A block also has them as they are.
func (n *Node) folded(operands []Constant, fold func(string) []string) (all []Constant) {
	for _, v := range operands {
		texts := fold(v.Str)
		if n.Side == resource.ForBlock {
			texts = append(slices.Clone(texts), v.Str)
		}
		for _, s := range texts {
			if c := (Constant{Str: s}); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// read is a comparison with the readings of a metadata value or of an item.
type read struct {
	src  source
	side resource.Side
	item bool
	// plain and mail are as in [Node.Operands]. either is true if one of them is.
	plain, mail, either predicate
}

// read returns the predicate of a comparison for which [Node.IsRead] holds.
func (p *Program) read(n *Node, src source) (predicate, error) {
	if n.Field.Kind == Size {
		order, want := table[n.Op].order, n.Values[0].Num
		return &ofText{src, sized(want, order, n.Side), errNotDecimal}, nil
	}
	plain, mail := n.Operands()
	r := &read{src: src, side: n.Side, item: n.Field.ID == Item}
	var err, failed error
	r.plain, err = p.plan(plain)
	r.mail, failed = p.plan(mail)
	r.either = &junction{kids: []predicate{r.plain, r.mail}, decides: true}
	return r, cmp.Or(err, failed)
}

func (n *read) ask(f *Frame) result {
	if n.item {
		return n.ofElement(f, f.element)
	}
	s, ok := n.src.text(f)
	if !ok {
		return n.src.missing
	}
	if r := f.asks(n.plain, s); r.failed != nil || r.holds {
		return r
	}
	if !f.Work.Charge(len(s) / searchedPerStep) {
		return failing(ErrTooMuchWork)
	}
	if isPlain(s) {
		if n.side == resource.ForBlock {
			return f.asks(n.mail, s)
		}
		return is(false)
	}
	v, ok := f.read(s)
	switch {
	case !ok:
		return failing(ErrTooMuchWork)
	case n.side == resource.ForBlock:
		return f.anyOf(v.Blocked, n.mail)
	case len(v.Address) == 0:
		return is(false)
	}
	return f.allOf(slices.Values(v.Address), n.mail)
}

func (n *read) ofElement(f *Frame, e *Element) result {
	defer func() { f.texts[Item] = e.Text }()
	if n.side == resource.ForBlock {
		return f.anyOf(slices.Values(e.Blocked), n.either)
	}
	if r := f.allOf(slices.Values(e.Addresses), n.either); r.failed != nil || !r.holds {
		return r
	}
	return f.allOf(slices.Values(e.Others), n.plain)
}

// asks evaluates a predicate of an item for a text.
func (f *Frame) asks(n predicate, text string) result {
	f.texts[Item] = text
	return n.ask(f)
}

// anyOf reports whether n is true for one of texts, allOf whether it is true for all. The first text
// that decides is enough.
func (f *Frame) anyOf(texts iter.Seq[string], n predicate) result {
	t := tally{decides: true}
	for s := range texts {
		if t.add(f.asks(n, s)) {
			break
		}
	}
	return t.result()
}

func (f *Frame) allOf(texts iter.Seq[string], n predicate) result {
	t := tally{decides: false}
	for s := range texts {
		if t.add(f.asks(n, s)) {
			break
		}
	}
	return t.result()
}

// readValue is a metadata value that a frame has read.
type readValue struct {
	text  string
	value *Value
}

// read returns a metadata value as conditions read it, or false if reading it is too much work. A
// frame reads each text once, but charges for it each time: so the work does not depend on the other
// conditions.
func (f *Frame) read(text string) (*Value, bool) {
	i := slices.IndexFunc(f.values, func(r readValue) bool { return r.text == text })
	if i < 0 {
		i = len(f.values)
		f.values = append(f.values, readValue{text, ReadValue(text)})
	}
	v := f.values[i].value
	return v, f.Work.Charge(v.steps)
}
