package engine

// How conditions are compiled and run:
//
//	env, err := standardEnv()           // built once, immutable
//	ast, err := env.rules.check(expr)   // *ExprError: line, column, message
//	prg, err := env.rules.plan(ast)     // refuses bad patterns
//	prg, err := env.rules.compile(expr) // both of the above
//	ok, err := prg.eval(f)              // f: one *frame per evaluation
//
// env.rules sees what a rule's author may name: intent.*, agent.*, policy.*.
// env.trees also sees the functions that match objects and trees are written
// with, env.checks usage.* and deployment.*, too.
//
// Functions: glob(patterns, s) is a plain glob with "/" as the delimiter;
// resource_glob(patterns, s) reads each pattern as the readers of a resource do, so
// use it on intent.resource; action_matches(patterns, s) is the taxonomy's
// wildcard and, for the checks, action_denied(patterns, s) is that of denied types.
// patterns is a constant string or list of strings, otherwise the
// expression does not compile. resource_any(op, values) is true where the
// comparison op holds of one reading of the resource that a block looks at,
// resource_every(op, values) where it does of all that an allowance has to cover.
// items(s) is the list of strings that s is: a JSON array of strings, else what is
// between its commas, trimmed and without empty ones. decimal_compare(s, t) is -1, 0
// or 1, and an error where either is not a decimal.
//
// intent.resource is one reading at a time: see [CompiledRule.matches].
//
// A comparison of a variable (or intent.metadata.key) with a constant, `in` over
// a constant list, glob and friends, startsWith, endsWith, contains and matches
// with a constant run without allocating; anything else boxes its operands.

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
	"github.com/google/cel-go/parser"

	"writ/engine/glob"
)

const (
	// maxConditionCost bounds what a rule's condition may cost in the worst
	// case, in CEL's cost units, for an intent at its size limits: roughly one
	// unit per operation or per ten characters looked at. It is checked when
	// the rule is created, so that nothing has to be counted while it runs.
	maxConditionCost = 100_000
	// maxConditionSize bounds the text of a rule's expression, in characters.
	maxConditionSize = 16 << 10
)

// Names that only macros can write.
const (
	varHasCost     = "@has_cost"
	varHasMetadata = "@has_metadata"
)

// env holds what every compilation and every evaluation shares. All of it is
// immutable but the pool of frames, whose state nobody can observe.
type env struct {
	// rules compiles conditions that authors write in CEL, trees those of match
	// objects and trees, checks the checks of policies.
	rules, trees, checks *scope
	frames               framePool
}

// scope compiles expressions over one set of variables.
type scope struct {
	cel *cel.Env
	// planner is shared by every program: the one that [cel.Env.Program] makes
	// for each program is a kilobyte of closures.
	planner interpreter.Interpreter
	// maxSize and maxCost bound an expression; 0 is no bound.
	maxSize int
	maxCost uint64
	// charged leaves out of the cost what macros do with the items of a text,
	// which is charged while they run: the macros of forms 1 and 2 do not nest.
	charged bool
}

// standardEnv returns the one env of the process. It is immutable.
var standardEnv = sync.OnceValues(newEnv)

