package condition

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"writ/engine/glob"
	"writ/engine/resource"
)

// predicate is a compiled node. It is true or false of a frame, or an error of CEL's.
type predicate interface {
	ask(f *Frame) ref.Val
}

// tally combines the values of operands. As in CEL, one that decides wins over one that
// is an error, in either order.
type tally struct {
	decides types.Bool
	decided bool
	failed  ref.Val
}

// add adds a value, and reports whether it decides.
func (t *tally) add(v ref.Val) bool {
	t.decided = v == t.decides
	if !t.decided && v != !t.decides && t.failed == nil {
		t.failed = v
	}
	return t.decided
}

func (t *tally) result() ref.Val {
	switch {
	case t.decided:
		return t.decides
	case t.failed != nil:
		return t.failed
	}
	return !t.decides
}

// junction is a conjunction, which a false operand decides, or a disjunction.
type junction struct {
	kids    []predicate
	decides types.Bool
}

func (n *junction) ask(f *Frame) ref.Val {
	t := tally{decides: n.decides}
	for _, k := range n.kids {
		if t.add(k.ask(f)) {
			break
		}
	}
	return t.result()
}

type negation struct{ of predicate }

func (n *negation) ask(f *Frame) ref.Val {
	v := n.of.ask(f)
	if b, ok := v.(types.Bool); ok {
		return !b
	}
	return v
}

// source is where a predicate reads its operand.
type source struct {
	field FieldID
	key   string // of a MetadataValue or a CounterValue
	// missing is the value of a comparison where the intent lacks the field: false in
	// match objects and trees, an error in CEL.
	missing ref.Val
}

// errorIfMissing is a source of CEL.
func errorIfMissing(f Field) source { return source{field: f.ID, key: f.Key, missing: f.missing()} }

// text reads a text, or returns what is true then.
func (s *source) text(f *Frame) (string, ref.Val) {
	if s.field == MetadataValue {
		if v, ok := f.metadata[s.key]; ok {
			return v, nil
		}
		return "", s.missing
	}
	if !f.has(s.field) {
		return "", s.missing
	}
	return f.texts[s.field], nil
}

// number reads a number, or returns what is true then.
func (s *source) number(f *Frame) (int64, ref.Val) {
	switch {
	case s.field == CounterValue:
		return f.count(s.key, s.missing)
	case !f.has(s.field):
		return 0, s.missing
	}
	return f.numbers[s.field], nil
}

type presence struct{ src source }

func (n *presence) ask(f *Frame) ref.Val {
	switch n.src.field {
	case MetadataValue:
		_, ok := f.metadata[n.src.key]
		return types.Bool(ok)
	case CounterValue:
		if _, other := f.count(n.src.key, types.False); other != nil {
			return other
		}
		return types.True
	}
	return types.Bool(f.has(n.src.field))
}

// flag is a boolean.
type flag struct{ src source }

func (n *flag) ask(f *Frame) ref.Val { return types.Bool(f.numbers[n.src.field] != 0) }

type intOrder struct {
	src   source
	holds func(c int) bool
	want  int64
}

func (n *intOrder) ask(f *Frame) ref.Val {
	got, missing := n.src.number(f)
	if missing != nil {
		return missing
	}
	return types.Bool(n.holds(cmp.Compare(got, n.want)))
}

type timeOrder struct {
	holds func(c int) bool
	want  time.Time
}

func (n *timeOrder) ask(f *Frame) ref.Val {
	got, ok := f.box(IssuedAt).(types.Timestamp)
	if !ok {
		return f.box(IssuedAt)
	}
	return types.Bool(n.holds(got.Time.Compare(n.want)))
}

// ofText asks something of a text that is there.
type ofText struct {
	src   source
	holds func(f *Frame, s string) ref.Val
}

func (n *ofText) ask(f *Frame) ref.Val {
	s, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	return n.holds(f, s)
}

// searchSteps is how many bytes of a text are searched in one step.
const searchSteps = 64

// membership is whether a text is one, or one of several.
type membership struct {
	src  source
	one  string
	many map[string]struct{} // nil where there is one
}

func (n *membership) ask(f *Frame) ref.Val {
	s, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	if n.many == nil {
		return types.Bool(s == n.one)
	}
	_, ok := n.many[s]
	return types.Bool(ok)
}

// readings asks something of the readings of the resource that its side asks.
type readings struct {
	side resource.Side
	// list is set for globs and equality, re for regular expressions. Otherwise holds is
	// asked of each text.
	list  *glob.List
	re    *regex
	holds func(text string) bool
}

func (n *readings) ask(f *Frame) ref.Val {
	if n.side != resource.ForBlock && n.side != resource.ForAllow {
		return noSide
	}
	decides, stops := n.side == resource.ForBlock, f.readings.Stops()
	for i := range f.readings.Len(n.side) {
		reading := f.readings.At(n.side, i)
		if !n.charge(f, reading.Text) {
			return tooMuchWork
		}
		if n.holdsOf(f, reading, stops) == decides {
			return types.Bool(decides)
		}
	}
	return types.Bool(!decides && f.readings.Len(n.side) > 0)
}

// charge charges what asking a text takes.
func (n *readings) charge(f *Frame, text string) bool {
	switch {
	case n.list != nil:
		return f.Work.Charge(n.list.Steps(text))
	case n.re != nil:
		return f.Work.Charge(n.re.Steps(text))
	}
	return f.Work.Charge(1 + len(text)/searchSteps)
}

func (n *readings) holdsOf(f *Frame, reading resource.Reading, stops resource.Stops) bool {
	switch {
	case n.list != nil:
		return n.list.HoldsOf(reading, stops)
	case n.re != nil:
		return n.re.matches(&f.Work, reading.Text)
	}
	return n.holds(reading.Text)
}

// reading is resource_glob on intent.resource, which is one reading at a time.
type reading struct{ list *glob.List }

func (n *reading) ask(f *Frame) ref.Val {
	if !f.Work.Charge(n.list.Steps(f.reading.Text)) {
		return tooMuchWork
	}
	return types.Bool(n.list.HoldsOf(f.reading, f.readings.Stops()))
}

// listed is whether one of a list of patterns matches a text that is no reading.
type listed struct {
	src source
	m   matcher
}

func (n *listed) ask(f *Frame) ref.Val {
	s, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	return f.match(n.m, s)
}

// truthOf returns what a value of CEL says.
func truthOf(v ref.Val) (bool, error) {
	switch v := v.(type) {
	case types.Bool:
		return bool(v), nil
	case *types.Err:
		return false, v
	}
	return false, fmt.Errorf("condition is a %s, want a bool", v.Type().TypeName())
}

// Eval asks the program about f. An error means that the condition has no value.
func (p *Program) Eval(f *Frame) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = false, fmt.Errorf("condition panicked: %v", r)
		}
	}()
	if !f.Work.Charge(p.load) {
		return false, ErrTooMuchWork
	}
	return truthOf(p.root.ask(f))
}
