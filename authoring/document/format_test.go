package document

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestFormat_Golden: each testdata/format/NAME.in is written as NAME.want.
func TestFormat_Golden(t *testing.T) {
	names, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %v, %v", names, err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(a.Files); i += 2 {
			in, want := a.Files[i], a.Files[i+1]
			got, err := Format(in.Name, in.Data)
			if err != nil {
				t.Errorf("%s: Format(%s) = %v", name, in.Name, err)
				continue
			}
			if diff := cmp.Diff(string(want.Data), string(got)); diff != "" {
				t.Errorf("%s: Format(%s) (-want +got):\n%s", name, in.Name, diff)
			}
			if again, err := Format(in.Name, got); err != nil || string(again) != string(got) {
				t.Errorf("%s: formatting %s again = %s, %v", name, in.Name, again, err)
			}
		}
	}
}

// TestFormat_OfTheExamples: each has its documents and its comments afterwards, and formatting
// twice is formatting once.
func TestFormat_OfTheExamples(t *testing.T) {
	read := 0
	err := filepath.WalkDir("../../examples", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) != ".yaml" || err != nil {
			return err
		}
		read++
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		before, err := Parse(name, data)
		if err != nil {
			return err
		}
		got, err := Format(name, data)
		if err != nil {
			return err
		}
		if after, err := Parse(name, got); err != nil || !slices.EqualFunc(before, after, (*Document).Equal) {
			t.Errorf("Format(%s) = other documents, %v:\n%s", name, err, got)
		}
		if diff := cmp.Diff(sortedTexts(data), sortedTexts(got)); diff != "" {
			t.Errorf("the comments of %s (-before +after):\n%s", name, diff)
		}
		if again, err := Format(name, got); err != nil || string(again) != string(got) {
			t.Errorf("formatting %s again = %s, %v", name, again, err)
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Errorf("%d examples were read: %v", read, err)
	}
}

func sortedTexts(file []byte) []string { return slices.Sorted(slices.Values(texts(commentsOf(file)))) }

// TestFormat_RefusesToLoseAComment: the YAML library does not read a comment within empty
// brackets.
func TestFormat_EmptyObjects(t *testing.T) {
	for _, text := range []string{"{}\n", "- {}\n", "name: x\naction: {decision: deny}\n--- {}\n"} {
		if got, err := Format("r.yaml", []byte(text)); err != nil || !bytes.Contains(got, []byte("{}")) {
			t.Errorf("Format(%q) = %q, %v, want the object", text, got, err)
		}
	}
}

func TestFormat_RefusesToLoseAComment(t *testing.T) {
	const text = "name: x # kept\ncondition: { # lost\n  }\naction: {decision: deny}\n"
	got, err := Format("r.yaml", []byte(text))
	if want := "r.yaml:2:14: this comment would be lost: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Format = %q, %v, want %s…", got, err, want)
	}
	for _, text := range []string{
		"name: x\ncondition: {#lost\n  agent_id: a}\naction: {decision: deny}\n",
		"name: x\ndescription: |2\n    \n  text\ncondition: { # lost\n  agent_id: a}\naction: {decision: deny}\n",
	} {
		got, err := Format("r.yaml", []byte(text))
		if err == nil && !bytes.Contains(got, []byte("lost")) {
			t.Errorf("Format(%q) = %q, want the comment or an error", text, got)
		}
	}
	edit := Edit{0, []byte(`{"name":"x","condition":{"agent_id":"a"},"action":{"decision":"deny"}}`)}
	if got, err := Rewrite("r.yaml", []byte(text), edit); err == nil || !strings.Contains(err.Error(), "r.yaml:2:14: ") {
		t.Errorf("Rewrite = %q, %v, want the place of the comment", got, err)
	}
}

// FuzzFormat: formatting changes no document, loses no comment, and once is enough.
func FuzzFormat(f *testing.F) {
	names, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Name, file.Data)
		}
	}
	for _, name := range []string{"../../examples/rules.yaml", "../../examples/policies/payments.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		before, err := Parse(name, data)
		if err != nil {
			return
		}
		got, err := Format(name, data)
		if err != nil {
			return // it is not written
		}
		after, err := Parse(name, got)
		if err != nil {
			t.Fatalf("Format(%q) = %q: %v", data, got, err)
		}
		if len(before) != len(after) {
			t.Fatalf("Format(%q) = %q with %d documents, want %d", data, got, len(after), len(before))
		}
		for i := range before {
			if !before[i].Equal(after[i]) {
				t.Errorf("Format(%q) = %q: document %d was %s", data, got, i, before[i].Canonical())
			}
		}
		if again, err := Format(name, got); err != nil || string(again) != string(got) {
			t.Errorf("Format(%q) = %q, %v, want itself", got, again, err)
		}
	})
}
