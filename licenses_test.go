package writ_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLicenses holds docs/licenses.md to what the binary links, version by
// version: a module's licence can change with any of them.
func TestLicenses(t *testing.T) {
	doc, err := os.ReadFile("docs/licenses.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed [][]string // name, version, licence
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 {
			listed = append(listed, []string{strings.TrimPrefix(cells[0], "| "), cells[1], strings.TrimRight(cells[2], " |\n")})
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./cmd/writ").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if module == "" || module == "writ.example/writ" || seen[module] {
			continue
		}
		seen[module] = true
		if !lists(listed, module, version) {
			t.Errorf("docs/licenses.md lacks %s %s: run make licenses, and see whether writ may link what it lists then", module, version)
		}
	}
	if len(seen) < 20 {
		t.Errorf("the binary links %d modules, want more: is this test looking at it?", len(seen))
	}
}

// lists reports whether rows have a licence of the module or, where each of its
// packages has its own, of one of them.
func lists(rows [][]string, module, version string) bool {
	for _, row := range rows {
		if (row[0] == module || strings.HasPrefix(row[0], module+"/")) && row[1] == version && row[2] != "" && row[2] != "Unknown" {
			return true
		}
	}
	return false
}
