package decision

import (
	"context"
	"slices"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// changingLists is a source whose list changes while the rules are loaded.
type changingLists struct {
	source
	revision int64
	changes  int // how often the list will still change
	loads    int
}

func (s *changingLists) RulesAndLibraries(context.Context, string) ([]engine.Rule, []engine.Library, int64, error) {
	s.loads++
	return []engine.Rule{{ID: "r", Name: "r", Condition: `{"agent_id":{"$in":{"list":"l"}}}`, Action: `{"decision":"deny"}`, IsActive: true}},
		nil, s.revision, nil
}

func (s *changingLists) Lists(_ context.Context, _ string, names []string) ([]engine.List, int64, error) {
	if s.changes > 0 {
		s.changes--
		s.revision++
	}
	if !slices.Equal(names, []string{"l"}) {
		return nil, 0, nil
	}
	return []engine.List{{Name: "l", Values: []string{"a"}}}, s.revision, nil
}

// TestSets_RulesAndListsStoodTogether checks that rules are loaded again if a list has changed since they
// were read. A row names one revision, at which both must have stood.
func TestSets_RulesAndListsStoodTogether(t *testing.T) {
	src := &changingLists{revision: 7, changes: 2}
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 20, options: engine.Options{CompileRego: rego.CompileCondition}})
	loaded, err := sets.rules.Get(t.Context(), "org")
	if err != nil || loaded.revision != 9 || src.loads != 3 {
		t.Errorf("the rules are of revision %d after %d loads, %v; want 9 after 3", loaded.revision, src.loads, err)
	}
}
