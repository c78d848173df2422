package condition

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	celparser "github.com/google/cel-go/parser"
)

// presenceOfField is the prefix of the variables that say whether an intent has a field. The
// field's path follows the prefix. Only macros can write such a name, because of the space in it.
const presenceOfField = "@has "

// language is the CEL in which authors write conditions. Its variables are below intent, agent and
// policy. A language is immutable.
type language struct {
	cel *cel.Env
	// All programs share planner, because [cel.Env.Program] would make a kilobyte of closures for
	// each program.
	planner interpreter.Interpreter
}

// cels returns the one language of the process.
var cels = sync.OnceValues(func() (*language, error) {
	return newLanguage(
		cel.ParserExpressionSizeLimit(8*MaxCondition),
		patternFunction(table[Glob].symbol),
		patternFunction(table[ResourceGlob].symbol),
		patternFunction(table[ActionGlob].symbol),
	)
})

// newLanguage returns CEL with options. Its variables are the fields of an evaluation.
func newLanguage(options ...cel.EnvOption) (*language, error) {
	env, err := cel.NewCustomEnv(append(options,
		variables(),
		cel.StdLib(),
		listFunction(),
		ext.Strings(ext.StringsVersion(4)),
		cel.Macros(cel.GlobalMacro(operators.Has, 1, expandHas)),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(), // keeps the source of macros for the texts of clauses
		cel.Function(fnItems,
			cel.Overload(fnItems, []*cel.Type{cel.StringType}, cel.ListType(cel.StringType), unplanned)),
		cel.Function(fnDecimalCompare,
			cel.Overload(fnDecimalCompare, []*cel.Type{cel.StringType, cel.StringType}, cel.IntType,
				cel.BinaryBinding(decimalCompare))),
	)...)
	if err != nil {
		return nil, fmt.Errorf("building the environment of CEL: %w", err)
	}
	l := &language{cel: env}
	return l, l.init()
}

// init makes the planner. The planner can call every function of the environment.
func (s *language) init() error {
	dispatcher := interpreter.NewDispatcher()
	for name, fn := range s.cel.Functions() {
		bindings, err := fn.Bindings()
		if err != nil {
			return fmt.Errorf("binding %s: %w", name, err)
		}
		if err := dispatcher.Add(bindings...); err != nil {
			return fmt.Errorf("binding %s: %w", name, err)
		}
	}
	adapter, provider := s.cel.CELTypeAdapter(), s.cel.CELTypeProvider()
	attributes := interpreter.NewAttributeFactory(s.cel.Container, adapter, provider)
	s.planner = interpreter.NewInterpreter(dispatcher, s.cel.Container, provider, adapter, attributes)
	return nil
}

// variables declares the fields that a condition can ask about.
func variables() cel.EnvOption {
	return func(e *cel.Env) (*cel.Env, error) {
		var options []cel.EnvOption
		for f := range namedFields {
			if f.Optional() && f.Owner() == f {
				options = append(options, cel.Variable(presenceOfField+f.Path(), cel.BoolType))
			}
			if f.celType() != nil {
				options = append(options, cel.Variable(f.Path(), f.celType()))
			}
		}
		return e.Extend(options...)
	}
}

func variableNames() (names []string) {
	for f := range namedFields {
		if f.celType() != nil {
			names = append(names, f.Path())
		}
	}
	return names
}

// roots has the names that no local variable of an expression may hide.
var roots = map[string]bool{"intent": true, "agent": true, "policy": true, "usage": true, "deployment": true,
	"session": true, fields[DecidedAt].path: true}

// The names of functions. items and decimal_compare read metadata values. split is CEL's own
// function: it makes a list of a text.
const (
	fnItems          = "items"
	fnDecimalCompare = "decimal_compare"
	fnSplit          = "split"
)

