package condition

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"writ/engine/resource"
)

// Frame holds the values of one evaluation: every program of a policy and of its rules
// reads the same frame. One goroutine at a time uses it. Take it from [NewFrame].
type Frame struct {
	// Work is what the conditions did together.
	Work Work
	// Spent is how long those in Rego took.
	Spent time.Duration

	texts    [fieldCount]string
	numbers  [fieldCount]int64
	absent   [fieldCount]bool
	metadata map[string]string
	counts   []Count
	readings resource.Readings
	reading  resource.Reading // the value of Resource
	lists    Lists
	// exec and boxed are for CEL: boxed are the values that an expression asked for as
	// CEL values, made at most once per evaluation.
	exec  *interpreter.ExecutionFrame
	boxed [fieldCount]ref.Val
}

var frames = sync.Pool{New: func() any {
	f := new(Frame)
	f.exec = &interpreter.ExecutionFrame{Activation: f}
	return f
}}

// NewFrame returns a frame without values. Free it after use.
func NewFrame() *Frame { return frames.Get().(*Frame) } //nolint:forcetypeassert // the pool has no other

// Free gives the frame back, which must not be used afterwards.
func (f *Frame) Free() {
	*f = Frame{exec: f.exec}
	frames.Put(f)
}

// SetText sets a field that holds text. An optional one that is empty is absent.
func (f *Frame) SetText(id FieldID, s string) {
	f.texts[id] = s
	f.absent[id] = s == "" && fields[id].optional
}

// SetInt sets a field that holds an integer, or one of which 0 is false and 1 true.
func (f *Frame) SetInt(id FieldID, n int64) { f.numbers[id] = n }

// SetMetadata sets the metadata; nil is none.
func (f *Frame) SetMetadata(m map[string]string) { f.metadata, f.absent[Metadata] = m, m == nil }

// SetLists sets the lists that conditions look in.
func (f *Frame) SetLists(l Lists) { f.lists = l }

// SetCounts sets what the counters have come to.
func (f *Frame) SetCounts(counts []Count) { f.counts = counts }

// count returns what the counter of a key has come to, or what a comparison with it is
// then.
func (f *Frame) count(key string, uncounted ref.Val) (int64, ref.Val) {
	for i := range f.counts {
		switch c := &f.counts[i]; {
		case c.Counter.Key != key:
		case c.N == Uncounted:
			return 0, uncounted
		default:
			return c.N, nil
		}
	}
	return 0, noCount
}

// SetAbsent says that the intent has none of an optional field.
func (f *Frame) SetAbsent(ids ...FieldID) {
	for _, id := range ids {
		f.absent[id] = true
	}
}

// SetResource sets the resource as it was written.
func (f *Frame) SetResource(s string) {
	f.texts[Resource], f.reading = s, resource.Reading{Text: s, Readers: resource.All}
}

// SetReadings sets the readings of the resource.
func (f *Frame) SetReadings(r resource.Readings) { f.readings = r }

// Readings are those of the resource.
func (f *Frame) Readings() *resource.Readings { return &f.readings }

// Reading returns the reading that a condition is asked for.
func (f *Frame) Reading() resource.Reading { return f.reading }

// SetReading makes r the value of Resource until it is set again.
func (f *Frame) SetReading(r resource.Reading) {
	if r.Text != f.reading.Text {
		f.boxed[Resource] = nil
	}
	f.texts[Resource], f.reading = r.Text, r
}

// Text returns the value of a field that holds text, or false where the intent lacks it.
func (f *Frame) Text(id FieldID) (string, bool) { return f.texts[id], f.has(id) }

// Metadata returns the intent's metadata.
func (f *Frame) Metadata() map[string]string { return f.metadata }

func (f *Frame) has(id FieldID) bool { return !f.absent[id] }

// items returns the items of a text, at the charge of what is done with each.
func (f *Frame) items(text string) ([]string, ref.Val) {
	items := itemsOf(text)
	if !f.Work.Charge(len(text) + itemSteps*len(items)) {
		return nil, tooMuchWork
	}
	return items, nil
}

// Parent implements [interpreter.Activation].
func (f *Frame) Parent() interpreter.Activation { return nil }

