package toolcall_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"writ.example/writ/internal/toolcall"
)

var update = flag.Bool("update", false, "rewrite what the calls of testdata are")

// TestParse compares each call of testdata with its action. A file has the calls of one harness, and each
// call is followed by its action.
func TestParse(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != 4 {
		t.Fatalf("found %v, %v, want a file a harness", files, err)
	}
	for _, name := range files {
		harness := toolcall.Harness(strings.TrimSuffix(filepath.Base(name), ".txtar"))
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []txtar.File
		for _, f := range archive.Files {
			if call, ok := strings.CutSuffix(f.Name, ".json"); ok {
				got = append(got, f, txtar.File{Name: call, Data: []byte(described(toolcall.Parse(harness, f.Data)))})
			}
		}
		if len(got) < 10 {
			t.Errorf("%s has %d calls, want 5 or more", name, len(got)/2)
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: got}), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: got})), string(txtar.Format(archive))); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// described returns the action of a call, or the error.
func described(c toolcall.Call, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	resources, err := c.Resources()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	facts, err := c.Facts()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text, err := json.MarshalIndent(facts, "", " ")
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	id := "new"
	if first := c.IntentID(); first == c.IntentID() {
		id = first
	}
	return fmt.Sprintf("%s %s\nintent %s\n%s\n", c.ActionType(), strings.Join(resources, " "), id, text)
}

// TestFacts_Bounds holds that a call has at most the 64 keys that a server takes, and says what was left out.
func TestFacts_Bounds(t *testing.T) {
	args := map[string]any{"long": strings.Repeat("x", 1025), "short": strings.Repeat("y", 1024), strings.Repeat("n", 130): 1}
	for i := range 100 {
		args[fmt.Sprintf("z%03d", i)] = i
	}
	c := parse(t, map[string]any{"tool_name": "mcp__a__b", "session_id": "s", "cwd": "/w", "tool_input": args})
	facts, err := c.Facts()
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) != 64 || facts["fact.arg.dropped"] != "43" {
		t.Errorf("%d facts, dropped = %q, want 64 and 43", len(facts), facts["fact.arg.dropped"])
	}
	if facts["fact.arg.long.bytes"] != "1025" || len(facts["fact.arg.long.sha256"]) != 64 || len(facts["fact.arg.short"]) != 1024 {
		t.Errorf("the long argument is %q bytes, %q", facts["fact.arg.long.bytes"], facts["fact.arg.long.sha256"])
	}
	if _, long := facts["fact.arg.long"]; long {
		t.Error("fact.arg.long has 1,025 bytes")
	}
	c = parse(t, map[string]any{"tool_name": "T", "cwd": "/w", "tool_input": map[string]any{
		"a": strings.Repeat("x", 1025), "a.sha256": "0",
	}})
	if _, err := c.Facts(); err == nil {
		t.Error("an argument passed for the digest of another")
	}
}

func parse(t *testing.T, call map[string]any) toolcall.Call {
	t.Helper()
	data, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	c, err := toolcall.Parse(toolcall.Claude, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// FuzzParse holds that what Parse accepts has a tool, an action and bounded facts.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, call := range archive.Files {
			f.Add(call.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range []toolcall.Harness{toolcall.Claude, toolcall.Codex, toolcall.Gemini, toolcall.Cursor} {
			_, _ = toolcall.ParseMade(h, data)
			c, err := toolcall.Parse(h, data)
			if err != nil {
				continue
			}
			resource, err := c.Resource()
			if c.Tool == "" || c.ActionType() == "" || err == nil && resource == "" {
				t.Errorf("%s: Parse(%q) has the tool %q, the action %q and the resource %q", h, data, c.Tool, c.ActionType(), resource)
			}
			if c.ActionType() == toolcall.FileWrite && err == nil && !filepath.IsAbs(resource) {
				t.Errorf("%s: Parse(%q) writes to %q", h, data, resource)
			}
			facts, err := c.Facts()
			if len(facts) > 64 {
				t.Errorf("%s: Parse(%q) has %d facts", h, data, len(facts))
			}
			for k, v := range facts {
				if strings.HasPrefix(k, "fact.arg.") && len(v) > 1024 || !utf8.ValidString(v) || err != nil {
					t.Errorf("%s: Parse(%q) has the fact %s = %q, %v", h, data, k, v, err)
				}
			}
		}
	})
}

// TestEntityResource checks that what an id is does not depend on whether the rest of it is a URL.
func TestEntityResource(t *testing.T) {
	for id, want := range map[string]string{
		"42":                 "customer/42",
		"a/b":                "a/b",
		"cust:42":            "cust:42",
		"cust:%zz":           "cust:%zz",
		"x-y.z+1:[":          "x-y.z+1:[",
		"mailto:a@b.example": "mailto:a@b.example",
		"4a:b":               "customer/4a:b",
		"a b:c":              "customer/a b:c",
		":a":                 "customer/:a",
		"ä:b":                "customer/ä:b",
		"":                   "customer/",
	} {
		if got := toolcall.EntityResource("customer", id); got != want {
			t.Errorf("EntityResource(customer, %q) = %q, want %q", id, got, want)
		}
	}
}
