package condition

import (
	"errors"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

type (
	intent = conditiontest.Intent
	cost   = conditiontest.Cost
)

// intentWith returns an intent that edit has changed.
func intentWith(edit func(*intent)) *intent {
	in := &intent{
		IntentID:   "6f1c1f0e-33a5-4b1e-9c0a-0d7f0f6f3b11",
		PolicyID:   "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01",
		AgentID:    "team-a/deployer",
		ActionType: "deploy.web",
		Resource:   "prod/web/api",
		Cost:       &cost{AmountMinor: 5000, Currency: "EUR"},
		Metadata:   map[string]string{"env": "prod", "a.b": "dotted", "empty": ""},
		IssuedAt:   "2026-01-31T12:00:00Z",
		DecidedAt:  time.Date(2026, 1, 31, 23, 30, 0, 0, time.UTC),
	}
	if edit != nil {
		edit(in)
	}
	return in
}

// testFrame returns a frame with the values of in.
func testFrame(t testing.TB, in *intent) *Frame {
	t.Helper()
	f := NewFrame()
	f.SetText(IntentID, in.IntentID)
	f.SetText(PolicyID, in.PolicyID)
	f.SetText(AgentID, in.AgentID)
	f.SetText(ActionType, in.ActionType)
	f.SetResource(in.Resource)
	f.SetText(IssuedAt, in.IssuedAt)
	f.SetDecidedAt(in.DecidedAt)
	f.SetMetadata(in.Metadata)
	if in.Cost != nil {
		f.SetInt(CostAmount, in.Cost.AmountMinor)
		f.SetText(CostCurrency, in.Cost.Currency)
	} else {
		f.SetAbsent(Cost, CostAmount, CostCurrency)
	}
	f.SetText(GovernedAgentID, in.AgentID)
	f.SetText(GovernedAgentStatus, "active")
	f.SetText(PolicyPolicyID, "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01")
	f.SetInt(PolicyVersion, 3)
	f.SetText(PolicyOrganizationID, "org")
	f.SetText(PolicyAgentID, "team-a/deployer")
	f.SetText(PolicyStatus, "active")
	r, err := resource.Read(in.Resource)
	if err != nil {
		t.Fatalf("Read(%q): %v", in.Resource, err)
	}
	f.SetReadings(r)
	f.SetLists(testLists())
	return f
}

func mustCondition(t testing.TB, doc string) *Condition {
	t.Helper()
	c, err := Compile(doc, Options{Side: resource.ForBlock})
	if err != nil {
		t.Fatalf("Compile(%s): %v", doc, err)
	}
	return c
}

func rendered(c *Condition) string {
	text, _ := c.CEL()
	return text
}

// checkCondition checks that doc gives want for in. It evaluates the program, the CEL and askTree.
func checkCondition(t *testing.T, doc string, in *intent, want bool) {
	t.Helper()
	c := mustCondition(t, doc)
	f := testFrame(t, in)
	if got, err := c.Program.Eval(f); err != nil || got != want {
		t.Errorf("%s (as %s) = %v, %v, want %v", doc, rendered(c), got, err, want)
	}
	if got, err := compileTree(t, rendered(c)).Eval(f); err != nil || got != want {
		t.Errorf("CEL of %s, %s = %v, %v, want %v", doc, rendered(c), got, err, want)
	}
	if got := askTree(t, c.Holds, f); got != want {
		t.Errorf("tree of %s = %v, want %v", doc, got, want)
	}
	if got := askTree(t, c.Fails, f); got == want {
		t.Errorf("negated tree of %s = %v, want %v", doc, got, !want)
	}
}

// wantInvalid checks that err is an *Error that contains all of texts.
func wantInvalid(t *testing.T, err error, texts ...string) {
	t.Helper()
	var bad *Error
	if !errors.As(err, &bad) || len(bad.Mistakes) == 0 {
		t.Fatalf("error = %v, want an *Error", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error = %q, want it to say %q", err, text)
		}
	}
}

// TestSide_ZeroIsRefused checks that a condition without a side does not compile and is an error
// when it is evaluated. Such a condition can neither allow an intent nor fail to block one.
func TestSide_ZeroIsRefused(t *testing.T) {
	if _, err := Compile(`{"resource":"prod/**"}`, Options{}); err == nil {
		t.Error("Compile without a side succeeded")
	}
	if _, err := Plan(Compare(FieldOf(Resource), ResourceGlob, Texts("prod/db")...)); err == nil {
		t.Error("Plan of a list without a side succeeded")
	}
	for _, patterns := range [][]string{nil, {"prod/**"}} {
		if _, err := glob.Compile(patterns, 0); err == nil {
			t.Errorf("glob.Compile(%q) without a side succeeded", patterns)
		}
	}
	f := testFrame(t, intentWith(bare))
	if ok, err := (&Program{root: &readings{}}).Eval(f); ok || err == nil {
		t.Errorf("readings without a side = %v, %v, want an error", ok, err)
	}
}

// TestPlan_Refuses checks that Plan refuses nodes that this package never makes.
func TestPlan_Refuses(t *testing.T) {
	for _, n := range []*Node{
		opaque(),
		Both(Always(true), opaque()),
		Compare(FieldOf(CostAmount), In, Constant{Num: 1}),
		Compare(FieldOf(ActionType), ActionGlob, Texts("a?")...),
	} {
		if _, err := Plan(n); err == nil {
			t.Errorf("Plan(%s %v) = nil, want it refused", table[n.Op].symbol, n.Field)
		}
	}
}
