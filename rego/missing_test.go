package rego

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"writ/engine"
)

// "A missing key is an error in CEL, unequal to everything in match objects and
// trees, and undefined (no match) in Rego: one table in the docs shows it"
func TestDecision_Rules_MissingKeys(t *testing.T) {
	f, err := os.Open("../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	policy, err := engine.CompilePolicy(samplePolicy())
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan() && !strings.HasPrefix(lines.Text(), "## "); {
		cells := strings.Split(lines.Text(), "|")
		if len(cells) != 4 || !strings.HasPrefix(cells[1], " `{") {
			continue
		}
		rows++
		condition := strings.Split(cells[1], "`")[1]
		// Both outcomes tell an error, which a rule that denies takes for a match
		// and one that allows does not, from true and false.
		outcome := func(decision string) bool {
			rule := sampleRule("r", "r", condition, `{"decision":"`+decision+`"}`)
			set := engine.CompileRules([]engine.Rule{rule}, engine.Options{CompileRego: CompileCondition})
			if broken := set.Broken(); len(broken) > 0 {
				t.Fatalf("%s: %v", condition, broken)
			}
			in := evaluationInput()
			in.Intent.Metadata = map[string]string{"other": "x"}
			for _, finding := range engine.Evaluate(policy, set, in).Findings {
				if finding.RuleID != "" {
					return true
				}
			}
			return false
		}
		want := strings.Fields(strings.Trim(cells[2], " "))[0]
		got := map[[2]bool]string{{true, true}: "true", {true, false}: "an", {false, false}: "false:"}[[2]bool{outcome("deny"), outcome("allow")}]
		if want == "undefined:" {
			want = "false:"
		}
		if got != want {
			t.Errorf("%s of an intent without env: %s, the table says%s", condition, got, cells[2])
		}
	}
	if rows != 9 {
		t.Errorf("the table has %d rows that were read, want 9", rows)
	}
}
