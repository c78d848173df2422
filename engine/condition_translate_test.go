package engine

import (
	"strings"
	"testing"
)

// TestCondition_RenderingsAgree holds CEL to the trees: of forms 1 and 2, and,
// with its errors, of form 3.
func TestCondition_RenderingsAgree(t *testing.T) {
	g := newGenerator(1)
	translated := 0
	for range 8_000 {
		doc := g.condition()
		c := mustCondition(t, doc)
		if c.holds.some((*node).isOpaque) || c.fails.some((*node).isOpaque) {
			continue
		}
		translated++
		for range 4 {
			in := g.intent()
			f := testFrame(t, in)
			got, err := c.eval(f)
			holds, fails := askTree(t, c.holds, f), askTree(t, c.fails, f)
			if holds != (err == nil && got) || fails != (err == nil && !got) {
				t.Fatalf("%s (as %s) of %+v = %v, %v, want holds %v, fails %v", doc, c.cel, in, got, err, holds, fails)
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
			`!(has(intent.cost)) || !(intent.action_type in ["a", "b"])`},
		{`has(intent.cost.currency)`, `has(intent.cost)`, `!(has(intent.cost))`},
		{`has(intent.agent_id)`, `true`, `false`},
		{`has(intent.metadata.env) || !("a.b" in intent.metadata)`,
			`"env" in intent.metadata || !("a.b" in intent.metadata)`,
			`!("env" in intent.metadata) && "a.b" in intent.metadata`},
		{`intent.issued_at > timestamp("2026-01-31T12:00:00Z")`,
			`intent.issued_at > timestamp("2026-01-31T12:00:00Z")`,
			`!(intent.issued_at > timestamp("2026-01-31T12:00:00Z"))`},
		{`has(intent.cost) ? intent.agent_id == "x" : intent.metadata.env == "y"`,
			`(has(intent.cost) && intent.agent_id == "x") || (!(has(intent.cost)) && "env" in intent.metadata && intent.metadata["env"] == "y")`,
			`(has(intent.cost) && !(intent.agent_id == "x")) || ` +
				`(!(has(intent.cost)) && "env" in intent.metadata && !("env" in intent.metadata && intent.metadata["env"] == "y"))`},
		{`resource_glob(["a/**", "b"], intent.resource)`,
			`resource_glob(["a/**", "b"], intent.resource)`, `!(resource_glob(["a/**", "b"], intent.resource))`},
	}
	for _, tt := range tests {
		t.Run(tt.cel, func(t *testing.T) {
			c := mustCondition(t, `{"cel":`+Quote(tt.cel)+`}`)
			if got := renderCEL(c.holds); got != tt.holds {
				t.Errorf("holds = %s, want %s", got, tt.holds)
			}
			if got := renderCEL(c.fails); got != tt.fails {
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
		`(intent.agent_id == "x") == true`,
		`intent.agent_id in [intent.metadata.owner]`,
	} {
		t.Run(cel, func(t *testing.T) {
			r, err := CompileRule(Rule{ID: "r1", Condition: `{"cel":` + Quote(cel) + `}`, Action: `{"decision":"deny"}`}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := r.Rego("rule_1"); err == nil || !strings.Contains(err.Error(), "r1") {
				t.Errorf("Rego() = %s, %v, want an error that names the rule", got, err)
			}
			if got, ok := r.CEL(); got != cel || !ok {
				t.Errorf("CEL() = %s, %v, want the source", got, ok)
			}
		})
	}
}

// A choice writes its condition twice, so that one within the other could make
// trees that no machine holds.
func TestCondition_ChoicesWithinChoicesStaySmall(t *testing.T) {
	source := `intent.agent_id == "x"`
	for range 60 {
		source = "(" + source + ") ? has(intent.cost) : false"
	}
	c := mustCondition(t, `{"cel":`+Quote(source)+`}`)
	if n := c.holds.count() + c.fails.count(); n > 10*maxChoice {
		t.Errorf("the trees of 60 choices have %d nodes, want at most %d", n, 10*maxChoice)
	}
}
