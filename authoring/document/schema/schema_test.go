package schema_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/document/schema"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

type object = map[string]any

type schemas map[document.Kind]*jsonschema.Schema

func compileAll(t *testing.T) schemas {
	t.Helper()
	all := schemas{}
	for _, kind := range schema.Kinds {
		all[document.Kind(kind)] = compile(t, kind)
	}
	return all
}

func compile(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(kind, schemaOf(t, kind)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(kind)
	if err != nil {
		t.Fatalf("the schema of %s is none: %v", kind, err)
	}
	return s
}

func schemaOf(t *testing.T, kind string) object {
	t.Helper()
	text := must.Get(schema.JSON(kind))(t)
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	return v.(object)
}

// TestSchemas_AreThatOfOpenAPI compares types, limits and enums with openapi.yaml, member by
// member.
func TestSchemas_AreThatOfOpenAPI(t *testing.T) {
	text := must.Get(os.ReadFile("../../../api/openapi.yaml"))(t)
	var api struct {
		Components struct{ Schemas object }
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	all := api.Components.Schemas
	for kind, name := range map[string]string{"policy": "PolicyFields", "intent": "ActionIntent", "rule": "CreateRule", "list": "NamedList"} {
		want, got := resolved(all, all[name]).(object), plain(t, schemaOf(t, kind)).(object)
		if kind == "rule" {
			// In a file, condition and action may also be objects. The file may also have the
			// members that the server adds.
			properties := got["properties"].(object)
			for _, name := range []string{"condition", "action"} {
				properties[name] = properties[name].(object)["anyOf"].([]any)[1]
			}
			for name := range resolved(all, all["Rule"]).(object)["properties"].(object) {
				if _, created := want["properties"].(object)[name]; !created {
					delete(properties, name)
				}
			}
			delete(got, "$defs")
		}
		if kind == "list" {
			delete(want, "required") // a file can leave out the members that the server adds
			delete(got, "required")
		}
		for _, s := range []object{want, got} {
			for _, name := range []string{"$schema", "title", "additionalProperties"} {
				delete(s, name)
			}
			sorted(s)
		}
		if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
			t.Errorf("the schema of %s and %s of openapi.yaml differ (-openapi +schema):\n%s", kind, name, diff)
		}
	}
}

// resolved returns a schema of openapi.yaml with its references replaced and its descriptions
// removed.
func resolved(all object, v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, member := range v {
			switch to, isRef := member.(string); {
			case name == "$ref" && isRef && all != nil:
				maps.Copy(out, resolved(all, all[to[strings.LastIndexByte(to, '/')+1:]]).(object))
			case name != "description" || !isRef:
				out[name] = resolved(all, member)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = resolved(all, v[i])
		}
	}
	return v
}

// plain returns v written to JSON and read back, without descriptions.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	text := must.Get(json.Marshal(resolved(nil, v)))(t)
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sorted sorts the names of required members in s and in its properties.
func sorted(s object) {
	if names, ok := s["required"].([]any); ok {
		slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	}
	if properties, ok := s["properties"].(object); ok {
		for _, p := range properties {
			sorted(p.(object))
		}
	}
}

var options = engine.Options{CompileRego: rego.CompileCondition}

// judge returns two errors for a document: one from its schema, and one from writ.
func (s schemas) judge(t *testing.T, d *document.Document) (bySchema, byWrit error) {
	t.Helper()
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(d.JSON())))(t)
	if d.Kind == document.Rule {
		asObjects(v.(object))
	}
	return s[d.Kind].Validate(v), d.Check(options)
}

// asObjects writes the condition and the action of a rule as objects, so that the schema checks
// their structure.
func asObjects(rule object) {
	for _, name := range []string{"condition", "action"} {
		text, ok := rule[name].(string)
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); ok && err == nil {
			rule[name] = v
		}
	}
}

// onlyWrit has the broken documents whose structure is valid. The mistake is within a text or data, so only
// package document finds it.
var onlyWrit = strings.Fields(`
	policy-pattern-bracket rule-regex rule-regex-lookahead rule-metadata-order rule-time rule-wire-broken
	policy-cost-decimal rule-condition-text rule-action-text rule-amount-decimal intent-resource-space
	list-data-null list-data-number
	t02-cel-field t03-cel-function t04-cel-and t04-cel-equals t06-cel-metadata-number t07-rego-unbound
`)

func TestSchemas_RefuseBrokenStructure(t *testing.T) {
	all := compileAll(t)
	files, err := filepath.Glob("../testdata/broken/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("broken documents: %d, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if strings.HasPrefix(name, "suite-") {
			continue // package suite reads these documents
		}
		archive := must.Get(txtar.ParseFile(file))(t)
		docs, err := document.Parse(archive.Files[0].Name, archive.Files[0].Data)
		if err != nil {
			continue // the file is neither YAML nor JSON
		}
		for _, d := range docs {
			if d.Kind == "" || d.Want(d.Kind) != nil {
				continue
			}
			source := strings.HasPrefix(name, "rule-cel-") || strings.HasPrefix(name, "rule-rego-")
			source = source && name != "rule-cel-empty" && name != "rule-cel-in-tree" || slices.Contains(onlyWrit, name)
			bySchema, byWrit := all.judge(t, d)
			if (bySchema == nil) != (source || byWrit == nil) {
				t.Errorf("%s: by the schema %v, by writ %v", name, bySchema, byWrit)
			}
		}
	}
}

func TestSchemas_AcceptWhatWritAccepts(t *testing.T) {
	all := compileAll(t)
	var files []txtar.File
	for _, pattern := range []string{"../../../examples/*.json", "../../../examples/*/*.json", "../../../examples/*/*/*.json", "../../../examples/*.yaml", "../../../examples/*/*.yaml", "../../suite/testdata/*.yaml"} {
		names := must.Get(filepath.Glob(pattern))(t)
		for _, name := range names {
			data := must.Get(os.ReadFile(name))(t)
			files = append(files, txtar.File{Name: name, Data: data})
		}
	}
	goldens := must.Get(filepath.Glob("../../../engine/testdata/*.txtar"))(t)
	for _, golden := range goldens {
		archive := must.Get(txtar.ParseFile(golden))(t)
		files = append(files, archive.Files...)
	}
	files = append(files, txtar.File{Name: "lists.yaml", Data: []byte(`name: payees
values: [acme-gmbh, "4711"]
---
name: nobody
values: []
version: 3
created_at: 2026-11-21T11:35:03.323Z
updated_at: 2026-11-21T11:35:03.323Z
`)})
	judged := map[document.Kind]int{}
	for _, f := range files {
		docs, err := document.Parse(f.Name, f.Data)
		if err != nil {
			continue
		}
		for _, d := range docs {
			if d.Kind == "" {
				continue
			}
			bySchema, byWrit := all.judge(t, d)
			if byWrit == nil && bySchema != nil {
				t.Errorf("%s: the schema refuses what writ accepts: %v\n%s", f.Name, bySchema, d.JSON())
			}
			if byWrit == nil {
				judged[d.Kind]++
			}
		}
	}
	t.Logf("judged %v", judged)
	for _, kind := range []document.Kind{document.Policy, document.Rule, document.List, document.Intent, document.Suite} {
		if judged[kind] == 0 {
			t.Errorf("judged %v, want some of %s", judged, kind)
		}
	}
}
