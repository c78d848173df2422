// Package patches holds two changes that show what a change costs: operator.patch adds
// an operator of rules, and field.patch a member of the intent, from the body of a
// request to rules in all four forms, the history, the export and the description of
// the interface. Neither is part of writ.
package patches

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPatches applies each patch to a copy of the sources and tests that. WRIT_SOAK=1
// has it run: make soak.
func TestPatches(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("WRIT_SOAK=1 has the patches applied and tested: make soak")
	}
	for name, most := range map[string]int{"operator.patch": 3, "field.patch": 6} {
		t.Run(name, func(t *testing.T) {
			patch, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if changed := product(string(patch)); len(changed) > most {
				t.Errorf("it changes %d product files, want at most %d: %v", len(changed), most, changed)
			}
			dir := t.TempDir()
			run(t, "../..", "git", "checkout-index", "--all", "--prefix="+dir+"/")
			run(t, dir, "git", "apply", "--unsafe-paths", "--directory="+dir, filepath.Join(here(t), name))
			run(t, dir, "go", "test", "-short", "./engine/...", "./rego/...", "./decision/...", "./ledger/...", "./storage/embedded/...", "./transfer/...", "./api/...")
		})
	}
}

// product returns the files that a patch changes and that writ is built of.
func product(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		file, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if ok && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "testdata/") {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

func here(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
