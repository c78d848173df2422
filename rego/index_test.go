package rego

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// unindexedLibraries compiles conditions that the index does not know, and that are asked for every
// reading and every name.
type unindexedLibraries struct{ engine.Libraries }

func (l unindexedLibraries) Compile(source string) (engine.RegoCondition, error) {
	c, err := l.Libraries.Compile(source)
	if err != nil {
		return nil, err
	}
	plain := *c.(*sandboxed)
	plain.reads = engine.RegoReads{Resource: true, Agent: true, Messages: plain.reads.Messages}
	return &plain, nil
}

// pair is a condition in two languages.
type pair struct{ rego, cel string }

// line draws a line of a body. Lines that fail need metadata.env to be no number.
func (g *generator) line(fails bool) pair {
	field := g.one("action_type", "action_type", "resource", "agent_id", "metadata.env", "metadata.n")
	words := map[string][]string{"action_type": actionTypes, "resource": append([]string{"prod/", "https:", "prod"}, resources...),
		"agent_id": append([]string{"team-a/", "b"}, agents...), "metadata.env": {"prod", "dr", "x"}, "metadata.n": {"3", "7"}}[field]
	word, other := g.one(words...), g.one(words...)
	r, c := "input.intent."+field, "intent."+field
	switch g.r.IntN(12) {
	case 0, 1:
		return pair{fmt.Sprintf("%s == %q", r, word), fmt.Sprintf("%s == %q", c, word)}
	case 2:
		return pair{fmt.Sprintf("%s in {%q, %q}", r, word, other), fmt.Sprintf("%s in [%q, %q]", c, word, other)}
	case 3, 4:
		start := word[:g.r.IntN(len(word)+1)]
		if strings.ToValidUTF8(start, "") != start {
			start = word
		}
		return pair{fmt.Sprintf("startswith(%s, %q)", r, start), fmt.Sprintf("%s.startsWith(%q)", c, start)}
	case 5:
		return pair{fmt.Sprintf("glob.match(%q, [], %s)", "sql**", r), fmt.Sprintf("%s.startsWith('sql')", c)}
	case 6:
		return pair{fmt.Sprintf("not %s == %q", r, word), fmt.Sprintf("!(%s == %q)", c, word)}
	case 7:
		name := fmt.Sprintf("name_%d", g.r.IntN(1_000_000))
		return pair{fmt.Sprintf("%s := %s; %s == %q", name, r, name, word), fmt.Sprintf("%s == %q", c, word)}
	case 8:
		return pair{fmt.Sprintf("%s != %q", r, word), fmt.Sprintf("%s != %q", c, word)}
	case 9:
		return pair{fmt.Sprintf("input.intent.action_type == %q with input.intent.action_type as %q", word, other), fmt.Sprint(word == other)}
	}
	if fails && g.chance(60) {
		return pair{`to_number(input.intent.metadata.env) > 5`, `int(intent.metadata.env) > 5`}
	}
	return pair{`to_number(input.intent.metadata.n) > 5`, `int(intent.metadata.n) > 5`}
}

func (g *generator) lines(fails bool) pair {
	var rego, cel []string
	for range 1 + g.r.IntN(4) {
		l := g.line(fails)
		rego, cel = append(rego, l.rego), append(cel, l.cel)
	}
	return pair{strings.Join(rego, "\n"), "(" + strings.Join(cel, " && ") + ")"}
}

// pair draws a condition in Rego and in CEL. In CEL an alternative that is true decides, even if
// another one is an error. In Rego it does not. So alternatives have no lines that fail.
func (g *generator) pair() pair {
	one := g.lines(true)
	switch g.r.IntN(12) {
	case 8, 9, 10, 11:
		return g.denies()
	case 0:
		other := g.lines(true)
		return pair{"package p\n\nother if {\n" + other.rego + "\n}\n\nmatch if {\n" + one.rego + "\nother\n}", one.cel + " && " + other.cel}
	case 1:
		other := g.lines(true)
		for strings.Contains(other.rego, " with ") { // it would not change a parameter
			other = g.lines(true)
		}
		return pair{"package p\n\nother(input_) if {\n" + strings.ReplaceAll(other.rego, "input.", "input_.") + "\n}\n\nmatch if {\nother(input)\n" + one.rego + "\n}",
			one.cel + " && " + other.cel}
	case 2:
		return pair{"package p\n\ndefault match := false\n\nmatch if {\n" + one.rego + "\n}", one.cel}
	case 3:
		a, b := g.lines(false), g.lines(false)
		return pair{"package p\n\nmatch if {\n" + a.rego + "\n} else if {\n" + b.rego + "\n}", a.cel + " || " + b.cel}
	case 4, 5:
		a, b := g.lines(false), g.lines(false)
		return pair{"package p\n\nmatch if {\n" + a.rego + "\n}\n\nmatch if {\n" + b.rego + "\n}", a.cel + " || " + b.cel}
	}
	return one
}

