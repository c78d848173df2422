package condition

import (
	"testing"

	"writ/engine/condition/conditiontest"
	"writ/engine/resource"
)

func mustCompact(t *testing.T, n *Node) Compact {
	t.Helper()
	b, err := AppendCompact([]byte("before"), n)
	if err != nil {
		t.Fatal(err)
	}
	c, rest := CutCompact(string(append(b, "after"...))[len("before"):])
	if rest != "after" {
		t.Fatalf("CutCompact leaves %q, want what follows", rest)
	}
	return c
}

// A Compact says what the Program of the same tree does.
func TestCompact_AgreesWithProgram(t *testing.T) {
	g := conditiontest.New(1)
	action := func(op Operator, types ...string) *Node { return Compare(FieldOf(ActionType), op, Texts(types...)...) }
	asked := func(side resource.Side, patterns ...string) *Node {
		n := Compare(FieldOf(Resource), ResourceGlob, Texts(patterns...)...)
		n.Side = side
		return n
	}
	trees := []*Node{
		Always(true), Always(false),
		action(ActionGlob, "sql.write", "dep*y", "*.read"), action(ActionDenied, "SQL.*", "de-ploy", "pay"), action(ActionDenied, "sql.*", "pay"),
		asked(resource.ForBlock, "prod/**", "https://*.example.com/**"), asked(resource.ForAllow, "prod/**", "https://*.example.com/v1/*", "d?"),
		Compare(FieldOf(AgentID), Glob, Texts("team-a/*")...), Compare(FieldOf(UsageExceeded), IsTrue),
		Compare(FieldOf(CostAmount), Lte, Constant{Num: 2}), Compare(FieldOf(CostCurrency), Eq, Texts("EUR")...), Has(FieldOf(Cost)),
	}
	compared := 0
	for range 1000 {
		c, err := Compile(g.Condition(), Options{Side: conditiontest.Pick(g, resource.ForBlock, resource.ForAllow)})
		if err != nil || c.tree == nil {
			continue
		}
		tree := c.tree
		if g.IntN(2) == 0 {
			tree = Either(Negate(conditiontest.Pick(g, trees...)), Both(tree, conditiontest.Pick(g, trees...)))
		}
		b, err := AppendCompact(nil, tree)
		if err != nil {
			tree = conditiontest.Pick(g, trees...)
			b = []byte(mustCompact(t, tree).flat)
		}
		program, err := Plan(tree)
		if err != nil {
			t.Fatal(err)
		}
		compact, _ := CutCompact(string(b))
		for range 5 {
			f := testFrame(t, g.Intent())
			f.SetBool(UsageExceeded, g.IntN(2) == 0)
			want, wantErr := program.Eval(f)
			if got, err := compact.Eval(f); got != want || err != nil || wantErr != nil {
				t.Fatalf("%s: Eval = %t, %v, want %t, %v", tree.CEL(), got, err, want, wantErr)
			}
			compared++
			f.Free()
		}
	}
	if compared < 1000 {
		t.Errorf("compared %d times, want more", compared)
	}
}

// What no check of a policy asks is refused, not run as something else.
func TestAppendCompact_Refuses(t *testing.T) {
	for _, n := range []*Node{
		opaque(),
		Both(Always(true), opaque()),
		Has(MetadataKey("env")),
		Compare(MetadataKey("env"), Eq, Texts("prod")...),
		Compare(FieldOf(AgentID), Regex, Texts("a")...),
		Compare(FieldOf(Resource), Eq, Texts("db")...),
		Compare(FieldOf(Resource), ResourceGlob, Texts("db")...),
		Compare(FieldOf(IssuedAt), Gt, Texts("2026-01-31T12:00:00Z")...),
		Compare(FieldOf(CostAmount), In, Constant{Num: 1}),
		Compare(FieldOf(ActionType), ActionGlob, Texts("a?")...),
	} {
		if _, err := AppendCompact(nil, n); err == nil {
			t.Errorf("AppendCompact(%s %v) = nil, want it refused", table[n.Op].symbol, n.Field)
		}
	}
}

// A Compact that is damaged has no value: the check that it is of fails.
func TestCompact_EvalOfDamageIsAnError(t *testing.T) {
	f := testFrame(t, conditiontest.New(1).Intent())
	c := mustCompact(t, Compare(FieldOf(ActionType), ActionGlob, Texts("a", "b.*")...))
	if holds, err := (Compact{c.flat[:compactHeader+2]}).Eval(f); err == nil {
		t.Errorf("Eval of two bytes of a list = %t, want an error", holds)
	}
}
