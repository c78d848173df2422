package condition

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"writ/engine/glob"
	"writ/engine/resource"
)

// Program is a condition that can be asked. It is immutable and safe for concurrent use.
type Program struct {
	root predicate
	// actions is the first list of action types that planning compiled, and list the
	// first that the readings of the resource are asked of: which pattern matched is
	// asked of them.
	actions matcher
	list    *glob.List
	// use is what the lists of patterns in a condition in CEL do.
	use glob.Use
	// load is charged whenever the program runs, and charged says whether its lists of
	// patterns are.
	load    int
	charged bool
}

// nodeSteps is how many steps a node of a tree takes beside its patterns.
const nodeSteps = 4

// Plan returns the program that asks n, in which nothing is opaque. It says of every
// intent what the CEL of n does: CEL's own evaluation of that is several times slower.
func Plan(n *Node) (*Program, error) {
	p := &Program{load: nodeSteps * n.Count()}
	var err error
	p.root, err = p.plan(n)
	return p, err
}

func (p *Program) plan(n *Node) (predicate, error) {
	if n.Kind == Leaf {
		return p.leaf(n)
	}
	kids := make([]predicate, len(n.Kids))
	for i, k := range n.Kids {
		var err error
		if kids[i], err = p.plan(k); err != nil {
			return nil, err
		}
	}
	switch n.Kind {
	case All:
		return &junction{kids: kids, decides: types.False}, nil
	case Any:
		return &junction{kids: kids, decides: types.True}, nil
	case Not:
		return &negation{kids[0]}, nil
	}
	return nil, fmt.Errorf("a condition that is not known cannot be run")
}

// leaf returns what asks a leaf. A field that is missing makes it false.
func (p *Program) leaf(n *Node) (predicate, error) {
	src := falseIfMissing(n.Field)
	switch {
	case n.Op == Exists:
		return &presence{src}, nil
	case n.Op == IsTrue:
		return &flag{src}, nil
	case n.isResource() && n.Reads != ReadsOne:
		return p.readings(n.Op, n.Texts(), n.Reads == ReadsEvery)
	case n.Op == Every || n.Op == Some:
		of, err := p.plan(n.Kids[0])
		return quantifier(src, n.Op == Every, of), err
	}
	return p.comparison(src, n.Field.Kind, n.Op, n.Values)
}

// comparison returns what compares a source, read as kind, with values.
func (p *Program) comparison(src source, kind Kind, op Operator, values []Constant) (predicate, error) {
	row := &table[op]
	switch {
	case row.operand == patternList:
		patterns := make([]string, len(values))
		for i, v := range values {
			patterns[i] = v.Str
		}
		return p.patterns(src, op, patterns)
	case op == Regex:
		re, err := compileRegex(values[0].Str)
		return matched(src, re), err
	case op == In:
		set := make(map[string]struct{}, len(values))
		for _, v := range values {
			set[v.Str] = struct{}{}
		}
		return textIs(src, func(s string) bool { _, ok := set[s]; return ok }), nil
	case row.text != nil:
		return searched(src, values[0].Str, row.text), nil
	case row.order == nil:
		return nil, fmt.Errorf("%s compares with nothing", row.symbol)
	}
	switch kind {
	case Int:
		return &intOrder{src, row.order, values[0].Num}, nil
	case Size:
		return countIs(src, values[0].Num, row.order), nil
	case Time:
		at, err := ParseTime(values[0].Str)
		return &timeOrder{row.order, at}, err
	case Decimal:
		want, ok := parseDecimal(values[0].Str)
		if !ok {
			return nil, errNoDecimal
		}
		return decimalIs(src, want, row.order), nil
	case Text:
		want := values[0].Str
		if op == Eq {
			return textIs(src, func(s string) bool { return s == want }), nil
		}
		return textIs(src, func(s string) bool { return row.order(strings.Compare(s, want)) }), nil
	}
	return nil, fmt.Errorf("%s is not run on such a field", row.symbol)
}

// patterns compiles patterns that a source is asked for.
func (p *Program) patterns(src source, op Operator, patterns []string) (predicate, error) {
	m, err := compileMatcher(op, patterns, p.use)
	if err != nil {
		return nil, err
	}
	if list, ok := m.(*glob.List); ok && src.field == Resource {
		return &reading{list}, nil
	}
	if p.actions == nil {
		p.actions = m
	}
	return matched(src, m), nil
}

// matcher is a compiled list of patterns. Match returns the index of the first
// pattern that matches s, or -1, and Steps bounds what that takes: see maxWork.
type matcher interface {
	Match(s string) int
	Steps(s string) int
}

func compileMatcher(op Operator, patterns []string, use glob.Use) (matcher, error) {
	switch op {
	case ActionGlob:
		return CompileActions(patterns)
	case ActionDenied:
		return compileDenied(patterns)
	case Glob:
		return glob.CompileSet(patterns)
	default:
		return glob.Compile(patterns, use)
	}
}

// readings compiles the comparison op of the readings of the resource with values.
func (p *Program) readings(op Operator, values []string, every bool) (predicate, error) {
	n := &readings{every: every, program: p}
	use := glob.Use(!every)
	var err error
	switch op {
	case ResourceGlob:
		n.list, err = glob.Compile(values, use)
	case Eq, In:
		n.list, err = glob.Exactly(values, use)
	case Regex:
		n.re, err = compileRegex(values[0])
	default:
		row, want := &table[op], values[0]
		switch {
		case row.text != nil:
			n.holds = func(s string) bool { return row.text(s, want) }
		case row.order != nil:
			n.holds = func(s string) bool { return row.order(strings.Compare(s, want)) }
		default:
			err = fmt.Errorf("the resource is not asked by %s", row.symbol)
		}
	}
	if n.list != nil && p.list == nil {
		p.list = n.list
	}
	return n, err
}

// Objected returns the index of the pattern of the program's first list that matches,
// and the readers of the resource to which it does; -1 where none does.
func (p *Program) Objected(f *Frame) (index int, by resource.Reader) {
	if p.list != nil {
		return p.list.FirstMatch(&f.readings)
	}
	if p.actions == nil {
		return -1, 0
	}
	return p.actions.Match(f.texts[ActionType]), resource.Raw
}

// Bytes returns about how many bytes the program's patterns take.
func (p *Program) Bytes() (n int) {
	if sized, ok := p.actions.(interface{ Size() int }); ok {
		n += sized.Size()
	}
	if p.list != nil {
		n += p.list.Size()
	}
	return n
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
