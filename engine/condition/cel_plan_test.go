package condition

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

// withChecks returns CEL with all fields and functions, including those that only policies' checks
// and rendered trees use.
var withChecks = sync.OnceValues(func() (*language, error) {
	options := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(4 << 20),
		cel.Variable(fields[UsageExceeded].path, cel.BoolType), cel.Variable(fields[OrganizationStopped].path, cel.BoolType), cel.Variable(fields[RequireRegistered].path, cel.BoolType),
		cel.Variable(fields[AgentNames].path, cel.ListType(cel.StringType)),
		cel.Function(fnListNames, cel.Overload(fnListNames, []*cel.Type{cel.StringType}, cel.ListType(cel.StringType), unplanned)),
		cel.Variable(fields[SessionClosed].path, cel.BoolType), cel.Variable(fields[SessionExpired].path, cel.BoolType),
		cel.Variable(fields[SessionOwn].path, cel.BoolType),
	}
	for _, op := range []Operator{Glob, ResourceGlob, ActionGlob, ActionDenied} {
		options = append(options, patternFunction(table[op].symbol))
	}
	for _, name := range fnResource[resource.ForBlock:] {
		options = append(options, cel.Function(name,
			cel.Overload(name+"_list", []*cel.Type{cel.StringType, cel.ListType(cel.StringType)}, cel.BoolType, unplanned),
			cel.Overload(name+"_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType, unplanned)))
	}
	options = append(options, cel.Function(fnElements,
		cel.Overload(fnElements, []*cel.Type{cel.StringType}, cel.ListType(cel.StringType), unplanned)))
	for _, name := range slices.Concat(fnRead[false], fnRead[true], fnSize[:]) {
		if name != "" {
			options = append(options, cel.Function(name,
				cel.Overload(name+"_list", []*cel.Type{cel.StringType, cel.ListType(cel.StringType), cel.StringType}, cel.BoolType, unplanned),
				cel.Overload(name+"_int", []*cel.Type{cel.StringType, cel.IntType, cel.StringType}, cel.BoolType, unplanned),
				cel.Overload(name+"_string", []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.BoolType, unplanned)))
		}
	}
	return newLanguage(options...)
})

// compileTree compiles the CEL that [Node.CEL] writes into a program that CEL itself runs. writ
// runs only the functions for patterns, lists and readings.
func compileTree(t testing.TB, expr string) *Program {
	t.Helper()
	l, err := withChecks()
	if err != nil {
		t.Fatal(err)
	}
	checked, issues := l.cel.Compile(expr)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expr, issues.Err())
	}
	p := &Program{side: resource.ForBlock}
	replace := fusions{make(map[int64]*fused), make(map[int64]computed)}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(checked.NativeRep()), ast.KindMatcher(ast.CallKind)) {
		var n *fused
		switch name, _ := operandsOf(e); {
		case slices.Contains(fnResource[:], name):
			n = ofReadings(t, p, e)
		case takesPatterns(name):
			n, err = p.fused(e)
		}
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		c, err := p.computed(e)
		if name, args := operandsOf(e); name == operators.In && c.ask == nil && err == nil {
			if of, names := operandsOf(args[1]); of == fnListNames {
				list, _ := textLiteral(names[0])
				c.ask = takesText(func(f *Frame, s string) ref.Val { return celResult(f.inList(list, s, (*List).HasName), nil) })
			}
		}
		if c.ask == nil && err == nil {
			c, err = ofRead(p, e)
		}
		switch {
		case err != nil:
			t.Fatalf("%s: %v", expr, err)
		case n != nil:
			replace.predicates[e.ID()] = n
		case c.ask != nil:
			replace.computed[e.ID()] = c
		}
	}
	root, err := l.planner.NewInterpretable(checked.NativeRep(), interpreter.CustomDecoratorV2(replace.decorate), interpreter.Optimize())
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	p.root = &expression{root: root}
	return p
}

// ofReadings returns the predicate for e if e is a call of resource_any or resource_every.
func ofReadings(t testing.TB, p *Program, e ast.Expr) *fused {
	t.Helper()
	name, args := operandsOf(e)
	symbol, _ := textLiteral(args[0])
	values, ok := constantsOf(FieldOf(Resource), args[1])
	for op := range operatorCount {
		if ok && table[op].symbol == symbol {
			n := Compare(FieldOf(Resource), op, values...)
			n.Side = resource.Side(slices.Index(fnResource[:], name)) //nolint:gosec // 1 or 2
			asked, err := p.readings(n)
			if err != nil {
				t.Fatal(err)
			}
			return &fused{e.ID(), asked, nil}
		}
	}
	t.Fatalf("%s of %s is not known", name, symbol)
	return nil
}

