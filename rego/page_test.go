package rego

import (
	"os"
	"slices"
	"strings"
	"testing"

	"writ/internal/must"
)

// TestPage_Functions checks that docs/policies.md names each function that a condition can call by
// name.
func TestPage_Functions(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/policies.md"))(t)
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
