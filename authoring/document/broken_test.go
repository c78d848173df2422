package document_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

var update = flag.Bool("update", false, "rewrite the messages for the broken documents")

// TestBroken compares the messages for broken documents with the messages stored in
// testdata/broken. A good message has the right line, and a word that tells the author what to
// change. The files between the document and the messages are libraries.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) < 150 {
		t.Fatalf("testdata/broken has %d files, %v, want at least 150", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil || len(archive.Files) < 2 {
				t.Fatalf("%s has %d files, %v, want a document and want", name, len(archive.Files), err)
			}
			last := len(archive.Files) - 1
			problems := check(archive.Files[0], archive.Files[1:last])
			if strings.HasPrefix(filepath.Base(name), "suite-") {
				problems = load(archive.Files[0])
			}
			var b strings.Builder
			for _, p := range problems {
				b.WriteString(p.String() + "\n" + p.Caret() + "\n")
			}
			got := b.String()
			if *update {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" || got == "" {
				t.Errorf("messages for %s (-want +got):\n%s", archive.Files[0].Name, diff)
			}
		})
	}
}

// check returns every problem of the documents in f, or of the libraries.
func check(f txtar.File, libraries []txtar.File) []document.Problem {
	var found document.Error
	o := engine.Options{CompileRego: rego.CompileCondition}
	if len(libraries) > 0 {
		byName := make(map[string]engine.Library)
		for _, f := range libraries {
			name, file, _ := strings.Cut(f.Name, "/")
			if _, there := byName[name]; !there {
				byName[name] = engine.Library{Name: name, Modules: make(map[string]string)}
			}
			byName[name].Modules[file] = string(f.Data)
		}
		compiled, err := rego.CompileLibraries(slices.Collect(maps.Values(byName)))
		if err != nil {
			_ = found.Add(document.LibraryProblems("lib", err))
			return found.Problems
		}
		o.Libraries = compiled
	}
	docs, err := document.Parse(f.Name, f.Data)
	_ = found.Add(err)
	for _, d := range docs {
		_ = found.Add(d.Check(o))
	}
	return found.Problems
}

// beside is a file system with the policy and the rules that the broken suites refer to.
var beside = fstest.MapFS{
	"policy.yaml": {Data: []byte(`policy_id: 0c0ffee0-0000-4000-8000-000000000001
version: 1
organization_id: demo
agent_id: billing-agent
allowed_action_types: ["payment.*"]
max_cost_minor: 50000
status: active
updated_at: 2026-11-01T09:00:00Z
`)},
	"rules.yaml": {Data: []byte(`name: Large payments need a person
condition: {action_type: payment.payout, cost.amount_minor: {$gt: 25000}}
action: {decision: approval_required}
`)},
}

// load returns every problem of the suite in f.
func load(f txtar.File) []document.Problem {
	files := maps.Clone(beside)
	files[f.Name] = &fstest.MapFile{Data: f.Data}
	l := suite.Loader{ReadFile: files.ReadFile, Glob: files.Glob}
	_, err := l.Load(f.Name)
	var found document.Error
	_ = found.Add(err) // an error that is not a *Error is no problem of the suite
	return found.Problems
}