// ofRead returns the test for e if e is a call of one of fnRead or fnSize, or of fnElements.
func ofRead(p *Program, e ast.Expr) (computed, error) {
	name, args := operandsOf(e)
	if name == fnElements {
		return computed{0, takesText(func(f *Frame, s string) ref.Val {
			v, ok := f.read(s)
			if !ok {
				return celFailure(ErrTooMuchWork)
			}
			texts := make([]string, len(v.Elements))
			for i, e := range v.Elements {
				texts[i] = e.Text
			}
			return types.NewStringList(types.DefaultTypeAdapter, texts)
		})}, nil
	}
	for field, names := range map[Field][]string{
		MetadataKey("k"): fnRead[false], FieldOf(Item): fnRead[true], MetadataKey("k").as(Size): fnSize[:],
	} {
		side := slices.Index(names, name)
		if name == "" || side < 0 {
			continue
		}
		symbol, _ := textLiteral(args[0])
		values, _ := constantsOf(field, args[1])
		if field.Kind == Size {
			values = []Constant{{Num: int64(args[1].AsLiteral().(types.Int))}}
		}
		for op := range operatorCount {
			if table[op].symbol != symbol && (op != InList || symbol != "in "+fnList) {
				continue
			}
			n := Compare(field, op, values...)
			n.Side = resource.Side(side) //nolint:gosec // 1 or 2
			asked, err := p.leaf(n, result{})
			return computed{2, takesText(func(f *Frame, s string) ref.Val {
				before, element, item := f.metadata, f.element, f.texts[Item]
				defer func() { f.metadata, f.element, f.texts[Item] = before, element, item }()
				f.metadata = map[string]string{"k": s}
				if field.ID == Item {
					f.element = elementOf(f, s)
				}
				return celResult(asked.ask(f), nil)
			})}, err
		}
	}
	return computed{}, nil
}

// elementOf returns the element with a text of a value that f has read.
func elementOf(f *Frame, text string) *Element {
	for _, v := range f.values {
		for i := range v.value.Elements {
			if e := &v.value.Elements[i]; e.Text == text {
				return e
			}
		}
	}
	return nil
}

// TestDecorator_ChangesNoMeaning checks that fused nodes give the same results as CEL: true, false
// and errors.
func TestDecorator_ChangesNoMeaning(t *testing.T) {
	l, err := withChecks()
	if err != nil {
		t.Fatal(err)
	}
	bare := intentWith(bare)
	other := intentWith(func(in *intent) {
		in.Cost = &cost{AmountMinor: -1, Currency: "USD"}
		in.Metadata = map[string]string{"env": "", "prod": "env"}
	})
	frames := []*Frame{testFrame(t, celIntent()), testFrame(t, bare), testFrame(t, other)}
	frames[2].SetText(GovernedAgentStatus, "unregistered")

	fused := 0
	for _, expr := range comparisons() {
		plain := compileTree(t, expr)
		checked, err := l.check(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		planned, err := l.plan(checked, resource.ForBlock)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if isFused(planned.root.(*expression).root) {
			fused++
		}
		for i, f := range frames {
			want, wantErr := plain.Eval(f)
			got, gotErr := planned.Eval(f)
			if got != want || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("%s over frame %d = %v, %v, without fusing %v, %v", expr, i, got, gotErr, want, wantErr)
			}
		}
	}
	if all := len(comparisons()); fused < all*2/3 {
		t.Errorf("%d of %d expressions are fused, want two thirds", fused, all)
	}
}

