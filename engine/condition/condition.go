package condition

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine/resource"
)

// forms is the end of error messages. It shows the four forms to an author who wrote something
// different.
const forms = `a condition is one of four forms: {"action_type":"deploy"}, ` +
	`{"all":[{"field":"action_type","op":"eq","value":"deploy"}]}, ` +
	`{"cel":"intent.cost.amount_minor > 5000"} or {"rego":"input.intent.cost.amount_minor > 5000"}`

// Condition is a compiled condition. It is immutable and safe for concurrent use.
type Condition struct {
	// Outcomes are exact, except for the parts of a CEL condition that a tree cannot express. Both
	// trees are opaque if the condition is in Rego.
	Outcomes
	// Demands are necessary conditions. Every intent for which the condition is true or an error
	// meets them all.
	Demands []Demand
	// ReadsResource says that the condition must be evaluated for each reading of the resource.
	ReadsResource bool
	// ReadsAgent says that the condition must be evaluated for each name of the agent.
	ReadsAgent bool
	// Program runs the condition. It is nil if the condition is in Rego.
	Program *Program
	// Lists has the names of the lists that the condition uses, sorted. It is empty for a condition
	// in Rego, whose lists package rego finds.
	Lists []string
	// Rego is the source of a condition in Rego. Package rego runs it.
	Rego string

	tree         *Node  // nil unless the condition is a match object or a tree
	cel          string // empty unless the condition is in CEL
	patternBytes int
	// Counters has the counters that the condition compares. No counter occurs twice.
	Counters []*Counter
}

// Options has the options for compiling a condition.
type Options struct {
	// Side is the side of the rule. It is ForBlock if the rule denies or asks for approval.
	Side resource.Side
	// Stored says that the condition was accepted before. Compile then skips the checks for likely
	// mistakes.
	Stored bool
}

// Compile returns the compiled condition of doc, a JSON document. Its error is an [*Error].
func Compile(doc string, o Options) (*Condition, error) {
	if o.Side != resource.ForBlock && o.Side != resource.ForAllow {
		return nil, errNoSide
	}
	root, err := decode(doc)
	if err != nil {
		return nil, err
	}
	c, err := compile(root, o)
	if err != nil {
		return nil, err
	}
	c.Demands = demandsOf(c.Fails, false)
	return c, nil
}

func compile(root jsonNode, o Options) (*Condition, error) {
	for _, form := range []string{"cel", "rego"} {
		source, ok := root.member(form)
		switch {
		case !ok:
		case len(root.members) > 1:
			return nil, refuse("", "%q stands alone, no other key may be beside it; %s", form, forms)
		case source.kind == '"' && strings.TrimSpace(source.text) == "":
			return nil, refuse("/"+form, "want a string that holds the source, it is empty")
		case source.kind != '"':
			return nil, refuse("/"+form, "want a string that holds the source, got %s", source.describe())
		case form == "cel":
			return compileCEL(source.text, o)
		default:
			return &Condition{Outcomes: unknown(), ReadsResource: true, ReadsAgent: o.Side == resource.ForBlock,
				Rego: source.text}, nil
		}
	}
	tree, patterns, err := parse(root, o.Stored)
	if err != nil {
		return nil, err
	}
	if err := tree.checkCounters(o.Side); err != nil {
		return nil, err
	}
	tree = tree.sided(o.Side)
	program, err := Plan(tree)
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	return &Condition{Outcomes: tree.outcomes(), Program: program, Lists: listsOf(tree), tree: tree,
		patternBytes: patterns.bytes, Counters: tree.counters(nil)}, nil
}

// Never returns a condition that is false for every intent. It has no program.
func Never() *Condition { return &Condition{Outcomes: Outcomes{Always(false), Always(false)}} }

// CEL returns the condition in CEL, or false if the condition is in Rego. The CEL of a match object
// or a tree ends in an error only if a comparison of decimals fails.
func (c *Condition) CEL() (string, bool) {
	if c.tree != nil {
		return c.tree.CEL(), true
	}
	return c.cel, c.cel != ""
}