func newEnv() (*env, error) {
	rules, err := cel.NewCustomEnv(append(variables(ruleVariables),
		cel.StdLib(),
		ext.Strings(ext.StringsVersion(4)),
		cel.Macros(cel.GlobalMacro(operators.Has, 1, expandHas)),
		cel.ParserExpressionSizeLimit(8*maxConditionSize),
		cel.DefaultUTCTimeZone(true),
		patternFunction(fnGlob, cel.StringType),
		patternFunction(fnResourceGlob, cel.StringType),
		patternFunction(fnActionMatches, cel.StringType),
		cel.Function(fnItems, cel.Overload(fnItems, []*cel.Type{cel.StringType}, cel.ListType(cel.StringType),
			cel.UnaryBinding(func(ref.Val) ref.Val { return types.NewErr("%s was not planned", fnItems) }))),
		cel.Function(fnDecimalCompare, cel.Overload(fnDecimalCompare, []*cel.Type{cel.StringType, cel.StringType}, cel.IntType,
			cel.BinaryBinding(decimalCompare))),
	)...)
	if err != nil {
		return nil, fmt.Errorf("building the rules' environment: %w", err)
	}
	trees, err := rules.Extend(
		cel.ParserExpressionSizeLimit(4<<20),
		resourceFunction(fnResourceAny),
		resourceFunction(fnResourceEvery),
	)
	if err != nil {
		return nil, fmt.Errorf("building the trees' environment: %w", err)
	}
	checks, err := trees.Extend(append(variables(checkVariables), patternFunction(fnActionDenied, cel.StringType))...)
	if err != nil {
		return nil, fmt.Errorf("building the checks' environment: %w", err)
	}
	e := &env{
		rules:  &scope{cel: rules, maxSize: maxConditionSize, maxCost: maxConditionCost},
		trees:  &scope{cel: trees, maxCost: maxConditionCost, charged: true},
		checks: &scope{cel: checks},
	}
	for _, s := range []*scope{e.rules, e.trees, e.checks} {
		if err := s.init(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// init makes the planner over the functions of the environment.
func (s *scope) init() error {
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

func variables(vars []variable) []cel.EnvOption {
	opts := make([]cel.EnvOption, len(vars))
	for i, v := range vars {
		opts[i] = cel.Variable(v.name, v.typ)
	}
	return opts
}

// patternFunction declares a function of (patterns, subject). It has no binding
// of its own: planning replaces every call by its compiled matcher.
func patternFunction(name string, subject *cel.Type) cel.EnvOption {
	unplanned := cel.BinaryBinding(func(_, _ ref.Val) ref.Val {
		return types.NewErr("%s was not planned", name)
	})
	return cel.Function(name,
		cel.Overload(name+"_list", []*cel.Type{cel.ListType(cel.StringType), subject}, cel.BoolType, unplanned),
		cel.Overload(name+"_string", []*cel.Type{cel.StringType, subject}, cel.BoolType, unplanned),
	)
}

// resourceFunction declares a function of (operator, values), which planning
// replaces, too.
func resourceFunction(name string) cel.EnvOption {
	unplanned := cel.BinaryBinding(func(_, _ ref.Val) ref.Val {
		return types.NewErr("%s was not planned", name)
	})
	return cel.Function(name,
		cel.Overload(name+"_list", []*cel.Type{cel.StringType, cel.ListType(cel.StringType)}, cel.BoolType, unplanned),
		cel.Overload(name+"_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType, unplanned),
	)
}

// expandHas is the has() macro over flat variables: it knows which members of
// an intent are optional and leaves everything else to CEL's own macro.
func expandHas(eh parser.ExprHelper, target ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	name, ok := dottedName(args[0])
	if !ok {
		return parser.MakeHas(eh, target, args)
	}
	switch {
	case name == "intent.cost" || name == "intent.cost.amount_minor" || name == "intent.cost.currency":
		return eh.NewIdent(varHasCost), nil
	case name == "intent.metadata":
		return eh.NewIdent(varHasMetadata), nil
	case strings.HasPrefix(name, "intent.metadata."):
		sel := args[0].AsSelect()
		if operand, _ := dottedName(sel.Operand()); operand == "intent.metadata" {
			key := eh.NewLiteral(types.String(sel.FieldName()))
			return eh.NewCall(operators.In, key, sel.Operand()), nil
		}
	case isRequired(name):
		return eh.NewLiteral(types.True), nil
	}
	if root, _, _ := strings.Cut(name, "."); reservedRoots[root] {
		return nil, eh.NewError(args[0].ID(), fmt.Sprintf("has(%s): no such field", name))
	}
	return parser.MakeHas(eh, target, args)
}

// dottedName returns a.b.c for the chain of selections that e is.
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

// ExprError says where in a CEL expression what is wrong.
type ExprError struct {
	// Line and Column count from 1; both are 0 where the expression as a whole
	// is refused.
	Line, Column int
	Message      string
}

// Error implements error.
func (e *ExprError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

func issuesError(issues *cel.Issues) error {
	errs := issues.Errors()
	if len(errs) == 0 {
		return &ExprError{Message: issues.String()}
	}
	first := errs[0]
	message := first.Message
	if strings.Contains(message, "undeclared reference") {
		message += "; known are " + knownNames()
	}
	if first.Location.Line() < 1 {
		return &ExprError{Message: message}
	}
	return &ExprError{Line: first.Location.Line(), Column: first.Location.Column() + 1, Message: message}
}

// check parses and type-checks expr, which must be a condition: its type is bool.
func (s *scope) check(expr string) (*cel.Ast, error) {
	if s.maxSize > 0 && len(expr) > s.maxSize {
		return nil, &ExprError{Message: fmt.Sprintf("the expression is longer than %d characters", s.maxSize)}
	}
	checked, issues := s.cel.Compile(expr)
	if issues.Err() != nil {
		return nil, issuesError(issues)
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, &ExprError{Line: 1, Column: 1, Message: fmt.Sprintf("the expression is a %s, want a bool", got)}
	}
	if name := shadowed(checked); name != "" {
		return nil, &ExprError{Message: fmt.Sprintf("a local variable must not be named %q", name)}
	}
	return checked, s.bound(checked)
}

// shadowed returns the name of a comprehension's variable that hides one of the
// environment's roots, because has() is expanded before scopes are known.
func shadowed(checked *cel.Ast) (name string) {
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		c := e.AsComprehension()
		for _, v := range []string{c.IterVar(), c.IterVar2(), c.AccuVar()} {
			if reservedRoots[v] {
				name = v
			}
		}
	}))
	return name
}

// load returns what an expression does at most for itself, in steps: see maxWork.
func (s *scope) load(checked *cel.Ast) (int, error) {
	if s.maxCost == 0 {
		return 0, nil
	}
	cost, err := s.cost(checked, false)
	if err != nil {
		return 0, &ExprError{Message: fmt.Sprintf("estimating the load: %v", err)}
	}
	load := int(min(cost, s.maxCost))
	if len(ast.MatchDescendants(ast.NavigateAST(checked.NativeRep()), ast.KindMatcher(ast.ComprehensionKind))) > 0 {
		load *= macroSteps
	}
	return load, nil
}

// bound refuses an expression whose worst case is too dear.
func (s *scope) bound(checked *cel.Ast) error {
	if s.maxCost == 0 {
		return nil
	}
	cost, err := s.cost(checked, true)
	if err != nil {
		return &ExprError{Message: fmt.Sprintf("estimating the cost: %v", err)}
	}
	if cost > s.maxCost {
		return &ExprError{Message: fmt.Sprintf("the worst case costs %d units, at most %d are allowed", cost, s.maxCost)}
	}
	return nil
}

// program is a compiled condition. It is immutable and safe for concurrent use.
type program struct {
	root interpreter.InterpretableV2
	// matcher is the first list of patterns that planning compiled, and list the
	// first that the readings of the resource are asked of, for asking which
	// pattern it was that matched.
	matcher matcher
	list    *glob.List
	// use is what the lists of patterns in a condition in CEL do.
	use glob.Use
	// load is charged whenever the program runs, and charged says whether its
	// lists of patterns are.
	load    int
	charged bool
}

// plan turns a checked expression into a program. use is that of its calls of
// resource_glob.
func (s *scope) plan(checked *cel.Ast, use glob.Use) (*program, error) {
	load, err := s.load(checked)
	if err != nil {
		return nil, err
	}
	p := &program{load: load, use: use, charged: s.maxCost > 0}
	root, err := s.planner.NewInterpretable(checked.NativeRep(),
		interpreter.CustomDecoratorV2(decorator(p)),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(interpreter.MatchesRegexOptimization))
	if err != nil {
		return nil, &ExprError{Message: err.Error()}
	}
	p.root = root
	return p, nil
}

// compile checks and plans expr, which does not call resource_glob.
func (s *scope) compile(expr string) (*program, error) {
	checked, err := s.check(expr)
	if err != nil {
		return nil, err
	}
	return s.plan(checked, glob.Blocks)
}

// eval runs the program over f. An error means that the condition has no value.
func (p *program) eval(f *frame) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = false, fmt.Errorf("condition panicked: %v", r)
		}
	}()
	if !f.charge(p.load) {
		return false, ErrTooMuchWork
	}
	switch out := p.root.Exec(f.exec).(type) {
	case types.Bool:
		return bool(out), nil
	case *types.Err:
		return false, out
	default:
		return false, fmt.Errorf("condition is a %s, want a bool", out.Type().TypeName())
	}
}
