package condition

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"writ/engine/flat"
	"writ/engine/glob"
	"writ/engine/resource"
)

// Compact is a condition of a policy's check, in one piece of memory (see package flat):
// the nodes of a tree, each followed by what it asks. A node begins with its kind, field,
// operator and side, a byte each, and the length of the rest in four. That are the operands
// of a combination; a number of eight bytes; texts, each behind its length; or a list of
// patterns as it is compiled.
//
// It says of every frame what the [Program] of the same tree does.
type Compact struct{ flat string }

// Size is how many bytes it takes.
func (c Compact) Size() int { return len(c.flat) }

const compactHeader = 8

// AppendCompact appends the Compact of n, and returns an error where n asks what no check
// of a policy does.
func AppendCompact(b []byte, n *Node) ([]byte, error) {
	start := len(b)
	b = append(b, byte(n.Kind), byte(n.Field.ID), byte(n.Op), byte(n.Side), 0, 0, 0, 0)
	var err error
	if n.Kind == Leaf {
		b, err = appendLeaf(b, n)
	} else {
		b, err = appendOperands(b, n)
	}
	if err == nil {
		binary.LittleEndian.PutUint32(b[start+4:], fixed(len(b)-start-compactHeader))
	}
	return b, err
}

func appendOperands(b []byte, n *Node) (_ []byte, err error) {
	if n.Kind == Opaque {
		return nil, fmt.Errorf("a condition that is not known cannot be run")
	}
	for _, k := range n.Kids {
		if b, err = AppendCompact(b, k); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendLeaf(b []byte, n *Node) ([]byte, error) {
	text := n.Field.Kind == Text && n.Field.ID != MetadataValue
	switch {
	case n.Op == Exists && n.Field.ID != MetadataValue, n.Op == IsTrue:
		return b, nil
	case n.Op == ResourceGlob && n.Side != 0:
		list, err := glob.Compile(n.Texts(), n.Side)
		if err != nil {
			return nil, err
		}
		return append(b, list.Flat()...), nil
	case text && !n.isResource() && (n.Op == Eq || n.Op == In):
		for _, s := range n.Texts() {
			b = append(appendNumbers(b, len(s)), s...)
		}
		return b, nil
	case text && (n.Op == Glob || n.Op == ActionGlob || n.Op == ActionDenied):
		m, err := compileMatcher(n.Op, n.Texts(), n.Side)
		if err != nil {
			return nil, err
		}
		return append(b, m.(interface{ Flat() string }).Flat()...), nil //nolint:forcetypeassert // of each of these three
	case n.Field.Kind == Int && table[n.Op].order != nil:
		return binary.LittleEndian.AppendUint64(b, uint64(n.Values[0].Num)), nil //nolint:gosec // read as an int64
	}
	return nil, fmt.Errorf("no check asks %s of %s", table[n.Op].symbol, n.Field.Label())
}

// CutCompact returns the Compact that b begins with, and what follows it.
func CutCompact(b string) (Compact, string) {
	end := compactHeader + flat.Int(b, 4)
	return Compact{b[:end]}, b[end:]
}

// Eval asks c about f. An error means that it has no value, which no Compact that
// [AppendCompact] made is without.
func (c Compact) Eval(f *Frame) (holds bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			holds, err = false, fmt.Errorf("condition panicked: %v", r)
		}
	}()
	return c.holds(f), nil
}

func (c Compact) holds(f *Frame) bool {
	rest := c.flat[compactHeader:]
	switch kind := NodeKind(c.flat[0]); kind {
	case Leaf:
		return c.leaf(f, FieldID(c.flat[1]), Operator(c.flat[2]), rest)
	case Not:
		return !Compact{rest}.holds(f)
	default:
		decides := kind == Any
		for rest != "" {
			var k Compact
			if k, rest = CutCompact(rest); k.holds(f) == decides {
				return decides
			}
		}
		return !decides
	}
}

