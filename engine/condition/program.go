package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// Program is a compiled condition. It is immutable and safe for concurrent use.
type Program struct {
	root predicate
	// side is the side for the patterns of a CEL condition.
	side resource.Side
	load int // the steps that are charged for each run
}

// nodeSteps is the number of steps for a node of a tree, without its patterns.
const nodeSteps = 4

// Plan returns the program of n. n must not have an opaque node. The program has the same result
// as the CEL of n, and CEL itself is several times slower.
func Plan(n *Node) (*Program, error) {
	p := &Program{load: nodeSteps * n.Count()}
	var err error
	p.root, err = p.plan(n)
	return p, err
}

func (p *Program) plan(n *Node) (predicate, error) {
	if n.Kind == Leaf {
		return p.leaf(n, result{})
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
		return &junction{kids: kids, decides: false}, nil
	case Any:
		return &junction{kids: kids, decides: true}, nil
	case Not:
		return &negation{kids[0]}, nil
	}
	return nil, fmt.Errorf("a condition that is not known cannot be run")
}

// leaf returns the predicate of a leaf. If the intent lacks the field, the predicate's result is
// missing.
func (p *Program) leaf(n *Node, missing result) (predicate, error) {
	src := source{field: n.Field.ID, key: n.Field.Key, missing: missing}
	order := table[n.Op].order
	switch {
	case n.Op == Exists:
		return &presence{src}, nil
	case n.Op == IsTrue:
		return &flag{src}, nil
	case n.AsksNames():
		of, err := p.plan(n.Kids[0])
		return &byName{of}, err
	case n.IsRead():
		return p.read(n, src)
	case n.isResource() && n.Side != 0:
		return p.readings(n)
	case n.isResource() && n.Op == ResourceGlob:
		list, err := glob.Compile(n.Texts(), p.side)
		return &reading{list}, err
	case order != nil && n.Field.Kind == Int:
		return &intOrder{src, order, n.Values[0].Num}, nil
	case order != nil && n.Field.Kind == Time:
		at, err := ParseTime(n.Values[0].Str)
		return &timeOrder{n.Field.ID, order, at}, err
	case n.Field.Kind == Text && n.Op == Eq:
		return &membership{src: src, one: n.Values[0].Str}, nil
	case n.Op == In && (n.Field.Kind == Text || len(n.Values) == 0):
		set := make(map[string]struct{}, len(n.Values))
		for _, v := range n.Values {
			set[v.Str] = struct{}{}
		}
		return &membership{src: src, many: set}, nil
	}
	asked, err := p.test(n)
	return &ofText{src, asked, notDecimal(n.Field)}, err
}

// test returns the test of the text in a leaf's field.
func (p *Program) test(n *Node) (test, error) {
	switch row := &table[n.Op]; {
	case row.operand == patternList || n.Op == Regex:
		return p.matching(n.Op, n.Texts())
	case n.Op == Every || n.Op == Some:
		of, err := p.plan(n.Kids[0])
		return ofElements(n.Op == Every, of), err
	case n.Op == InList || n.Op == InAddresses || n.Op == InNames:
		name, has := n.Values[0].Str, (*List).Has
		switch n.Op {
		case InAddresses:
			has = (*List).HasAddress
		case InNames:
			has = (*List).HasName
		}
		return func(f *Frame, s string) result { return f.inList(name, s, has) }, nil
	case row.text != nil:
		return searched(n.Values[0].Str, row.text), nil
	case row.order != nil && n.Field.Kind == Decimal:
		return decimalTest(n.Values[0].Str, row.order)
	case row.order != nil && n.Field.Kind == Text:
		want := n.Values[0].Str
		return func(_ *Frame, s string) result { return is(row.order(strings.Compare(s, want))) }, nil
	}
	return nil, fmt.Errorf("%s is not run on such a field", table[n.Op].symbol)
}

// searchSteps is the number of bytes of a text that are searched in one step.
const searchSteps = 64

// searched returns a test that searches the whole text for want.
func searched(want string, holds func(s, want string) bool) test {
	return func(f *Frame, s string) result {
		if !f.Work.Charge(len(s) / searchSteps) {
			return failing(ErrTooMuchWork)
		}
		return is(holds(s, want))
	}
}

// decimalTest returns a test that compares a text with a decimal. Reading the text takes most of the
// time.
func decimalTest(constant string, holds func(c int) bool) (test, error) {
	want, ok := parseDecimal(constant)
	if !ok {
		return nil, errNotDecimal
	}
	return func(f *Frame, s string) result {
		if !f.Work.Charge(8 + len(s)/4) {
			return failing(ErrTooMuchWork)
		}
		d, ok := parseDecimal(s)
		if !ok {
			return failing(errNotDecimal)
		}
		return is(holds(d.compare(want)))
	}, nil
}

// sized returns a test that compares the number of a text's elements with want. Programs count them
// in several ways: for a block one number is enough, for an allowance all must satisfy it.
func sized(want int64, holds func(c int) bool, side resource.Side) test {
	return func(f *Frame, s string) result {
		v, ok := f.read(s)
		if !ok {
			return failing(ErrTooMuchWork)
		}
		decides := side == resource.ForBlock
		return is(decides == slices.ContainsFunc(v.Sizes, func(n int64) bool {
			return holds(cmp.Compare(n, want)) == decides
		}))
	}
}

// ofElements returns a test of a text's elements: of every element, or of at least one. As in CEL's
// macros, one element that decides is enough, even if others failed.
func ofElements(every bool, of predicate) test {
	return func(f *Frame, s string) result {
		v, ok := f.read(s)
		if !ok {
			return failing(ErrTooMuchWork)
		}
		n := tally{decides: !every}
		for i := range v.Elements {
			f.element = &v.Elements[i]
			if f.texts[Item] = f.element.Text; n.add(of.ask(f)) {
				break
			}
		}
		return n.result()
	}
}

// matcher is a compiled list of patterns. Match returns the index of the first pattern that
// matches s, or -1. Steps returns a bound of the steps that Match takes: see maxWork.
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
	case AddressGlob:
		return glob.CompileAddresses(patterns)
	case Regex:
		return compileRegex(patterns[0])
	default:
		return glob.Compile(patterns, side)
	}
}

// matching returns a test that is true if one of patterns matches the text.
func (p *Program) matching(op Operator, patterns []string) (test, error) {
	m, err := compileMatcher(op, patterns, p.side)
	if err != nil {
		return nil, err
	}
	return func(f *Frame, s string) result {
		if !f.Work.Charge(m.Steps(s)) {
			return failing(ErrTooMuchWork)
		}
		if re, ok := m.(*regex); ok {
			return is(re.matches(&f.Work, s))
		}
		return is(m.Match(s) >= 0)
	}, nil
}

// readings returns the predicate of a comparison with the resource whose side is set.
func (p *Program) readings(n *Node) (predicate, error) {
	var list *glob.List
	var err error
	switch n.Op {
	case ResourceGlob:
		list, err = glob.Compile(n.Texts(), n.Side)
	case Eq, In:
		list, err = glob.Exactly(n.Texts(), n.Side)
	default:
		asked, err := p.test(n)
		return &readings{side: n.Side, test: asked}, err
	}
	return &readings{side: n.Side, list: list}, err
}
