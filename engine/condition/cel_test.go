package condition

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

// celIntent returns the intent for which the expressions below are evaluated.
func celIntent() *intent {
	return &intent{
		IntentID: "i", PolicyID: "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01", AgentID: "team/bot", ActionType: "sql.write", Resource: "db/main/orders",
		Cost: &cost{AmountMinor: 1250, Currency: "EUR"}, Metadata: map[string]string{"env": "prod", "note": "a b"},
		IssuedAt: "2026-01-31T09:30:00Z",
	}
}

func compileExpr(expr string) (*Program, error) {
	l, err := cels()
	if err != nil {
		return nil, err
	}
	checked, err := l.check(expr)
	if err != nil {
		return nil, err
	}
	return l.plan(checked, resource.ForBlock)
}

func TestProgram_Eval(t *testing.T) {
	const failed = "error"
	tests := []struct{ expr, want, withoutCost string }{
		{`intent.action_type == "sql.write"`, "true", "true"},
		{`"sql.write" != intent.action_type`, "false", "false"},
		{`intent.action_type in ["sql.read", "sql.write"]`, "true", "true"},
		{`!(intent.action_type in [])`, "true", "true"},
		{`intent.cost.amount_minor > 1000`, "true", failed},
		{`intent.cost.amount_minor in [] || intent.issued_at in []`, "false", failed},
		{`1250 <= intent.cost.amount_minor`, "true", failed},
		{`2000 <= intent.cost.amount_minor`, "false", failed},
		{`intent.cost.amount_minor == 1250 && intent.cost.amount_minor >= 1250 && intent.cost.amount_minor < 1251`, "true", failed},
		{`intent.cost.amount_minor != 1250`, "false", failed},
		{`intent.cost.amount_minor * 2 > 2400`, "true", failed},
		{`intent.cost.currency == "EUR"`, "true", failed},
		{`has(intent.cost)`, "true", "false"},
		{`has(intent.cost.amount_minor) && intent.cost.amount_minor > 1000`, "true", "false"},
		{`!has(intent.cost.currency) || intent.cost.currency in ["EUR", "USD"]`, "true", "true"},
		{`has(intent.cost) ? intent.cost.amount_minor > 1000 : false`, "true", "false"},
		{`has(intent.resource) && has(agent.status) && has(intent.metadata)`, "true", "true"},
		{`has(intent.metadata.env) && intent.metadata.env == "prod"`, "true", "true"},
		{`has(intent.metadata.team)`, "false", "false"},
		{`"env" in intent.metadata && intent.metadata["env"] in ["prod"]`, "true", "true"},
		{`"team" in intent.metadata`, "false", "false"},
		{`intent.metadata.team == "a"`, failed, failed},
		{`intent.metadata.team != "a"`, failed, failed},
		{`intent.metadata.team == "a" || true`, "true", "true"},
		{`intent.metadata.exists(k, k.startsWith("en"))`, "true", "true"},
		{`intent.metadata.all(k, intent.metadata[k] != "")`, "true", "true"},
		{`intent.metadata.exists(k, glob("pr*", intent.metadata[k]))`, "true", "true"},
		{`["prod", "dr"].exists(e, intent.metadata.env == e)`, "true", "true"},
		{`["x"].exists(e, intent.action_type == "sql.write" && glob("team/*", intent.agent_id))`, "true", "true"},
		{`intent.metadata.note.matches("^a.b$")`, "true", "true"},
		{`intent.resource.startsWith("db/") && intent.resource.endsWith("orders") && intent.resource.contains("main")`, "true", "true"},
		{`intent.resource.lowerAscii() == "db/main/orders"`, "true", "true"},
		{`resource_glob(["a", "db/*/orders"], intent.resource)`, "true", "true"},
		{`resource_glob("db/*", intent.resource)`, "false", "false"},
		{`glob("team/*", intent.agent_id) && glob(["x", "team/b?t"], agent.id)`, "true", "true"},
		{`glob("*", intent.agent_id)`, "false", "false"},
		{`glob("x*", "x" + intent.agent_id) || glob("x*/*", "x" + intent.agent_id)`, "true", "true"},
		{`action_matches("sql.*", intent.action_type)`, "true", "true"},
		{`agent.status == "active" && agent.id == intent.agent_id`, "true", "true"},
		{`policy.version >= 3 && policy.status == "active" && policy.policy_id == intent.policy_id`, "true", "true"},
		{`policy.agent_id == "team-a/deployer" && policy.organization_id == "org"`, "true", "true"},
		{`intent.issued_at < timestamp("2026-02-01T00:00:00Z")`, "true", "true"},
		{`intent.issued_at.getFullYear() == 2026 && intent.intent_id == "i"`, "true", "true"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			p, err := compileExpr(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			check := func(f *Frame, want string) {
				t.Helper()
				got, err := p.Eval(f)
				text := map[bool]string{true: "true", false: "false"}[got]
				if err != nil {
					text = failed
				}
				if text != want {
					t.Errorf("eval(cost %v) = %s (%v), want %s", f.has(Cost), text, err, want)
				}
			}
			f := testFrame(t, celIntent())
			check(f, tt.want)
			check(f, tt.want)
			free := celIntent()
			free.Cost = nil
			check(testFrame(t, free), tt.withoutCost)
		})
	}
}

