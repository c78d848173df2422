package condition

import (
	"testing"

	"writ.example/writ/engine/condition/conditiontest"
)

// TestCondition_RenderingsAgree checks that CEL agrees with the trees. For match objects and trees
// it compares the results. For conditions in CEL it also compares the errors.
func TestCondition_RenderingsAgree(t *testing.T) {
	g := conditiontest.New(1)
	g.Lists = true
	translated := 0
	for range 8_000 {
		doc := g.Condition()
		c := mustCondition(t, doc)
		if !c.Holds.IsRendered() || !c.Fails.IsRendered() {
			continue
		}
		translated++
		for range 4 {
			in := g.Intent()
			f := testFrame(t, in)
			got, err := c.Program.Eval(f)
			if c.tree != nil {
				if inCEL, celErr := compileTree(t, rendered(c)).Eval(f); inCEL != got || (celErr == nil) != (err == nil) {
					t.Fatalf("%s of %+v = %v, %v, and in CEL, %s, %v, %v", doc, in, got, err, rendered(c), inCEL, celErr)
				}
			}
			holds, fails := askTree(t, c.Holds, f), askTree(t, c.Fails, f)
			if holds != (err == nil && got) || fails != (err == nil && !got) {
				t.Fatalf("%s (as %s) of %+v = %v, %v, want holds %v, fails %v", doc, rendered(c), in, got, err, holds, fails)
			}
		}
	}
	if translated < 4_000 {
		t.Errorf("%d conditions were translated, want at least 4000 to mean something", translated)
	}
}

func TestCondition_Translate(t *testing.T) {
	tests := []struct {
		cel          string
		holds, fails string
	}{
		{`intent.metadata.env == 'prod'`,
			`"env" in intent.metadata && intent.metadata["env"] == "prod"`,
			`"env" in intent.metadata && !("env" in intent.metadata && intent.metadata["env"] == "prod")`},
		{`'prod' != intent.metadata["env"]`,
			`"env" in intent.metadata && !("env" in intent.metadata && intent.metadata["env"] == "prod")`,
			`"env" in intent.metadata && intent.metadata["env"] == "prod"`},
		{`5 < intent.cost.amount_minor`,
			`has(intent.cost) && intent.cost.amount_minor > 5`,
			`has(intent.cost) && !(has(intent.cost) && intent.cost.amount_minor > 5)`},
		{`has(intent.cost) && intent.action_type in ["a", "b"]`,
			`has(intent.cost) && intent.action_type in ["a", "b"]`,
			`!has(intent.cost) || !(intent.action_type in ["a", "b"])`},
		{`has(intent.cost.currency)`, `has(intent.cost)`, `!has(intent.cost)`},
		{`has(intent.agent_id)`, `true`, `false`},
		{`has(intent.metadata.env) || !("a.b" in intent.metadata)`,
			`"env" in intent.metadata || !("a.b" in intent.metadata)`,
			`!("env" in intent.metadata) && "a.b" in intent.metadata`},
		{`intent.issued_at > timestamp("2026-01-31T12:00:00Z")`,
			`intent.issued_at > timestamp("2026-01-31T12:00:00Z")`,
			`!(intent.issued_at > timestamp("2026-01-31T12:00:00Z"))`},
		{`has(intent.cost) ? intent.agent_id == "x" : intent.metadata.env == "y"`,
			`(has(intent.cost) && agent.name == "x") || (!has(intent.cost) && "env" in intent.metadata && intent.metadata["env"] == "y")`,
			`(has(intent.cost) && agent.name != "x") || ` +
				`(!has(intent.cost) && "env" in intent.metadata && !("env" in intent.metadata && intent.metadata["env"] == "y"))`},
		{`resource_glob(["a/**", "b"], intent.resource)`,
			`resource_glob(["a/**", "b"], intent.resource)`, `!resource_glob(["a/**", "b"], intent.resource)`},
	}
	for _, tt := range tests {
		t.Run(tt.cel, func(t *testing.T) {
			c := mustCondition(t, `{"cel":`+Quote(tt.cel)+`}`)
			if got := c.Holds.CEL(); got != tt.holds {
				t.Errorf("holds = %s, want %s", got, tt.holds)
			}
			if got := c.Fails.CEL(); got != tt.fails {
				t.Errorf("fails = %s, want %s", got, tt.fails)
			}
		})
	}
}

func TestCondition_Untranslatable(t *testing.T) {
	for _, cel := range []string{
		`intent.metadata.env == intent.metadata.team`,
		`intent.metadata.exists(k, k == "env")`,
		`size(intent.resource) > 5`,
		`has(intent.cost) ? "a" == intent.metadata.env + "b" : false`,
		`int(intent.issued_at) > 5`,
		`int(intent.metadata.n + "0") > 5`,
		`int(int(intent.metadata.n)) > int(intent.metadata.m)`,
		`double(intent.metadata.n) > 5.0`,
		`intent.resource.lowerAscii() == "x"`,
		`intent.issued_at > timestamp("2026-01-31T12:00:00Z") + duration("1h")`,
		`intent.issued_at.getHours() > 5`,
		`decided_at.getDayOfWeek("Europe/Berlin") in [0, 6]`,
		`(intent.agent_id == "x") == true`,
		`intent.agent_id in [intent.metadata.owner]`,
	} {
		t.Run(cel, func(t *testing.T) {
			c := mustCondition(t, `{"cel":`+Quote(cel)+`}`)
			if c.Holds.IsRendered() && c.Fails.IsRendered() {
				t.Errorf("the trees are %s and %s, want one that is not rendered", c.Holds.CEL(), c.Fails.CEL())
			}
			if got, ok := c.CEL(); got != cel || !ok {
				t.Errorf("CEL() = %s, %v, want the source", got, ok)
			}
		})
	}
}

// TestCondition_ChoicesWithinChoicesStaySmall checks that nested choices have small trees. The
// tree of a choice contains its condition twice, so nested choices could make trees that no
// machine can hold.
func TestCondition_ChoicesWithinChoicesStaySmall(t *testing.T) {
	source := `intent.agent_id == "x"`
	for range 60 {
		source = "(" + source + ") ? has(intent.cost) : false"
	}
	c := mustCondition(t, `{"cel":`+Quote(source)+`}`)
	if n := c.Holds.Count() + c.Fails.Count(); n > 2*MaxEntries {
		t.Errorf("the trees of 60 choices have %d nodes, want at most %d", n, 2*MaxEntries)
	}
}
