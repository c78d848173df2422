package condition

import (
	"cmp"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"writ/engine/glob"
	"writ/engine/resource"
)

// Program is a condition that can be asked. It is immutable and safe for concurrent use.
type Program struct {
	root predicate
	// side is what the lists of patterns in a condition in CEL are for.
	side resource.Side
	load int // is charged whenever the program runs
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
	src := source{field: n.Field.ID, key: n.Field.Key, missing: types.False}
	switch {
	case n.Op == Exists:
		return &presence{src}, nil
	case n.Op == IsTrue:
		return &flag{src}, nil
	case n.isResource() && n.Side != 0:
		return p.readings(n.Op, n.Texts(), n.Side)
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
		return p.patterns(src, op, textsOf(values))
	case op == Regex:
		re, err := compileRegex(values[0].Str)
		return &listed{src, re}, err
	case op == In && kind == Text:
		set := make(map[string]struct{}, len(values))
		for _, v := range values {
			set[v.Str] = struct{}{}
		}
		return &membership{src: src, many: set}, nil
	case op == InList:
		name := values[0].Str
		return &ofText{src, func(f *Frame, s string) ref.Val { return f.inList(name, s) }}, nil
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
		if op == Eq {
			return &membership{src: src, one: values[0].Str}, nil
		}
		holds := row.against(values[0].Str)
		return &ofText{src, func(_ *Frame, s string) ref.Val { return types.Bool(holds(s)) }}, nil
	}
	return nil, fmt.Errorf("%s is not run on such a field", row.symbol)
}

// searched searches all of a text for a constant.
func searched(src source, want string, holds func(s, want string) bool) predicate {
	return &ofText{src, func(f *Frame, s string) ref.Val {
		if !f.Work.Charge(len(s) / searchSteps) {
			return tooMuchWork
		}
		return types.Bool(holds(s, want))
	}}
}

func decimalIs(src source, want decimal, holds func(c int) bool) predicate {
	return &ofText{src, func(_ *Frame, s string) ref.Val {
		d, ok := parseDecimal(s)
		if !ok {
			return notDecimal
		}
		return types.Bool(holds(d.compare(want)))
	}}
}

func countIs(src source, want int64, holds func(c int) bool) predicate {
	return &ofText{src, func(f *Frame, s string) ref.Val {
		items, failed := f.items(s)
		if failed != nil {
			return failed
		}
		return types.Bool(holds(cmp.Compare(int64(len(items)), want)))
	}}
}

// quantifier asks each item of a text, or some. As in CEL's macros, an item that
// decides wins over one that is an error.
func quantifier(src source, every bool, of predicate) predicate {
	return &ofText{src, func(f *Frame, s string) ref.Val {
		items, failed := f.items(s)
		if failed != nil {
			return failed
		}
		n := tally{decides: types.Bool(!every)}
		for _, item := range items {
			if f.texts[Item] = item; n.add(of.ask(f)) {
				break
			}
		}
		return n.result()
	}}
}

func (p *Program) patterns(src source, op Operator, patterns []string) (predicate, error) {
	m, err := compileMatcher(op, patterns, p.side)
	if err != nil {
		return nil, err
	}
	if list, ok := m.(*glob.List); ok && op == ResourceGlob && src.field == Resource {
		return &reading{list}, nil
	}
	return &listed{src, m}, nil
}

// matcher is a compiled list of patterns. Match returns the index of the first
// pattern that matches s, or -1, and Steps bounds what that takes: see maxWork.
type matcher interface {
	Match(s string) int
	Steps(s string) int
}

func compileMatcher(op Operator, patterns []string, side resource.Side) (matcher, error) {
	switch op {
	case ActionGlob:
		return glob.CompileActions(patterns)
	case ActionDenied:
		return glob.CompileDenied(patterns)
	case Glob:
		return glob.CompileSet(patterns)
	default:
		return glob.Compile(patterns, side)
	}
}

func (p *Program) readings(op Operator, values []string, side resource.Side) (predicate, error) {
	n := &readings{side: side}
	var err error
	switch op {
	case ResourceGlob:
		n.list, err = glob.Compile(values, side)
	case Eq, In:
		n.list, err = glob.Exactly(values, side)
	case Regex:
		n.re, err = compileRegex(values[0])
	default:
		if n.holds = table[op].against(values[0]); n.holds == nil {
			err = fmt.Errorf("the resource is not asked by %s", table[op].symbol)
		}
	}
	return n, err
}