// patternFunction declares a function of (patterns, text).
func patternFunction(name string) cel.EnvOption {
	return cel.Function(name,
		cel.Overload(name+"_list", []*cel.Type{cel.ListType(cel.StringType), cel.StringType}, cel.BoolType, unplanned),
		cel.Overload(name+"_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType, unplanned),
	)
}

// unplanned is the binding of functions that planning replaces. No program calls it.
var unplanned = cel.FunctionBinding(func(...ref.Val) ref.Val { return types.NewErr("a function was not planned") })

// expandHas expands has() for a field, which is one variable with dots in its name. It uses the
// table of fields to see which fields are optional. CEL's own macro expands every other operand.
func expandHas(eh celparser.ExprHelper, target ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	name, ok := dottedName(args[0])
	if !ok {
		return celparser.MakeHas(eh, target, args)
	}
	if f, known := fieldByPath(name); known && f.Kind != Bool {
		if !f.Optional() {
			return eh.NewLiteral(types.True), nil
		}
		return eh.NewIdent(presenceOfField + fields[f.row().owner].path), nil
	}
	if strings.HasPrefix(name, fields[Metadata].path+".") {
		sel := args[0].AsSelect()
		if operand, _ := dottedName(sel.Operand()); operand == fields[Metadata].path {
			key := eh.NewLiteral(types.String(sel.FieldName()))
			return eh.NewCall(operators.In, key, sel.Operand()), nil
		}
	}
	if root, _, _ := strings.Cut(name, "."); roots[root] {
		return nil, eh.NewError(args[0].ID(), fmt.Sprintf("has(%s): no such field", name))
	}
	return celparser.MakeHas(eh, target, args)
}

// dottedName returns the path a.b.c if e selects a field of a field of a variable, to any depth.
func dottedName(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		operand, ok := dottedName(e.AsSelect().Operand())
		return operand + "." + e.AsSelect().FieldName(), ok
	}
	return "", false
}

// check parses and type-checks expr, which must be a condition: its type is bool.
func (s *language) check(expr string) (*cel.Ast, error) {
	if len(expr) > MaxCondition {
		return nil, refuse("", "the expression is longer than %d characters", MaxCondition)
	}
	checked, issues := s.cel.Compile(expr)
	if issues.Err() != nil {
		return nil, s.explain(expr, issues)
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, &Error{[]Mistake{{Line: 1, Column: 1, Message: fmt.Sprintf(
			"the expression is a %s, want a bool: compare it with something", got,
		)}}}
	}
	if name := shadowed(checked); name != "" {
		return nil, refuse("", "a local variable must not be named %q", name)
	}
	return checked, s.bound(checked)
}

// shadowed returns the first variable of a comprehension that hides one of roots. The caller
// refuses such a variable, because has() is expanded before scopes are known.
func shadowed(checked *cel.Ast) string {
	for e := range parts(checked.NativeRep().Expr()) {
		if e.Kind() != ast.ComprehensionKind {
			continue
		}
		c := e.AsComprehension()
		for _, v := range []string{c.IterVar(), c.IterVar2(), c.AccuVar()} {
			if roots[v] {
				return v
			}
		}
	}
	return ""
}

// load returns the greatest number of steps that an expression takes without its patterns: see
// maxWork.
func (s *language) load(checked *cel.Ast) (int, error) {
	cost, err := s.cost(checked, false)
	if err != nil {
		return 0, refuse("", "estimating the load: %v", err)
	}
	if cost > maxWork/unitSteps {
		return 0, refuse("", "the worst case takes more than %d steps, which all rules together have", maxWork)
	}
	return unitSteps * int(cost), nil //nolint:gosec // at most maxWork
}

// bound refuses an expression whose cost in the worst case is too high.
func (s *language) bound(checked *cel.Ast) error {
	cost, err := s.cost(checked, true)
	if err != nil {
		return refuse("", "estimating the cost: %v", err)
	}
	if cost > maxCost {
		return refuse("", "the worst case costs %d units, at most %d are allowed", cost, maxCost)
	}
	return nil
}

// celType returns the type of a field's variable in CEL, or nil if the field has no variable.
func (f Field) celType() *cel.Type {
	switch {
	case f.ID == Metadata:
		return cel.MapType(cel.StringType, cel.StringType)
	case f.Kind == Object:
		return nil
	case f.Kind == Int:
		return cel.IntType
	case f.Kind == Time:
		return cel.TimestampType
	case f.Kind == Bool:
		return cel.BoolType
	}
	return cel.StringType
}

// listFunction declares list(name), and the operator `in` for its result.
func listFunction() cel.EnvOption {
	named := cel.OpaqueType("list by name")
	return func(e *cel.Env) (*cel.Env, error) {
		return e.Extend(
			cel.Function(fnList, cel.Overload(fnList+"_name", []*cel.Type{cel.StringType}, named, unplanned)),
			cel.Function(operators.In,
				cel.Overload("in_"+fnList+"_name", []*cel.Type{cel.StringType, named}, cel.BoolType)),
		)
	}
}

// decimalCompare implements decimal_compare(a, b). The result is -1, 0 or 1.
func decimalCompare(a, b ref.Val) ref.Val {
	s, ok := a.(types.String)
	t, okToo := b.(types.String)
	if !ok || !okToo {
		return types.MaybeNoSuchOverloadErr(a)
	}
	d, ok := parseDecimal(string(s))
	e, okToo := parseDecimal(string(t))
	if !ok || !okToo {
		return celFailure(errNotDecimal)
	}
	return types.Int(d.compare(e))
}
