package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"writ/authoring/suite"
)

// loadSuite reads the suite of a recipe or an agent.
func loadSuite(t *testing.T, name string) *suite.Suite {
	t.Helper()
	suites, err := (&suite.Loader{ReadFile: os.ReadFile, Glob: filepath.Glob}).Load(name)
	if err != nil || len(suites) != 1 {
		t.Fatalf("Load(%s) = %d suites, %v, want one", name, len(suites), err)
	}
	return suites[0]
}

// TestSuites decides each case of each recipe and of each agent, by the engine and in
// Rego.
func TestSuites(t *testing.T) {
	names, err := filepath.Glob("*/*/suite_test.yaml")
	if err != nil || len(names) < 9 {
		t.Fatalf("found the suites %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Dir(name), func(t *testing.T) {
			report, err := suite.Run(t.Context(), []*suite.Suite{loadSuite(t, name)}, suite.Options{Rego: true})
			if err != nil || len(report.Results) == 0 {
				t.Fatalf("Run = %d results, %v", len(report.Results), err)
			}
			for _, r := range report.Failed() {
				t.Error(r)
			}
		})
	}
}