// denies draws a condition that is written as deny, and its rules are sets.
func (g *generator) denies() pair {
	switch one := g.lines(true); g.r.IntN(4) {
	case 0:
		return pair{"package p\n\ndeny if {\n" + one.rego + "\n}", one.cel}
	case 1:
		return pair{"package p\n\ndeny contains \"no\" if {\n" + one.rego + "\n}", one.cel}
	case 2:
		return pair{"package p\n\ndeny contains msg if {\n" + one.rego + "\nmsg := sprintf(\"no %s\", [input.intent.resource])\n}\n\nreasons contains input.intent.action_type", one.cel}
	}
	a, b := g.lines(false), g.lines(false)
	return pair{"package p\n\nwarnings contains msg if {\n" + b.rego + "\nsome msg in [\"a\", \"b\"]\n}\n\ndeny contains \"no\" if {\n" + a.rego +
		"\n}\n\ndeny contains msg if some msg in warnings", a.cel + " || " + b.cel}
}

// TestDecision_Rules_RegoIsIndexedAsCEL compares rules in Rego with the index, without it, and the
// same rules in CEL. All must have the same findings and the same number of errors.
func TestDecision_Rules_RegoIsIndexedAsCEL(t *testing.T) {
	sets := 150
	if os.Getenv("WRIT_SOAK") != "" {
		sets *= 100
	}
	asked, ruled, failed, skipped := 0, 0, 0, 0
	for seed := range uint64(sets) {
		g := newGenerator(seed)
		p := must.Get(engine.CompilePolicy(g.policy()))(t)
		var inRego, inCEL []engine.Rule
		for i := range 1 + g.r.IntN(6) {
			pair := g.pair()
			r := engine.Rule{ID: fmt.Sprint(i), Name: "r", IsActive: true, Priority: int64(g.r.IntN(2)),
				Action: g.one(`{"decision":"allow"}`, `{"decision":"deny"}`, `{"effect":"wait"}`)}
			if strings.Contains(pair.rego, "\ndeny ") {
				r.Action = `{"decision":"deny"}`
			}
			r.Condition = marshal(map[string]any{"rego": pair.rego})
			inRego = append(inRego, r)
			r.Condition = marshal(map[string]any{"cel": pair.cel})
			inCEL = append(inCEL, r)
		}
		indexed := engine.CompileRules(inRego, engine.Options{CompileRego: CompileCondition})
		plain := engine.CompileRules(inRego, engine.Options{Libraries: unindexedLibraries{new(Libraries)}})
		cel := engine.CompileRules(inCEL, engine.Options{})
		for _, set := range []*engine.RuleSet{indexed, plain, cel} {
			for _, broken := range set.Broken() {
				t.Fatalf("seed %d: %v\n%s\n%s", seed, broken.Err, marshal(inRego), marshal(inCEL))
			}
		}
		for range 20 {
			in := g.input()
			in.Intent.Metadata = map[string]string{"env": g.one("prod", "dr", "x"), "n": g.one("3", "7")}
			got := engine.Evaluate(p, indexed, in)
			for name, set := range map[string]*engine.RuleSet{"without the index": plain, "in CEL": cel} {
				want := engine.Evaluate(p, set, in)
				if diff := cmp.Diff(want.Findings, got.Findings); diff != "" || want.ConditionErrors.Total() != got.ConditionErrors.Total() {
					t.Fatalf("seed %d: %+v, names %+v: errors %v, %s %v, findings (-%[5]s +indexed):\n%[7]s\n%[8]s\n%[9]s", seed, in.Intent, in.Names,
						got.ConditionErrors, name, want.ConditionErrors, diff, marshal(inRego), marshal(inCEL))
				}
			}
			asked++
			failed += got.ConditionErrors.Total()
			if strings.HasPrefix(string(got.Findings[len(got.Findings)-1].Code), "rule.") {
				ruled++
			}
		}
		for _, r := range indexed.Rules() {
			if source, _ := r.RegoSource(); demandsIn(t, source) != "" {
				skipped++
			}
		}
	}
	t.Logf("%d intents, %d ruled, %d errors, %d rules with demands", asked, ruled, failed, skipped)
	if ruled < asked/5 || failed < asked/20 || skipped < sets {
		t.Errorf("%d intents, %d ruled, %d errors, %d rules with demands: the cases say too little", asked, ruled, failed, skipped)
	}
}
