package examples_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

var update = flag.Bool("update", false, "write the recipes into the page")

// TestPage_Recipes checks that docs/recipes.md shows the files of each recipe, and the decision on
// each case in the recipe's suite. With -update it writes them into the page.
func TestPage_Recipes(t *testing.T) {
	text := must.Get(os.ReadFile(recipesPage))(t)
	names, err := filepath.Glob("recipes/*/suite_test.yaml")
	if err != nil || len(names) < 6 {
		t.Fatalf("found the suites %v, %v", names, err)
	}
	got := string(text)
	for _, name := range names {
		dir := filepath.Dir(name)
		begin, end := fmt.Sprintf("<!-- examples/%s -->\n", dir), fmt.Sprintf("<!-- end of examples/%s -->\n", dir)
		before, rest, ok := strings.Cut(got, begin)
		shown, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("the page has no place for it: %s%s", begin, end)
			continue
		}
		want := shownAs(t, name)
		if shown != want && !*update {
			t.Errorf("the page shows another %s than its files: go test ./examples -run TestPage_Recipes -update", dir)
		}
		got = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(recipesPage, []byte(got), 0o644); err != nil { //nolint:gosec // everybody reads it
			t.Fatal(err)
		}
	}
}

// shownAs returns the text that the page must have for a recipe.
func shownAs(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	s := loadSuite(t, name)
	for _, file := range []string{"policy.yaml", "rules.yaml"} {
		text := must.Get(os.ReadFile(filepath.Join(filepath.Dir(name), file)))(t)
		fmt.Fprintf(&b, "```yaml\n# %s\n%s```\n\n", file, text)
	}
	p := must.Get(engine.CompilePolicy(s.Policy()))(t)
	rules := engine.CompileRules(s.Rules(), engine.Options{CompileRego: rego.CompileCondition})
	b.WriteString("| intent | | decision | by |\n|---|---|---|---|\n")
	for _, c := range s.Cases {
		res := engine.Evaluate(p, rules, &c.Input)
		by := slices.IndexFunc(res.Findings, func(f engine.Finding) bool { return f.Outcome == res.Decision })
		decided := "`" + string(res.Findings[by].Code) + "`"
		for _, r := range s.Rules() {
			if r.ID == res.Findings[by].RuleID {
				decided = r.Name
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Test, intentAsShown(c.Input.Intent), res.Decision, decided)
	}
	return b.String()
}

// intentAsShown returns the table cell for an intent.
func intentAsShown(in *engine.Intent) string {
	parts := []string{in.ActionType, in.Resource}
	if in.Cost != nil {
		parts = append(parts, fmt.Sprintf("%d.%02d %s", in.Cost.AmountMinor/100, in.Cost.AmountMinor%100, in.Cost.Currency))
	}
	for key, value := range in.Metadata {
		parts = append(parts, key+"="+value)
	}
	slices.Sort(parts[len(parts)-len(in.Metadata):])
	for i, part := range parts {
		parts[i] = "`" + strings.ReplaceAll(part, "|", `\|`) + "`"
	}
	return strings.Join(parts, " ")
}
