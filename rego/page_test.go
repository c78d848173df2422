package rego

import (
	"os"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// TestPage_Functions checks that docs/cel-and-rego.md names each function that a condition can call by
// name.
func TestPage_Functions(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/cel-and-rego.md"))(t)
	_, after, ok := strings.Cut(string(text), "\n```text\nabs ")
	if !ok {
		t.Fatal("the page has no list of functions")
	}
	block, _, _ := strings.Cut("abs "+after, "```")
	got := strings.Fields(block)
	var want []string
	for _, b := range sandbox().Builtins {
		if b.Infix == "" && !strings.HasPrefix(b.Name, "internal.") {
			want = append(want, b.Name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the page has the functions\n%v, want\n%v", got, want)
	}
}

// TestPage_Idioms compiles each condition in the right column of the idioms in docs/opa.md.
func TestPage_Idioms(t *testing.T) {
	text := string(must.Get(os.ReadFile("../docs/opa.md"))(t))
	_, table, ok := strings.Cut(text, "\n| in OPA | in writ |\n|---|---|\n")
	if !ok {
		t.Fatal("the page has no table of idioms")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	compiled := 0
	libraries := must.Get(CompileLibraries([]engine.Library{lib("net", `private(host) if startswith(host, "10.")`)}))(t)
	for _, row := range strings.Split(table, "\n") {
		_, ours, _ := strings.Cut(strings.Trim(row, "| "), " | ")
		for i, code := range strings.Split(ours, "`") {
			if i%2 == 0 || !strings.Contains(code, "input.") {
				continue
			}
			compiled++
			if _, err := libraries.Compile(code); err != nil {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
	if compiled < 25 {
		t.Errorf("the table has %d conditions, want at least 25", compiled)
	}
}
