package examples_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
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

// suites returns the names of the suites of all examples, recipes and agents.
func suites(t *testing.T) []string {
	t.Helper()
	names := append(must.Get(filepath.Glob("*_test.yaml"))(t), must.Get(filepath.Glob("*/*/suite_test.yaml"))(t)...)
	if len(names) < 14 {
		t.Fatalf("found the suites %v", names)
	}
	return names
}

// offers is a turn that counts how often it is offered.
type offers int

func (o *offers) Yield() time.Duration { *o++; return 0 }

func (o *offers) Pause() bool  { return false }
func (o *offers) Resume() bool { return false }

// TestDecision_Bounds_ExamplesNeedLittleOfTheBudget: "All conditions of one evaluation share a step
// budget". A condition offers its turn once in condition.YieldEvery steps.
func TestDecision_Bounds_ExamplesNeedLittleOfTheBudget(t *testing.T) {
	const most = 0.05 // of the budget
	var work condition.Work
	budget := work.Left()
	greatest, of := 0.0, ""
	for _, name := range suites(t) {
		s := loadSuite(t, name)
		counted := make([]offers, len(s.Cases))
		for i, c := range s.Cases {
			c.Input.Turn = &counted[i]
		}
		must.Get(suite.Run(t.Context(), []*suite.Suite{s}, suite.Options{}))(t)
		for i, c := range s.Cases {
			share := float64(int(counted[i])*condition.YieldEvery) / float64(budget)
			if share >= most {
				t.Errorf("%s, %s %s takes %.1f %% of the budget, want less than %.0f %%", name, c.Test, c.Name, 100*share, 100*most)
			}
			if share >= greatest {
				greatest, of = share, name
			}
		}
	}
	t.Logf("%s takes the most of the budget: %.1f %% to %.1f %%", of, 100*greatest, 100*(greatest+float64(condition.YieldEvery)/float64(budget)))
}

// TestSuites decides each case of each example, recipe and agent, with the engine and in Rego.
func TestSuites(t *testing.T) {
	for _, name := range suites(t) {
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
