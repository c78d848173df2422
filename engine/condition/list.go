package condition

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// fnList names a list in CEL: intent.metadata.payee in list("payees").
const fnList = "list"

// List is the texts of a named list. It is immutable and safe for concurrent use.
type List struct {
	items []string
	has   map[string]struct{}

	once     sync.Once
	rendered any
}

// Lists are the lists of an organization, by name.
type Lists map[string]*List

// NewList returns the list of items, in any order.
func NewList(items []string) *List {
	l := &List{items: slices.Compact(slices.Sorted(slices.Values(items))), has: make(map[string]struct{}, len(items))}
	for _, s := range l.items {
		l.has[s] = struct{}{}
	}
	return l
}

// Has reports whether s is in the list, byte by byte.
func (l *List) Has(s string) bool { _, ok := l.has[s]; return ok }

// Items returns the list, sorted. It must not be modified.
func (l *List) Items() []string { return l.items }

// Rendered returns what render makes of the list for another language. It is made once.
func (l *List) Rendered(render func(items []string) any) any {
	l.once.Do(func() { l.rendered = render(l.items) })
	return l.rendered
}

// itemBytes is about how many bytes an item of a list takes beyond its text.
const itemBytes = 56

// Size returns about how many bytes the list takes.
func (l *List) Size() int { return ListSize(l.items) }

// ListSize returns about how many bytes a list of items takes.
func ListSize(items []string) int {
	size := itemBytes
	for _, s := range items {
		size += itemBytes + len(s)
	}
	return size
}

// CheckListName returns nil if name can be a list's: 1 to [MaxName] characters of a-z, 0-9,
// "_", "-" and ".", of which the first is a letter or a digit.
func CheckListName(name string) error {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	if name == "" || len(name) > MaxName || !strings.ContainsRune(first, rune(name[0])) ||
		strings.Trim(name, first+"_-.") != "" {
		return fmt.Errorf(
			"the name of a list has 1 to %d characters of a-z, 0-9, _, - and ., and begins with a letter or a digit",
			MaxName,
		)
	}
	return nil
}

// inList reports whether s is in the list called name. Without that list it is an error.
func (f *Frame) inList(name, s string) ref.Val {
	l := f.lists[name]
	if l == nil {
		return noList
	}
	return types.Bool(l.Has(s))
}

// listed parses {"list": name} as the operand of $in.
func (p *parser) listed(f Field, c comparison, v jsonNode) *Node {
	name, ok := v.member(fnList)
	switch {
	case !ok || len(v.members) != 1 || name.kind != '"':
		return p.wrong(v.at, `%s wants an array of at least one constant, or a list by its name: {"list":"payees"}`,
			c.name)
	case f.Kind != Text:
		return p.wrong(v.at, "a list holds texts, %s is %s", f.Label(), f.describe())
	case f.ID == Resource:
		return p.wrong(v.at, "a list holds no resources, which are compared with patterns: compare another field")
	}
	if err := CheckListName(name.text); err != nil {
		return p.wrong(name.at, "%v", err)
	}
	return Compare(f, InList, Constant{Str: name.text})
}

// listFunction declares list(name), and `in` for it. Neither has a binding that is called:
// planning replaces each.
func listFunction() cel.EnvOption {
	named := cel.OpaqueType("list by name")
	unplanned := cel.UnaryBinding(func(ref.Val) ref.Val { return types.NewErr("%s was not planned", fnList) })
	return func(e *cel.Env) (*cel.Env, error) {
		return e.Extend(
			cel.Function(fnList, cel.Overload(fnList+"_name", []*cel.Type{cel.StringType}, named, unplanned)),
			cel.Function(operators.In,
				cel.Overload("in_"+fnList+"_name", []*cel.Type{cel.StringType, named}, cel.BoolType)),
		)
	}
}

// listNode is list(name) in a planned expression, of which only `in` asks.
type listNode struct {
	interpreter.InterpretableCall
	name string
}

// planList returns list(name), whose name is a constant: see [listsIn].
func planList(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	if c, ok := call.Args()[0].(interpreter.InterpretableConst); ok {
		if name, ok := c.Value().(types.String); ok {
			return &listNode{call, string(name)}, nil
		}
	}
	return nil, errListName
}

// fuseList returns what asks whether member is in a list.
func fuseList(
	p *Program, call interpreter.InterpretableCall, member interpreter.InterpretableV2, l *listNode,
) (interpreter.InterpretableV2, error) {
	if src, f, ok := sourceOf(member); ok && f.Kind == Text {
		asked, err := p.comparison(src, f.Kind, InList, Texts(l.name))
		return &fused{call.ID(), asked}, err
	}
	return listComputed(call.ID(), member, l.name), nil
}

func listComputed(id int64, arg interpreter.InterpretableV2, name string) *ofComputed {
	return &ofComputed{id, arg, func(f *Frame, s string) ref.Val { return f.inList(name, s) }}
}

// listNamed returns the name of the list that e is.
func listNamed(e ast.Expr) (string, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != fnList {
		return "", false
	}
	return textLiteral(e.AsCall().Args()[0])
}

var errListName = fmt.Errorf(
	`%s: the name must be a constant, and only "in" asks a list: intent.agent_id in %s("trusted")`, fnList, fnList,
)

func listsIn(checked *ast.AST) (names []string, err error) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(checked), ast.FunctionMatcher(fnList)) {
		name, ok := listNamed(e)
		if in, called := e.Parent(); !ok || !called || in.Kind() != ast.CallKind ||
			in.AsCall().FunctionName() != operators.In {
			return nil, errListName
		}
		if err := CheckListName(name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