// ResolveName implements [interpreter.Activation].
func (f *Frame) ResolveName(name string) (any, bool) {
	path, presence := strings.CutPrefix(name, presenceOfField)
	field, ok := fieldByPath(path)
	switch {
	case !ok:
		return nil, false
	case presence:
		return types.Bool(f.has(field.ID)), true
	}
	return f.box(field.ID), true
}

// box returns the CEL value of a variable, or a CEL error where it has none.
func (f *Frame) box(id FieldID) ref.Val {
	if f.boxed[id] == nil {
		f.boxed[id] = f.value(id)
	}
	return f.boxed[id]
}

func (f *Frame) value(id FieldID) ref.Val {
	switch row := &fields[id]; {
	case id == Metadata:
		return newOrderedMetadata(f.metadata)
	case !f.has(id):
		return FieldOf(id).missing()
	case row.kind == Time:
		t, err := ParseTime(f.texts[id])
		if err != nil {
			return types.NewErr("%s is not an RFC 3339 time", row.path)
		}
		return types.Timestamp{Time: t}
	case row.kind == Bool:
		return types.Bool(f.numbers[id] != 0)
	case row.kind == Int:
		return types.Int(f.numbers[id])
	}
	return types.String(f.texts[id])
}

// yieldEvery is how many steps conditions do between two offers to yield: some
// 130 µs.
const yieldEvery = 1 << 14

// Turn is the right to run, which an evaluation shares with others.
type Turn interface {
	// Yield lets others run where it is their turn, and returns how long that took.
	Yield() time.Duration
	// Pause gives the right back while something else than a processor is waited for, or
	// the work of others. Resume waits for it again. Each reports whether it changed
	// anything: what calls one undoes it where it did.
	Pause() bool
	Resume() bool
}

// Paused pauses t, if there is one, until resume is called.
func Paused(t Turn) (resume func()) {
	if t == nil || !t.Pause() {
		return func() {}
	}
	return func() { t.Resume() }
}

// Work is what the conditions of one evaluation did together, in steps.
type Work struct {
	done    int
	turn    Turn // nil: not shared
	yields  int  // what done has to reach for the next offer
	yielded time.Duration
}

// NewWork returns the work of an evaluation that begins.
func NewWork(t Turn) Work { return Work{turn: t, yields: yieldEvery} }

// Charge adds steps, of which there are at least 0, and reports whether they may
// be done. Others may run before it returns.
func (w *Work) Charge(steps int) bool {
	w.done += min(steps, maxWork+1)
	if w.turn != nil && w.done >= w.yields {
		w.yields = w.done + yieldEvery
		w.offer()
	}
	return w.done <= maxWork
}

// offer lets others run where it is their turn. The turn is not nil.
func (w *Work) offer() { w.yielded += w.turn.Yield() }

// Left is how many steps may still be done.
func (w *Work) Left() int { return max(0, maxWork-w.done) }

// Yielded is how long others ran, which is none of the evaluation's time.
func (w *Work) Yielded() time.Duration { return w.yielded }

// match reports whether one of m's patterns matches s, at their charge.
func (f *Frame) match(m matcher, s string) ref.Val {
	if !f.Work.Charge(m.Steps(s)) {
		return tooMuchWork
	}
	if re, ok := m.(*regex); ok {
		return types.Bool(re.matches(&f.Work, s))
	}
	return types.Bool(m.Match(s) >= 0)
}

// orderedMetadata is the metadata as a CEL map that macros walk in the order of
// its keys. Go's order differs each time, and with it how much of the work is done
// before a macro ends early: the same intent could be decided differently.
type orderedMetadata struct {
	traits.Mapper
	metadata map[string]string
	keys     traits.Lister // nil until the first macro asks: most conditions ask for keys by name
}

func newOrderedMetadata(m map[string]string) *orderedMetadata {
	return &orderedMetadata{
		Mapper:   types.NewStringStringMap(types.DefaultTypeAdapter, m),
		metadata: m,
	}
}

// Iterator implements [traits.Iterable].
func (m *orderedMetadata) Iterator() traits.Iterator {
	if m.keys == nil {
		m.keys = types.NewStringList(types.DefaultTypeAdapter, slices.Sorted(maps.Keys(m.metadata)))
	}
	return m.keys.Iterator()
}