// leaf asks a leaf. A field that is missing makes it false.
func (c Compact) leaf(f *Frame, id FieldID, op Operator, operand string) bool {
	if op == ResourceGlob {
		list := glob.ListOf(operand)
		return list.Holds(&f.readings, c.side())
	}
	if !f.has(id) {
		return false
	}
	switch op {
	case Exists:
		return true
	case IsTrue:
		return f.numbers[id] != 0
	case Eq, In:
		if fields[id].kind == Text {
			return isOne(operand, f.texts[id])
		}
	case Glob:
		set := glob.ListOf(operand)
		return set.Match(f.texts[id]) >= 0
	case ActionGlob, ActionDenied:
		return actionAt(op, operand, f.texts[id]) >= 0
	}
	return table[op].order(cmp.Compare(f.numbers[id], int64(flat.Uint64(operand, 0)))) //nolint:gosec // written as one
}

// isOne reports whether s is one of texts, each behind its length.
func isOne(texts, s string) bool {
	for texts != "" {
		end := 4 + flat.Int(texts, 0)
		if texts[4:end] == s {
			return true
		}
		texts = texts[end:]
	}
	return false
}

// actionAt returns the index of the entry of a list that matches action, or -1.
func actionAt(op Operator, list, action string) int {
	if op == ActionDenied {
		denied := deniedActions{list}
		return denied.Match(action)
	}
	set := ActionSet{list}
	return set.Match(action)
}

func (c Compact) side() resource.Side { return resource.Side(c.flat[3]) }

// checkList is a list of patterns in a Compact. There is none where the operand is empty.
type checkList struct {
	op      Operator
	side    resource.Side
	operand string
}

// list returns the first list of patterns in c.
func (c Compact) list() (l checkList) {
	rest := c.flat[compactHeader:]
	if NodeKind(c.flat[0]) != Leaf {
		for rest != "" && l.operand == "" {
			var k Compact
			k, rest = CutCompact(rest)
			l = k.list()
		}
		return l
	}
	switch op := Operator(c.flat[2]); op {
	case ResourceGlob, ActionGlob, ActionDenied:
		return checkList{op, c.side(), rest}
	}
	return checkList{}
}

// Objected returns the index of the pattern of the first list of c that matches, and the
// readers of the resource to which it does; -1 where none does.
func (c Compact) Objected(f *Frame) (index int, by resource.Reader) {
	switch l := c.list(); {
	case l.operand == "":
		return -1, 0
	case l.op == ResourceGlob:
		list := glob.ListOf(l.operand)
		return list.FirstMatch(&f.readings)
	default:
		return actionAt(l.op, l.operand, f.texts[ActionType]), resource.Raw
	}
}

// Matching is what the first list of a check says of an intent.
type Matching struct {
	// Entries are the indices of the entries that match, ascending. Of resources they
	// match one reading at least.
	Entries []int
	// Reading is the reading of the resource that settles it: the first that an entry
	// blocks or, of a list that allows, the first that no entry covers. It is the zero
	// Reading where there is none.
	Reading resource.Reading
}

// Matching returns what the first list of c says of f.
func (c Compact) Matching(f *Frame) (m Matching) {
	add := func(index int) { m.Entries = append(m.Entries, index) }
	switch l := c.list(); {
	case l.operand == "":
	case l.op == ResourceGlob:
		l.reads(f, &m, add)
	case l.op == ActionDenied:
		denied := deniedActions{l.operand}
		denied.each(f.texts[ActionType], add)
	default:
		actions := ActionSet{l.operand}
		actions.each(f.texts[ActionType], add)
	}
	slices.Sort(m.Entries)
	m.Entries = slices.Compact(m.Entries)
	return m
}

func (l checkList) reads(f *Frame, m *Matching, add func(index int)) {
	list, stops := glob.ListOf(l.operand), resource.StopsAtSlash
	if l.side == resource.ForAllow {
		stops = f.readings.Stops()
	}
	for i := range f.readings.Len(l.side) {
		reading := f.readings.At(l.side, i)
		list.Each(reading, stops, add)
		if m.Reading.Readers == 0 && list.HoldsOf(reading, l.side, stops) == (l.side == resource.ForBlock) {
			m.Reading = reading
		}
	}
}