// nodeBytes is the approximate size of a node of a tree and of the code that runs the node.
const nodeBytes = 200

// Bytes returns the approximate size of the condition in memory.
func (c *Condition) Bytes() int {
	return 3*len(c.cel) + len(c.Rego) + c.patternBytes + nodeBytes*(c.Holds.Count()+c.Fails.Count())
}

// Mistake is one mistake in a condition.
type Mistake struct {
	// At is the JSON pointer of the value in the condition. It is empty for the whole condition. If
	// Key is set, the mistake is in the value's name.
	At  string
	Key bool
	// Line and Column are a place in the value, if the value is a source text. Both count from 1,
	// columns in characters. Both are 0 if the mistake is about the whole source. File is the name
	// of the source's file, if the source is a file.
	Line, Column int
	File         string
	Message      string
}

// Error holds the mistakes in a condition.
type Error struct{ Mistakes []Mistake }

// Error implements error.
func (e *Error) Error() string {
	messages := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		messages[i] = m.String()
	}
	return strings.Join(messages, "; ")
}

// String returns the message. If the mistake has a place, the place comes first.
func (m Mistake) String() string {
	switch {
	case m.File != "":
		return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Message)
	case m.Line > 0 && m.At == "":
		return fmt.Sprintf("%d:%d: %s", m.Line, m.Column, m.Message)
	case m.Line > 0:
		return fmt.Sprintf("at %s, line %d, column %d: %s", m.At, m.Line, m.Column, m.Message)
	case m.At == "":
		return m.Message
	}
	return "at " + m.At + ": " + m.Message
}

// In returns e's mistakes for a value inside a document. at is the JSON pointer of that value.
func (e *Error) In(at string) *Error {
	moved := &Error{Mistakes: slices.Clone(e.Mistakes)}
	for i := range moved.Mistakes {
		moved.Mistakes[i].At = at + moved.Mistakes[i].At
	}
	return moved
}

// Add adds a mistake, unless e already has [MaxMistakes].
func (e *Error) Add(m Mistake) {
	if len(e.Mistakes) < MaxMistakes {
		e.Mistakes = append(e.Mistakes, m)
	}
}

// Err returns e, or nil if e has no mistakes.
func (e *Error) Err() error {
	if len(e.Mistakes) == 0 {
		return nil
	}
	return e
}

// add adds a mistake about the value at a JSON pointer.
func (e *Error) add(at, format string, args ...any) {
	e.Add(Mistake{At: at, Message: fmt.Sprintf(format, args...)})
}

func refuse(at, format string, args ...any) error {
	e := new(Error)
	e.add(at, format, args...)
	return e
}

// counters adds the tree's counters to all and returns the result. No counter occurs twice.
func (n *Node) counters(all []*Counter) []*Counter {
	if c := n.Field.Counter; c != nil {
		all = JoinCounter(all, c)
	}
	for _, k := range n.Kids {
		all = k.counters(all)
	}
	return all
}

// checkCounters refuses a comparison with a counter that would be too loose. A counter may be too
// high for a moment. So gt and gte may only make the outcome stricter when they are true. lt and
// lte may only make it stricter when they are false.
func (n *Node) checkCounters(side resource.Side) error {
	if n.Kind == Not {
		return n.Kids[0].checkCounters(side.Opposite())
	}
	if n.Field.Counter != nil && (n.Op == Gt || n.Op == Gte) != (side == resource.ForBlock) {
		want := "lt or lte"
		if side == resource.ForBlock {
			want = "gt or gte"
		}
		return refuse("",
			"a counter is compared with %s here: it may count more than there was for a moment, and must then be "+
				"strict", want)
	}
	for _, k := range n.Kids {
		if err := k.checkCounters(side); err != nil {
			return err
		}
	}
	return nil
}

// listsOf returns the names of the lists in a tree, sorted and each once.
func listsOf(n *Node) (names []string) {
	n.some(func(n *Node) bool {
		if (n.Op == InList || n.Op == InNames) && n.Kind == Leaf {
			names = append(names, n.Values[0].Str)
		}
		return false
	})
	slices.Sort(names)
	return slices.Compact(names)
}
