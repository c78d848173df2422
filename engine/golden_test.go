package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// TestDecision_Evaluation decides the cases in testdata and compares the results. A case is a
// txtar archive. Its comment quotes the rule that it tests. Its files are policy.json,
// intent.json, rules.json (optional), options (optional: lines agent=STATUS, usage=exceeded,
// require_registered_agents=true) and want.
func TestDecision_Evaluation(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive := must.Get(txtar.ParseFile(file))(t)
		rule, _, _ := strings.Cut(string(archive.Comment), "\n")
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name+" "+rule, func(t *testing.T) {
			got := decide(t, archive)
			if *update {
				setSection(archive, "want", got)
				must.Do(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			if diff := cmp.Diff(section(archive, "want"), got); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecision_Evaluation_EveryRowOfTheCheckTableHasCases checks that there are cases for each
// row. Rows 1 to 9 are checks, row 10 is the rules.
func TestDecision_Evaluation_EveryRowOfTheCheckTableHasCases(t *testing.T) {
	rows := []string{"rule-"}
	for row := 1; row <= 9; row++ {
		rows = append(rows, fmt.Sprintf("check-%02d-", row))
	}
	for _, row := range rows {
		if files, err := filepath.Glob("testdata/" + row + "*.txtar"); err != nil || len(files) == 0 {
			t.Errorf("no case is named %s…, %v", row, err)
		}
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(a *txtar.Archive, name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(data)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(data)})
}

// decide runs one case and returns its result in the form of the file want.
func decide(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	doc, err := engine.DecodePolicy([]byte(section(a, "policy.json")), "policy")
	if err != nil {
		t.Fatalf("policy.json: %v", err)
	}
	policy, err := engine.CompilePolicy(doc)
	if err != nil {
		t.Fatalf("policy.json: %v", err)
	}
	intent, err := engine.DecodeIntent([]byte(section(a, "intent.json")), "intent")
	if err != nil {
		t.Fatalf("intent.json: %v", err)
	}
	if err := intent.Validate(); err != nil {
		return invalidText(t, err)
	}
	in := &engine.Input{Intent: intent}
	setOptions(t, in, section(a, "options"))
	return resultText(engine.Evaluate(policy, goldenRules(t, section(a, "rules.json")), in))
}

func goldenRules(t *testing.T, data string) *engine.RuleSet {
	t.Helper()
	if data == "" {
		return nil
	}
	var rules []engine.Rule
	err := engine.Decode([]byte(data), "rules", &rules)
	if err != nil {
		t.Fatalf("rules.json: %v", err)
	}
	return engine.CompileRules(rules, engine.Options{})
}

func setOptions(t *testing.T, in *engine.Input, options string) {
	t.Helper()
	in.Agent = engine.AgentActive
	for line := range strings.Lines(options) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "agent":
			in.Agent = engine.AgentStatus(strings.TrimPrefix(value, "unregistered"))
		case "usage":
			in.Usage.Exceeded = value == "exceeded"
		case "organization":
			in.Stopped = value == "stopped"
		case "require_registered_agents":
			in.RequireRegistered = value == "true"
		default:
			t.Fatalf("options: unknown %q", name)
		}
	}
}

func resultText(r engine.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Decision)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s", f.Outcome, f.Reason)
		if f.RuleID != "" {
			fmt.Fprintf(&b, " [%s]", f.RuleID)
		}
		b.WriteByte('\n')
	}
	if n := r.ConditionErrors.Total(); n > 0 {
		fmt.Fprintf(&b, "condition errors: %d\n", n)
	}
	return b.String()
}

func invalidText(t *testing.T, err error) string {
	t.Helper()
	var inv *engine.InvalidError
	if !errors.As(err, &inv) {
		t.Fatalf("Validate = %T %v, want an *InvalidError", err, err)
	}
	var b strings.Builder
	b.WriteString("invalid\n")
	for _, f := range inv.Fields {
		fmt.Fprintf(&b, "%s: %s\n", f.Field, f.Message)
	}
	return b.String()
}