// TestNode_ChecksMeanTheSameInCEL checks that the trees of the policies' checks give the same
// results in CEL as in writ's own program.
func TestNode_ChecksMeanTheSameInCEL(t *testing.T) {
	g := conditiontest.New(5)
	text := func(id FieldID, op Operator, side resource.Side, values ...string) *Node {
		n := Compare(FieldOf(id), op, Texts(values...)...)
		n.Side = side
		return n
	}
	statuses := []string{"active", "disabled", "unregistered"}
	for range 2_000 {
		amount := Constant{Num: int64(g.IntN(4))}
		list := []string{conditiontest.Pick(g, "prod/**", "**/db", "prod/*"), conditiontest.Pick(g, "https://api.example.com/**", "staging/**")}
		types := []string{conditiontest.Pick(g, "sql.*", "deploy"), conditiontest.Pick(g, "pay", "SQL_write", "*")}
		nodes := []*Node{
			text(PolicyStatus, Eq, 0, conditiontest.Pick(g, "active", "revoked")),
			text(GovernedAgentStatus, In, 0, statuses[0], conditiontest.Pick(g, statuses...)),
			Either(Negate(Compare(FieldOf(RequireRegistered), IsTrue)), Negate(text(GovernedAgentStatus, Eq, 0, "unregistered"))),
			Either(text(AgentID, Eq, 0, "team-a/*"), text(AgentID, Glob, 0, "team-a/*")),
			Negate(text(ActionType, ActionDenied, 0, types...)), text(ActionType, ActionGlob, 0, types[g.IntN(3):]...),
			Negate(text(Resource, ResourceGlob, resource.ForBlock, list...)), text(Resource, ResourceGlob, resource.ForAllow, list[g.IntN(2):]...),
			Either(Negate(Has(FieldOf(Cost))), Compare(FieldOf(CostAmount), Lte, amount)),
			Either(Negate(Has(FieldOf(Cost))), text(CostCurrency, Eq, 0, "EUR")), Negate(Compare(FieldOf(UsageExceeded), IsTrue)), Negate(Compare(FieldOf(OrganizationStopped), IsTrue)),
			Negate(Compare(FieldOf(SessionClosed), IsTrue)), Negate(Compare(FieldOf(SessionExpired), IsTrue)),
			Compare(FieldOf(SessionOwn), IsTrue),
		}
		f := testFrame(t, g.Intent())
		f.SetText(GovernedAgentStatus, conditiontest.Pick(g, statuses...))
		f.SetInt(UsageExceeded, int64(g.IntN(2)))
		f.SetInt(OrganizationStopped, int64(g.IntN(2)))
		f.SetInt(SessionClosed, int64(g.IntN(2)))
		f.SetInt(SessionExpired, int64(g.IntN(2)))
		f.SetInt(SessionOwn, int64(g.IntN(2)))
		f.SetInt(RequireRegistered, int64(g.IntN(2)))
		n := nodes[g.IntN(len(nodes))]
		p, err := Plan(n)
		if err != nil {
			t.Fatalf("Plan(%s): %v", n.CEL(), err)
		}
		got, gotErr := p.Eval(f)
		want, wantErr := compileTree(t, n.CEL()).Eval(f)
		if got != want || gotErr != nil || wantErr != nil {
			t.Fatalf("%s = %v, %v, in CEL %v, %v", n.CEL(), got, gotErr, want, wantErr)
		}
	}
}

func isFused(root interpreter.InterpretableV2) bool {
	_, ok := root.(*fused)
	return ok
}

// comparisons returns `field op constant` for all combinations that type-check.
func comparisons() []string {
	var all []string
	for _, field := range []string{
		"intent.action_type", "intent.agent_id", "intent.resource", "intent.cost.currency", "agent.status",
		"policy.status", "intent.metadata.env", `intent.metadata["prod"]`,
	} {
		for _, s := range []string{`"sql.write"`, `"USD"`, `"prod"`, `"unregistered"`, `""`} {
			for _, op := range []string{"==", "!=", "<", ">="} {
				all = append(all, fmt.Sprintf("%s %s %s", field, op, s), fmt.Sprintf("%s %s %s", s, op, field))
			}
			all = append(all, fmt.Sprintf("%s in [%s, 'active']", field, s), fmt.Sprintf("!(%s in [%s])", field, s))
			for _, fn := range []string{"startsWith", "endsWith", "contains", "matches"} {
				all = append(all, fmt.Sprintf("%s.%s(%s)", field, fn, s))
			}
		}
	}
	for _, field := range []string{"intent.cost.amount_minor", "policy.version"} {
		for _, op := range []string{"==", "!=", "<", "<=", ">", ">="} {
			for _, n := range []int{-1, 3, 1249, 1250, 1251} {
				all = append(all, fmt.Sprintf("%s %s %d", field, op, n), fmt.Sprintf("%d %s %s", n, op, field))
			}
		}
	}
	return append(all, `has(intent.cost)`, `"env" in intent.metadata`, `has(intent.metadata.team)`)
}
