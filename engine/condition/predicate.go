package condition

import (
	"cmp"
	"strings"
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

// junction is a conjunction or a disjunction. As in CEL, an operand that decides wins
// over one that is an error, in either order.
type junction struct {
	kids    []predicate
	decides types.Bool
}

func (n *junction) ask(f *Frame) ref.Val {
	var failed ref.Val
	for _, k := range n.kids {
		switch v := k.ask(f); {
		case v == n.decides:
			return v
		case v != !n.decides && failed == nil:
			failed = v
		}
	}
	if failed != nil {
		return failed
	}
	return !n.decides
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
	key   string // of a MetadataValue
	// missing is the value of a comparison where the intent lacks the field: false in
	// match objects and trees, an error in CEL.
	missing ref.Val
}

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

type presence struct{ src source }

func (n *presence) ask(f *Frame) ref.Val {
	if n.src.field == MetadataValue {
		_, ok := f.metadata[n.src.key]
		return types.Bool(ok)
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
	if !f.has(n.src.field) {
		return n.src.missing
	}
	return types.Bool(n.holds(cmp.Compare(f.numbers[n.src.field], n.want)))
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

type equality struct {
	src  source
	want string
}

func (n *equality) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	return types.Bool(got == n.want)
}

// textOrder orders by bytes.
type textOrder struct {
	src   source
	holds func(c int) bool
	want  string
}

func (n *textOrder) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	return types.Bool(n.holds(compareText(got, n.want)))
}

func compareText(a, b string) int { return strings.Compare(a, b) }

type decimalOrder struct {
	src   source
	holds func(c int) bool
	want  decimal
}

func (n *decimalOrder) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	d, ok := parseDecimal(got)
	if !ok {
		return notDecimal
	}
	return types.Bool(n.holds(d.compare(n.want)))
}

type affix struct {
	src   source
	want  string
	holds func(s, want string) bool
}

// searchSteps is how many bytes of a text are searched in one step.
const searchSteps = 64

func (n *affix) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	switch {
	case missing != nil:
		return missing
	case !f.Work.Charge(len(got) / searchSteps):
		return tooMuchWork
	}
	return types.Bool(n.holds(got, n.want))
}

// membership is `field in [constants]`.
type membership struct {
	src source
	set map[string]struct{}
}

func (n *membership) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	_, ok := n.set[got]
	return types.Bool(ok)
}

// match asks patterns.
type match struct {
	src source
	m   matcher
}

func (n *match) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	return f.match(n.m, got)
}

// sizeOrder compares how many items a text has.
type sizeOrder struct {
	src   source
	holds func(c int) bool
	want  int
}

func (n *sizeOrder) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	items, failed := f.items(got)
	if failed != nil {
		return failed
	}
	return types.Bool(n.holds(cmp.Compare(len(items), n.want)))
}

// quantifier asks each item of a text, or some. As in CEL's macros, an item that
// decides wins over one that is an error.
type quantifier struct {
	src   source
	every bool
	of    predicate
}

func (n *quantifier) ask(f *Frame) ref.Val {
	got, missing := n.src.text(f)
	if missing != nil {
		return missing
	}
	items, failed := f.items(got)
	if failed != nil {
		return failed
	}
	decides := types.Bool(!n.every)
	for _, item := range items {
		f.texts[Item] = item
		switch v := n.of.ask(f); {
		case v == decides:
			return v
		case v != !decides && failed == nil:
			failed = v
		}
	}
	if failed != nil {
		return failed
	}
	return !decides
}

// readings asks something of the readings of the resource: whether it holds of
// one that a block looks at or, where every is set, of all that an allowance has to
// cover.
type readings struct {
	every bool
	// list is set for globs and equality, re for regular expressions, else holds is
	// asked of each text.
	list    *glob.List
	re      *regex
	holds   func(text string) bool
	program *Program
}

func (n *readings) ask(f *Frame) ref.Val {
	if n.every {
		return n.askEvery(f)
	}
	for i := range f.readings.BlockLen() {
		reading := f.readings.BlockAt(i)
		if !n.charge(f, reading.Text) {
			return tooMuchWork
		}
		if n.matchesAny(f, reading) {
			return types.True
		}
	}
	return types.False
}

func (n *readings) askEvery(f *Frame) ref.Val {
	stops := f.readings.Stops()
	for i := range f.readings.AllowLen() {
		reading := f.readings.AllowAt(i)
		if !n.charge(f, reading.Text) {
			return tooMuchWork
		}
		if !n.matchesEvery(f, reading, stops) {
			return types.False
		}
	}
	return types.Bool(f.readings.AllowLen() > 0)
}

// charge charges what asking a text takes, where the conditions of rules share a
// budget.
func (n *readings) charge(f *Frame, text string) bool {
	switch {
	case !n.program.charged:
		return true
	case n.list != nil:
		return f.Work.Charge(n.list.Steps(text))
	case n.re != nil:
		return f.Work.Charge(n.re.Steps(text))
	}
	return f.Work.Charge(1 + len(text)/searchSteps)
}

func (n *readings) matchesAny(f *Frame, reading resource.Reading) bool {
	if n.list == nil {
		return n.asked(f, reading.Text)
	}
	i, _ := n.list.MatchAny(reading)
	return i >= 0
}

func (n *readings) matchesEvery(f *Frame, reading resource.Reading, stops resource.Stops) bool {
	if n.list == nil {
		return n.asked(f, reading.Text)
	}
	return n.list.MatchEvery(reading, stops)
}

func (n *readings) asked(f *Frame, text string) bool {
	if n.re != nil {
		return n.re.matches(&f.Work, text)
	}
	return n.holds(text)
}

// reading is resource_glob on intent.resource, which is one reading at a time.
type reading struct{ list *glob.List }

func (n *reading) ask(f *Frame) ref.Val {
	if !f.Work.Charge(n.list.Steps(f.reading.Text)) {
		return tooMuchWork
	}
	if f.every {
		return types.Bool(n.list.MatchEvery(f.reading, f.readings.Stops()))
	}
	i, _ := n.list.MatchAny(f.reading)
	return types.Bool(i >= 0)
}
