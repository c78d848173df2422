package engine

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/interpreter"
)

// plainly compiles an expression without writ's planning step.
func plainly(t *testing.T, s *scope, expr string) *program {
	t.Helper()
	checked, err := s.check(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	root, err := s.planner.NewInterpretable(checked.NativeRep())
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return &program{root: root}
}

// Fused nodes mean what CEL means: true, false and errors alike.
func TestDecorator_ChangesNoMeaning(t *testing.T) {
	env, err := standardEnv()
	if err != nil {
		t.Fatal(err)
	}
	frames := []*frame{envFrame(t), envFrame(t), envFrame(t)}
	frames[1].in.Intent.Cost, frames[1].in.Intent.Metadata = nil, nil
	frames[2].in.Intent.Cost = &Cost{AmountMinor: -1, Currency: "USD"}
	frames[2].in.Intent.Metadata = map[string]string{"env": "", "prod": "env"}
	frames[2].in.Agent = AgentUnregistered

	fused := 0
	for _, expr := range comparisons() {
		plain := plainly(t, env.checks, expr)
		planned, err := env.checks.compile(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if isFused(planned.root) {
			fused++
		}
		for i, f := range frames {
			want, wantErr := plain.eval(f)
			got, gotErr := planned.eval(f)
			if got != want || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("%s over frame %d = %v, %v, without fusing %v, %v", expr, i, got, gotErr, want, wantErr)
			}
		}
	}
	if all := len(comparisons()); fused < all*2/3 {
		t.Errorf("%d of %d expressions are fused, want two thirds", fused, all)
	}
}

func isFused(root interpreter.InterpretableV2) bool {
	_, ok := root.(*fused)
	return ok
}

// comparisons returns `field op constant` in every combination that type-checks.
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
	return append(all, `has(intent.cost)`, `"env" in intent.metadata`, `has(intent.metadata.team)`,
		`usage.exceeded`, `deployment.require_registered_agents`)
}
