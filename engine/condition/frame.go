package condition

import (
	"sync"
	"time"

	"writ.example/writ/engine/resource"
)

// Frame holds the values of one evaluation. Every program of a policy and of its rules reads the
// same frame. Only one goroutine at a time may use a frame.
type Frame struct {
	// Work counts the work of the conditions.
	Work Work

	texts    [fieldCount]string
	numbers  [fieldCount]int64
	absent   [fieldCount]bool
	metadata map[string]string
	counts   []Count
	readings resource.Readings
	reading  resource.Reading // the current value of Resource
	lists    Lists
	values   []readValue
	element  *Element // the current value of Item
	names    Names
	// issuedAt is IssuedAt as a time, zero until it is first read.
	issuedAt, decidedAt time.Time
	cel                 celFrame
}

var frames = sync.Pool{New: func() any { return new(Frame) }}

// NewFrame returns a frame without values. Free it after use.
func NewFrame() *Frame { return frames.Get().(*Frame) } //nolint:forcetypeassert // the pool has no other

// Free gives the frame back. The frame must not be used afterwards.
func (f *Frame) Free() {
	*f = Frame{cel: celFrame{exec: f.cel.exec}}
	frames.Put(f)
}

// SetText sets a field that holds text. If s is empty and the field is optional, the field is
// absent.
func (f *Frame) SetText(id FieldID, s string) {
	f.texts[id] = s
	f.absent[id] = s == "" && fields[id].optional
	if id == AgentID {
		f.texts[AgentName] = s
	}
}

// SetNames sets the names of the agent. Without it, the agent has the name in AgentID alone.
func (f *Frame) SetNames(n Names) { f.names = n }

// Names returns the names of the agent.
func (f *Frame) Names() *Names {
	if f.names.called == 0 {
		f.names = NamesOf(f.texts[AgentID], "", "")
	}
	return &f.names
}

// SetAgent makes name the value of AgentID and GovernedAgentID until the next call.
func (f *Frame) SetAgent(name string) {
	for _, id := range [...]FieldID{AgentID, GovernedAgentID} {
		if f.texts[id] != name {
			f.cel.boxed[id] = nil
		}
		f.SetText(id, name)
	}
}

// SetInt sets a field that holds an integer, or a boolean: 0 is false, 1 is true.
func (f *Frame) SetInt(id FieldID, n int64) { f.numbers[id] = n }

// SetMetadata sets the metadata. If m is nil, the intent has no metadata.
func (f *Frame) SetMetadata(m map[string]string) { f.metadata, f.absent[Metadata] = m, m == nil }

// SetLists sets the organization's lists.
func (f *Frame) SetLists(l Lists) { f.lists = l }

// SetCounts sets the values of the counters.
func (f *Frame) SetCounts(counts []Count) { f.counts = counts }

// count returns the value of the counter with key. It may be [Uncounted].
func (f *Frame) count(key string) (int64, *EvalError) {
	for i := range f.counts {
		if f.counts[i].Counter.Key == key {
			if until := f.counts[i].Until; !until.IsZero() {
				return 0, filling(until)
			}
			return f.counts[i].N, nil
		}
	}
	return 0, errNoCount
}

// SetAbsent marks optional fields as absent.
func (f *Frame) SetAbsent(ids ...FieldID) {
	for _, id := range ids {
		f.absent[id] = true
	}
}

// SetResource sets the resource as the caller wrote it.
func (f *Frame) SetResource(s string) {
	f.texts[Resource], f.reading = s, resource.Reading{Text: s, Readers: resource.All}
}

// SetReadings sets the readings of the resource.
func (f *Frame) SetReadings(r resource.Readings) { f.readings = r }

// Readings returns the readings of the resource.
func (f *Frame) Readings() *resource.Readings { return &f.readings }

// Reading returns the reading for which conditions are evaluated.
func (f *Frame) Reading() resource.Reading { return f.reading }

// SetReading makes r the value of Resource until the next call.
func (f *Frame) SetReading(r resource.Reading) {
	if r.Text != f.reading.Text {
		f.cel.boxed[Resource] = nil
	}
	f.texts[Resource], f.reading = r.Text, r
}

// Text returns the value of a field that holds text, or false if the intent lacks the field.
func (f *Frame) Text(id FieldID) (string, bool) { return f.texts[id], f.has(id) }

// Metadata returns the intent's metadata.
func (f *Frame) Metadata() map[string]string { return f.metadata }

func (f *Frame) has(id FieldID) bool { return !f.absent[id] }

// SetDecidedAt sets the time of the decision. If at is zero, every condition that reads it is an
// error.
func (f *Frame) SetDecidedAt(at time.Time) { f.decidedAt = at }

// time returns the value of a field that holds a time, or false if it has none.
func (f *Frame) time(id FieldID) (time.Time, bool) {
	if id == DecidedAt {
		return f.decidedAt, !f.decidedAt.IsZero()
	}
	if f.issuedAt.IsZero() {
		at, err := ParseTime(f.texts[IssuedAt])
		if err != nil {
			return time.Time{}, false
		}
		f.issuedAt = at
	}
	return f.issuedAt, true
}

// YieldEvery is the number of steps after which an evaluation offers its turn again: some 130 µs.
const YieldEvery = 1 << 14

// Turn is the right to run. Evaluations share it.
type Turn interface {
	// Yield lets other evaluations run if it is their turn, and returns the time that they took.
	Yield() time.Duration
	// Pause gives the right back while the caller waits, for example for I/O. Resume waits until
	// the caller has the right again. Each reports whether it changed anything. A caller resumes
	// only if its own Pause changed something.
	Pause() bool
	Resume() bool
}

// Paused pauses t until resume is called. If t is nil, neither does anything.
func Paused(t Turn) (resume func()) {
	if t == nil || !t.Pause() {
		return func() {}
	}
	return func() { t.Resume() }
}

// Work counts the steps of the conditions of one evaluation.
type Work struct {
	done   int
	yields int             // the value of done at which the turn is offered next
	turn   Turn            // nil: not shared
	end    <-chan struct{} // nil: no request waits for the evaluation
	ended  bool
}

// NewWork returns the work of a new evaluation. end is closed when the request that waits for the
// evaluation ends. t and end may be nil.
func NewWork(t Turn, end <-chan struct{}) Work { return Work{turn: t, end: end, yields: YieldEvery} }

// Charge adds steps, which is at least 0, and reports whether the budget allows them. Other
// evaluations may run before it returns. After the request has ended nothing is allowed: see
// [Work.Ended].
func (w *Work) Charge(steps int) bool {
	w.done += min(steps, maxWork+1)
	if w.done >= w.yields && w.yields > 0 {
		w.yields = w.done + YieldEvery
		w.offer()
	}
	return w.done <= maxWork && !w.ended
}

// offer lets other evaluations run if it is their turn. Then it looks whether the request has ended.
func (w *Work) offer() {
	if w.turn != nil {
		w.turn.Yield()
	}
	select {
	case <-w.end:
		w.ended = true
	default:
	}
}

// Ended reports whether the request ended while a condition was running. Then the results of the
// conditions mean nothing, because time alone refused them.
func (w *Work) Ended() bool { return w.ended }

// Left returns the number of steps that the budget still allows.
func (w *Work) Left() int { return max(0, maxWork-w.done) }