func TestScope_CompileRefuses(t *testing.T) {
	tests := []struct {
		name, expr, want string
		line, column     int
	}{
		{"syntax", "intent.action_type ==", "Syntax error", 1, 22},
		{"type, with its position", "true &&\n  intent.cost.amount_minor == 'x'", "no matching overload", 2, 28},
		{"undeclared", "intent.resorce == 'x'", "did you mean intent.resource?", 1, 1},
		{"no such field", "has(intent.resorce)", "no such field", 1, 11},
		{"cost is no value", "intent.cost == 5", "undeclared", 1, 1},
		{"not a condition", "intent.resource", "is a string, want a bool", 1, 1},
		{"a check's variable", "usage.exceeded", "undeclared", 1, 1},
		{"hidden variable", "@has_cost", "Syntax error", 1, 1},
		{"shadowed root", "[1].exists(intent, has(intent.cost))", `"intent"`, 0, 0},
		{"bad glob", "glob('[', intent.agent_id)", "glob: pattern 0", 0, 0},
		{"second glob is bad", "resource_glob(['a', 'b['], intent.resource)", "pattern 1", 0, 0},
		{"computed glob", "glob(intent.agent_id, intent.resource)", "must be constants", 0, 0},
		{"computed globs", "glob(['a', intent.agent_id], intent.resource)", "must be constants", 0, 0},
		{"bad regex", "intent.resource.matches('(')", "missing closing )", 0, 0},
		{"too dear", "intent.metadata.all(a, intent.metadata.all(b, intent.metadata.all(c, a + b + c != intent.resource)))", "worst case", 0, 0},
		{"too long", strings.Repeat(" ", MaxCondition) + "true", "longer than", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compileExpr(tt.expr)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Mistakes[0].Message, tt.want) {
				t.Fatalf("compile = %v, want an *Error that says %q", err, tt.want)
			}
			if m := e.Mistakes[0]; m.Line != tt.line || tt.line > 0 && m.Column != tt.column {
				t.Errorf("compile = %v, want it at %d:%d", e, tt.line, tt.column)
			}
		})
	}
}

