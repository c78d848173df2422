// Package newcomer measures how much code a newcomer must know for a small task.
//
// Three patches show the cost of a change. They are not part of writ. operator.patch adds an
// operator for rules. field.patch adds a field to the intent: to requests, rules in all four forms,
// the history, exports and the OpenAPI document. endpoint.patch adds an endpoint. The coverage of
// one task shows how many files the task runs through.
package newcomer

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPatches checks that each patch is small and applies to the sources. With WRIT_SOAK=1 (make
// soak) it also tests the patched sources.
func TestPatches(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "git", "ls-files", "--error-unmatch", ".").Run(); err != nil {
		t.Skipf("SKIPPED: this is no checkout: %v", err)
	}
	for name, most := range map[string]int{"operator.patch": 2, "field.patch": 5, "endpoint.patch": 2} {
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
			if os.Getenv("WRIT_SOAK") == "" {
				return
			}
			run(t, dir, "go", "test", "-short", "-vet=off", "./engine/condition", "./engine", "./rego", "./storage/ledger", "./storage/embedded", "./api")
		})
	}
}

// product returns the files of writ itself that a patch changes, without tests and documents.
func product(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		file, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		test := strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
		if ok && !test && !strings.HasPrefix(file, "docs/") {
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
	cmd.Env = append(os.Environ(), "WRIT_SOAK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// TestWalk reports which files run for one task: compiling a rule, or evaluating an intent. Each
// task may run code of at most 5 packages. A rule about a resource also runs the compiler of globs
// and one file for each reader of resources.
func TestWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the engine with coverage")
	}
	entered := func(test string) map[string]int {
		profile := filepath.Join(t.TempDir(), "profile")
		run(t, ".", "go", "test", "-run", "^"+test+"$", "-coverpkg=../../engine/...", "-covermode=count", "-coverprofile="+profile, "./walk")
		text, err := os.ReadFile(profile)
		if err != nil {
			t.Fatal(err)
		}
		blocks := map[string]int{}
		for line := range strings.Lines(string(text)) {
			if block := strings.Fields(line); len(block) == 3 {
				n, err := strconv.Atoi(block[2])
				if err != nil {
					t.Fatal(err)
				}
				blocks[block[0]] = n
			}
		}
		return blocks
	}
	// go test caches results. It runs this test again if the sources read here have changed.
	if err := filepath.WalkDir("../../engine", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			_, err = os.ReadFile(name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	before := entered("TestNothing")
	for _, test := range []string{"TestCompileRule", "TestEvaluate"} {
		files, packages := map[string]bool{}, map[string]bool{}
		for block, n := range entered(test) {
			if file, _, _ := strings.Cut(block, ":"); n > before[block] {
				files[file], packages[path.Dir(file)] = true, true
			}
		}
		names := slices.Sorted(maps.Keys(files))
		t.Logf("%s: %d files of %d packages: %v", test, len(files), len(packages), names)
		if len(packages) > 5 || len(files) == 0 {
			t.Errorf("%s passes through %d packages, want 1 to 5: %v", test, len(packages), names)
		}
	}
}
