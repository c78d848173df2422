package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"writ/authoring/suite"
	"writ/internal/must"
)

// loadSuite reads the suite of a recipe or of an agent.
func loadSuite(t *testing.T, name string) *suite.Suite {
	t.Helper()
	suites, err := (&suite.Loader{ReadFile: os.ReadFile, Glob: filepath.Glob}).Load(name)
	if err != nil || len(suites) != 1 {
		t.Fatalf("Load(%s) = %d suites, %v, want one", name, len(suites), err)
	}
	return suites[0]
}

// TestSuites decides each case of each example, recipe and agent, with the engine and in Rego.
func TestSuites(t *testing.T) {
	names := append(must.Get(filepath.Glob("*_test.yaml"))(t), must.Get(filepath.Glob("*/*/suite_test.yaml"))(t)...)
	if len(names) < 14 {
		t.Fatalf("found the suites %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
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
