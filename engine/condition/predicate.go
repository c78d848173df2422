package condition

import (
	"cmp"
	"fmt"
	"time"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// predicate is a compiled node.
type predicate interface {
	ask(f *Frame) result
}

// result is the value of a predicate: false, true, or a failure.
type result struct {
	holds  bool
	failed *EvalError // the reason why it has no value
}

func is(holds bool) result { return result{holds: holds} }

func failing(why *EvalError) result { return result{failed: why} }

// tally combines the results of operands. As in CEL, the order does not matter: one operand with
// the value decides is enough, even if others failed.
type tally struct {
	decides, decided bool
	failed           *EvalError
}

// add adds a result, and reports whether r decides.
func (t *tally) add(r result) bool {
	switch {
	case r.failed == nil:
		t.decided = r.holds == t.decides
	case t.failed == nil:
		t.failed = r.failed
	}
	return t.decided
}

func (t *tally) result() result {
	switch {
	case t.decided:
		return is(t.decides)
	case t.failed != nil:
		return failing(t.failed)
	}
	return is(!t.decides)
}

// junction is a conjunction or a disjunction. A false operand decides a conjunction, a true
// operand decides a disjunction.
type junction struct {
	kids    []predicate
	decides bool
}

func (n *junction) ask(f *Frame) result {
	t := tally{decides: n.decides}
	for _, k := range n.kids {
		if t.add(k.ask(f)) {
			break
		}
	}
	return t.result()
}

type negation struct{ of predicate }

func (n *negation) ask(f *Frame) result {
	r := n.of.ask(f)
	r.holds = r.failed == nil && !r.holds
	return r
}

// source is the field from which a predicate reads its operand.
type source struct {
	field FieldID
	key   string // of a MetadataValue or a CounterValue
	// missing is the result if the intent lacks the field: false in match objects and trees, a
	// failure in CEL.
	missing result
}

func (s *source) text(f *Frame) (text string, ok bool) {
	if s.field == MetadataValue {
		text, ok = f.metadata[s.key]
		return text, ok
	}
	return f.texts[s.field], f.has(s.field)
}

// presence is true if the intent has the field.
type presence struct{ src source }

func (n *presence) ask(f *Frame) result {
	switch n.src.field {
	case MetadataValue:
		_, ok := f.metadata[n.src.key]
		return is(ok)
	case CounterValue:
		count, failed := f.count(n.src.key)
		return result{count != Uncounted, failed}
	}
	return is(f.has(n.src.field))
}

// flag is the value of a boolean field.
type flag struct{ src source }

func (n *flag) ask(f *Frame) result { return is(f.numbers[n.src.field] != 0) }

type intOrder struct {
	src   source
	holds func(c int) bool
	want  int64
}

func (n *intOrder) ask(f *Frame) result {
	got, ok := f.numbers[n.src.field], f.has(n.src.field)
	if n.src.field == CounterValue {
		count, failed := f.count(n.src.key)
		if failed != nil {
			return failing(failed)
		}
		got, ok = count, count != Uncounted
	}
	if !ok {
		return n.src.missing
	}
	return is(n.holds(cmp.Compare(got, n.want)))
}

type timeOrder struct {
	field FieldID
	holds func(c int) bool
	want  time.Time
}

func (n *timeOrder) ask(f *Frame) result {
	got, ok := f.time(n.field)
	if !ok {
		return failing(errNoResult)
	}
	return is(n.holds(got.Compare(n.want)))
}

// membership is true if the text of a field is in a set.
type membership struct {
	src  source
	one  string
	many map[string]struct{} // nil if the set has only one text
}

func (n *membership) ask(f *Frame) result {
	s, ok := n.src.text(f)
	switch {
	case !ok:
		return n.src.missing
	case n.many == nil:
		return is(s == n.one)
	}
	if !f.Work.Charge(len(s) / searchSteps) {
		return failing(ErrTooMuchWork)
	}
	_, ok = n.many[s]
	return is(ok)
}

// test is a test of a text.
type test func(f *Frame, s string) result

// ofText tests the text of a field that the intent has.
type ofText struct {
	src        source
	test       test
	notDecimal *EvalError // replaces errNotDecimal, which does not name the field
}

func (n *ofText) ask(f *Frame) result {
	s, ok := n.src.text(f)
	if !ok {
		return n.src.missing
	}
	r := n.test(f, s)
	if r.failed == errNotDecimal {
		r.failed = n.notDecimal
	}
	return r
}

// readings tests the readings of the resource that side looks at.
type readings struct {
	side resource.Side
	// list is set for globs and equality. Without it, test tests the text of each reading.
	list *glob.List
	test test
}

func (n *readings) ask(f *Frame) result {
	if n.side != resource.ForBlock && n.side != resource.ForAllow {
		return failing(errNoSide)
	}
	decides := n.side == resource.ForBlock
	for i := range f.readings.Len(n.side) {
		if r := n.one(f, f.readings.At(n.side, i)); r.failed != nil || r.holds == decides {
			return r
		}
	}
	return is(!decides && f.readings.Len(n.side) > 0)
}

func (n *readings) one(f *Frame, r resource.Reading) result {
	switch {
	case n.list != nil:
		return f.match(n.list, r)
	case !f.Work.Charge(1 + len(r.Text)/searchSteps):
		return failing(ErrTooMuchWork)
	}
	return n.test(f, r.Text)
}

// reading is resource_glob on intent.resource, which has one reading at a time.
type reading struct{ list *glob.List }

func (n *reading) ask(f *Frame) result { return f.match(n.list, f.reading) }

// match matches a reading with list and charges the work.
func (f *Frame) match(list *glob.List, r resource.Reading) result {
	if !f.Work.Charge(list.Steps(r.Text)) {
		return failing(ErrTooMuchWork)
	}
	return is(list.HoldsOf(r, f.readings.Stops()))
}

// Eval evaluates the program for f. If there is an error, the condition has no value.
func (p *Program) Eval(f *Frame) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = false, fmt.Errorf("condition panicked: %v", r)
		}
	}()
	if !f.Work.Charge(p.load) {
		return false, ErrTooMuchWork
	}
	r := p.root.ask(f)
	if r.failed != nil {
		return false, r.failed
	}
	return r.holds, nil
}