// TestProgram_EvalAllocatesNothing checks that common conditions run without allocating.
func TestProgram_EvalAllocatesNothing(t *testing.T) {
	f := testFrame(t, celIntent())
	for _, expr := range []string{
		`intent.action_type == "sql.write" && intent.cost.amount_minor > 100 && intent.metadata.env in ["prod", "dr"]`,
		`has(intent.cost) && has(intent.metadata.env) && !("team" in intent.metadata)`,
		`resource_glob(["x", "db/**"], intent.resource) || action_matches("x.*", intent.action_type)`,
		`intent.resource.startsWith("db") && intent.resource.matches("^db/.*$") && agent.status != "disabled"`,
	} {
		p, err := compileExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(100, func() {
			if ok, err := p.Eval(f); err != nil || !ok {
				t.Errorf("%s = %v, %v, want true", expr, ok, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s allocated %v times, want 0", expr, allocs)
		}
	}
	absent, err := compileExpr(`intent.metadata.team == "a"`)
	if err != nil {
		t.Fatal(err)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		if _, err := absent.Eval(f); CauseOf(err) != CauseMissing {
			t.Errorf("of a missing key = %v, want that cause", err)
		}
	}); allocs != 0 {
		t.Errorf("a missing key allocated %v times, want 0", allocs)
	}
}

func TestFrame_SetResource(t *testing.T) {
	for _, expr := range []string{`intent.resource == "other"`, `intent.resource.lowerAscii() == "other"`} {
		p, err := compileExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		f := testFrame(t, celIntent())
		for _, step := range []struct {
			resource string
			want     bool
		}{{"db/main/orders", false}, {"other", true}, {"db/main/orders", false}} {
			f.SetReading(resource.Reading{Text: step.resource, Readers: resource.All})
			if got, err := p.Eval(f); err != nil || got != step.want {
				t.Errorf("%s with %q = %v, %v, want %v", expr, step.resource, got, err, step.want)
			}
		}
	}
}

// TestProgram_PanicIsAnError checks that a panic in a running condition becomes an error. An error
// never allows.
func TestProgram_PanicIsAnError(t *testing.T) {
	if ok, err := (&Program{}).Eval(testFrame(t, celIntent())); ok || err == nil {
		t.Errorf("eval of a program that panics = %v, %v, want an error", ok, err)
	}
}

// TestDecision_Rules_CELHasACostLimit checks that no condition can use up the memory of the
// process. It also checks that the length of a text bounds the cost of its `split` in CEL.
func TestDecision_Rules_CELHasACostLimit(t *testing.T) {
	for expr, fine := range map[string]bool{
		`intent.resource.replace("a", intent.resource) == "x"`:                                                    false,
		`intent.resource.replace("", "aaaaaaaaaaaa").replace("", "aaaaaaaaaaaaaaaaaaaaaa") == "x"`:                false,
		`intent.resource.lowerAscii().trim().replace("", intent.metadata.a) == "x"`:                               false,
		`intent.metadata.map(k, intent.metadata[k]).join(intent.resource).size() > 5`:                             false,
		`"%.999999999f".format([1.0]) == "x"`:                                                                     false,
		`intent.metadata.exists(k, intent.resource.indexOf(intent.metadata[k]) > 5)`:                              false,
		`intent.metadata.exists(a, intent.metadata.exists(b, intent.resource.split("").size() == 3))`:             false,
		`intent.resource.indexOf("prod") == 0 && intent.resource.split("/").size() > 2`:                           true,
		`intent.resource.replace("-", "_") == "a_b"`:                                                              true,
		`intent.resource.lowerAscii().substring(1).replace("-", "").upperAscii().startsWith("PROD")`:              true,
		`intent.metadata.to.split(",").all(x, x.endsWith("@ours.example"))`:                                       true,
		`intent.metadata.to.split(",").exists(x, x.contains("@theirs"))`:                                          true,
		`intent.metadata.to.split(",").all(x, glob("*@ours.example", x))`:                                         true,
		`intent.metadata.to.split(",")[0].startsWith("a")`:                                                        true,
		`intent.metadata.to.split(",").size() < 5`:                                                                true,
		`intent.resource.split("/").all(x, x != "..")`:                                                            true,
		`intent.metadata.to.split("").all(x, intent.resource.split("").all(y, x == y))`:                           false,
		`intent.metadata.to.split(",").all(x, x.replace(x, intent.resource).replace("a", intent.resource) == "")`: false,
	} {
		_, err := compileExpr(expr)
		if fine && err != nil || !fine && (err == nil || !strings.Contains(err.Error(), "the worst case costs")) {
			t.Errorf("compile(%s) = %v, want accepted, or else refused for its cost: %t", expr, err, fine)
		}
	}
}

// TestCEL_IsImportedWhereItIsPlanned checks that only the files cel*.go import cel-go.
func TestCEL_IsImportedWhereItIsPlanned(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"github.com/google/cel-go`) && !strings.HasPrefix(name, "cel") {
			t.Errorf("%s imports cel-go", name)
		}
	}
}
