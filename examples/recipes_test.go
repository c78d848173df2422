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

// TestPage_Recipes checks that the pages of recipes show the files of each recipe, and the decision
// on each case in the recipe's suite. With -update it writes them into the pages.
func TestPage_Recipes(t *testing.T) {
	pages, err := filepath.Glob("../docs/recipes*.md")
	must.Do(t, err)
	texts := make(map[string]string)
	for _, page := range pages {
		texts[page] = string(must.Get(os.ReadFile(page))(t))
	}
	names, err := filepath.Glob("recipes/*/suite_test.yaml")
	if err != nil || len(names) < 6 {
		t.Fatalf("found the suites %v, %v", names, err)
	}
	for _, name := range names {
		dir := filepath.Dir(name)
		begin, end := fmt.Sprintf("<!-- examples/%s -->\n", dir), fmt.Sprintf("<!-- end of examples/%s -->\n", dir)
		at := slices.IndexFunc(pages, func(page string) bool { return strings.Contains(texts[page], begin) })
		if at < 0 {
			t.Errorf("no page of recipes has a place for %s", begin)
			continue
		}
		before, rest, _ := strings.Cut(texts[pages[at]], begin)
		shown, after, closed := strings.Cut(rest, end)
		if !closed {
			t.Errorf("%s lacks %s", pages[at], end)
			continue
		}
		want := shownAs(t, name)
		if shown != want && !*update {
			t.Errorf("%s shows another %s than its files: go test ./examples -run TestPage_Recipes -update", pages[at], dir)
		}
		texts[pages[at]] = before + begin + want + end + after
	}
	for page, text := range texts {
		if *update {
			must.Do(t, os.WriteFile(page, []byte(text), 0o644)) //nolint:gosec // everybody reads it
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
