package lint_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// TestDocs_ExamplesEarnWhatTheySay checks that docs/lint.md has a section for each kind, in order.
// The first example of a section gets only the section's warning. The second example gets no
// warning.
func TestDocs_ExamplesEarnWhatTheySay(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/lint.md"))(t)
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) != len(lint.Kinds()) {
		t.Fatalf("docs/lint.md has %d sections, want one for each of %d kinds", len(sections), len(lint.Kinds()))
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```")
	for i, kind := range lint.Kinds() {
		name, text, _ := strings.Cut(sections[i], "\n")
		if name != kind.Name || kind.Warns == "" {
			t.Fatalf("section %d is %s, want %+v", i, name, kind)
		}
		t.Run(name, func(t *testing.T) {
			examples := block.FindAllStringSubmatch(text, -1)
			if len(examples) != 2 {
				t.Fatalf("%d examples, want one that earns the warning and one that does not", len(examples))
			}
			earned := warningsOf(t, examples[0][1])
			if len(earned) == 0 {
				t.Error("the first example earns no warning")
			}
			for _, w := range earned {
				if w.Rule != name || w.Field == "" || w.Message == "" || w.Instead == "" {
					t.Errorf("the first example earns %+v", w)
				}
			}
			for _, w := range warningsOf(t, examples[1][1]) {
				t.Errorf("the second example earns %+v", w)
			}
		})
	}
}

// warningsOf returns the warnings about a JSON text. A JSON array has rules. A JSON object has
// members of a policy.
func warningsOf(t *testing.T, text string) []lint.Warning {
	t.Helper()
	if strings.HasPrefix(text, "[") {
		rules, lists := documentsOf(t, text)
		return append(lint.Rules(rules), lint.Lists(rules, lists)...)
	}
	p := &engine.ActionPolicy{
		PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", AllowedActionTypes: []string{"report.*"},
		Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	compilePolicy(t, p)
	return lint.Policy(p)
}

func documentsOf(t testing.TB, text string) (rules []*engine.CompiledRule, lists []string) {
	t.Helper()
	var docs, others []json.RawMessage
	if err := json.Unmarshal([]byte(text), &docs); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, d := range docs {
		var l engine.List
		if err := json.Unmarshal(d, &l); err == nil && l.Values != nil {
			lists = append(lists, l.Name)
			continue
		}
		others = append(others, d)
	}
	data := must.Get(json.Marshal(others))(t)
	return compile(t, rulesOf(t, string(data))), lists
}

// rulesOf reads rules whose conditions and actions are objects. By default they are active and have
// the default priority.
func rulesOf(t testing.TB, text string) []engine.Rule {
	t.Helper()
	var docs []struct {
		ID, Name          string
		Condition, Action json.RawMessage
		Priority          *int64
		IsActive          *bool
		CreatedAt         time.Time
	}
	if err := json.Unmarshal([]byte(text), &docs); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	rules := make([]engine.Rule, len(docs))
	for i, d := range docs {
		r := engine.Rule{ID: d.ID, Name: d.Name, Condition: string(d.Condition), Action: string(d.Action), Priority: engine.DefaultPriority, IsActive: true, CreatedAt: d.CreatedAt}
		if d.Priority != nil {
			r.Priority = *d.Priority
		}
		if d.IsActive != nil {
			r.IsActive = *d.IsActive
		}
		rules[i] = r
	}
	return rules
}
