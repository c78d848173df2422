package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/tools/txtar"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/document/schema"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// onlyWritRefuses names the broken documents that OPA accepts. Their functions, references and
// types are valid, but their conditions would not have the intended meaning. OPA does not follow the
// input's type into functions.
var onlyWritRefuses = []string{
	"rule-rego-assign", "rule-rego-module", "rule-rego-library-member", "rule-rego-library-chain", "rule-rego-library-itself",
}

// TestOPACheck_AgreesWithWrit checks the Rego of every example and every broken document. `opa
// check`, with the files that writ prints, must accept and refuse the same Rego as writ.
func TestOPACheck_AgreesWithWrit(t *testing.T) {
	opa := buildOPA(t)
	dir := t.TempDir()
	for _, kind := range schema.RegoKinds {
		text, err := schema.Rego(kind, false)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, kind+".json"), text, 0o600))
	}
	count, imported := map[bool]int{}, 0
	for name, source := range regoSources(t) {
		if slices.Contains(onlyWritRefuses, name) {
			continue
		}
		compile, libraries := rego.CompileCondition, []string(nil)
		if dir := filepath.Join(filepath.Dir(name), "lib"); exists(dir) {
			all, err := document.Libraries(dir)
			must(t, err)
			compiled, err := rego.CompileLibraries(all)
			must(t, err)
			compile, libraries = compiled.Compile, []string{dir}
			imported++
		}
		_, err := compile(source)
		file := filepath.Join(dir, "condition.rego")
		must(t, os.WriteFile(file, []byte(asModule(source)), 0o600))
		said, opaErr := exec.Command(opa, append([]string{"check", "--capabilities", filepath.Join(dir, "rego-capabilities.json"), "--schema",
			filepath.Join(dir, "rego-input.json"), file}, libraries...)...).CombinedOutput()
		if (err == nil) != (opaErr == nil) {
			t.Errorf("%s: writ says %v, and opa check %v\n%s\n%s", name, err, opaErr, said, source)
		}
		count[err == nil]++
	}
	if imported == 0 {
		t.Error("no source imports a library")
	}
	if count[true] < 3 || count[false] < 9 {
		t.Errorf("%d sources are valid and %d are not, want at least 3 and 9", count[true], count[false])
	}
}

// asModule returns the body of a rule as a module. A module is returned unchanged.
func asModule(source string) string {
	if strings.HasPrefix(strings.TrimSpace(source), "package ") {
		return source
	}
	if _, ok := rego.PackageOf(source); ok {
		return source
	}
	return "package team.condition\n\nmatch if {\n" + source + "\n}\n"
}

// regoSources returns the Rego conditions of the examples and of the broken documents, by name.
func regoSources(t *testing.T) map[string]string {
	sources := map[string]string{}
	add := func(name string, docs []*document.Document) {
		for i, d := range docs {
			var r struct {
				Condition string `json:"condition"`
			}
			var c struct {
				Rego string `json:"rego"`
			}
			if d.Kind != document.Rule || json.Unmarshal(d.JSON(), &r) != nil || json.Unmarshal([]byte(r.Condition), &c) != nil ||
				c.Rego == "" || len(c.Rego) > condition.MaxCondition {
				continue
			}
			if i > 0 {
				name += "+"
			}
			sources[name] = c.Rego
		}
	}
	must(t, filepath.WalkDir(filepath.Join("..", "..", "examples"), func(name string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		must(t, err)
		docs, err := document.Load(name, data, document.Below(name))
		must(t, err)
		add(name, docs)
		return nil
	}))
	broken, err := filepath.Glob(filepath.Join("..", "..", "authoring", "document", "testdata", "broken", "*.txtar"))
	must(t, err)
	for _, name := range broken {
		archive, err := txtar.ParseFile(name)
		must(t, err)
		if docs, err := document.Parse(archive.Files[0].Name, archive.Files[0].Data); err == nil {
			add(strings.TrimSuffix(filepath.Base(name), ".txtar"), docs)
		}
	}
	for _, name := range []string{"policies.md", "cel-and-rego.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		must(t, err)
		for i, part := range strings.Split(string(page), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(part, "\n```")
			if docs, err := document.Parse("page.yaml", []byte(text)); err == nil {
				add("docs/"+name+" "+string(rune('a'+i)), docs)
			}
		}
	}
	return sources
}
