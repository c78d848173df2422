package lint

import (
	"slices"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// TestDecision_DecidedAt_Lint: a condition that rests on issued_at is warned of, in each form, and named decided_at.
func TestDecision_DecidedAt_Lint(t *testing.T) {
	cel := func(source string) string { return `{"cel":` + condition.Quote(source) + `}` }
	inRego := func(source string) string { return `{"rego":` + condition.Quote(source) + `}` }
	for doc, want := range map[string]bool{
		`{"issued_at":{"$gt":"2026-01-31T12:00:00Z"}}`:                                                        true,
		`{"$or":[{"action_type":"x"},{"issued_at":"2026-01-31T12:00:00Z"}]}`:                                  true,
		`{"not":{"field":"intent.issued_at","op":"lt","value":"2026-01-31T12:00:00Z"}}`:                       true,
		`{"decided_at":{"$gt":"2026-01-31T12:00:00Z"}}`:                                                       false,
		`{"issued_at":{"$exists":true}}`:                                                                      false,
		cel(`intent.action_type == "x" && timestamp("2026-01-31T12:00:00Z") < intent.issued_at`):              true,
		cel(`intent.issued_at.getDayOfWeek() in [0, 6]`):                                                      true,
		cel(`intent.issued_at.getHours("Europe/Berlin") > int(intent.metadata.h)`):                            true,
		cel(`string(intent.issued_at).startsWith("2026")`):                                                    true,
		cel(`decided_at - intent.issued_at > duration("5m")`):                                                 false,
		cel(`intent.issued_at > decided_at + duration("5m")`):                                                 false,
		cel(`decided_at.getHours("Europe/Berlin") >= 22`):                                                     false,
		inRego(`time.weekday(time.parse_rfc3339_ns(input.intent.issued_at)) == "Sunday"`):                     true,
		inRego(`time.weekday(time.parse_rfc3339_ns(input.decided_at)) == "Sunday"`):                           false,
		inRego(`time.parse_rfc3339_ns(input.decided_at) - time.parse_rfc3339_ns(input.intent.issued_at) > 5`): false,
	} {
		r, err := engine.CompileRule(engine.Rule{Name: "r", Condition: doc, Action: `{"decision":"deny"}`, IsActive: true}, engine.Options{CompileRego: rego.CompileCondition})
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		warns := slices.ContainsFunc(Rules([]*engine.CompiledRule{r}), func(w Warning) bool { return w.Rule == callerTime })
		if warns != want {
			t.Errorf("%s: warned is %v, want %v", doc, warns, want)
		}
	}
}
