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

	"writ.example/writ/internal/must"
)

// formatted calls Format and checks its promises: the documents and the comments stay, and
// formatting again changes nothing.
func formatted(t *testing.T, name string, data []byte) ([]byte, error) {
	t.Helper()
	got, err := Format(name, data)
	if err != nil {
		return nil, err // Format refuses the file
	}
	if filepath.Ext(name) == ".rego" {
		return got, nil
	}
	before := must.Get(Parse(name, data))(t)
	if after, err := Parse(name, got); err != nil || !slices.EqualFunc(before, after, equalFormatted) {
		t.Fatalf("Format(%q) = %q with other documents, %v", data, got, err)
	}
	if diff := cmp.Diff(sortedTexts(data), sortedTexts(got)); before[0].file.yaml && diff != "" {
		t.Fatalf("Format(%q) = %q with other comments (-before +after):\n%s", data, got, diff)
	}
	if again, err := Format(name, got); err != nil || string(again) != string(got) {
		t.Fatalf("Format(%q) = %q, %v, want itself", got, again, err)
	}
	return got, nil
}

// TestFormat_Golden formats the first file of each pair in testdata/format, and compares the result
// with the second file.
func TestFormat_Golden(t *testing.T) {
	names, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %v, %v", names, err)
	}
	for _, name := range names {
		a := must.Get(txtar.ParseFile(name))(t)
		for i := 0; i+1 < len(a.Files); i += 2 {
			in, want := a.Files[i], a.Files[i+1]
			got, err := formatted(t, in.Name, in.Data)
			if diff := cmp.Diff(string(want.Data), string(got)); err != nil || diff != "" {
				t.Errorf("%s: Format(%s) = %v (-want +got):\n%s", name, in.Name, err, diff)
			}
		}
	}
}

func TestFormat_OfTheExamples(t *testing.T) {
	read := 0
	err := filepath.WalkDir("../../examples", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) != ".yaml" || err != nil {
			return err
		}
		read++
		_, err = formatted(t, name, must.Get(os.ReadFile(name))(t))
		return err
	})
	if err != nil || read < 20 {
		t.Errorf("%d examples were read: %v", read, err)
	}
}

func sortedTexts(file []byte) []string { return slices.Sorted(slices.Values(texts(commentsOf(file)))) }

func TestFormat_EmptyObjects(t *testing.T) {
	for _, text := range []string{"{}\n", "- {}\n", "name: x\naction: {decision: deny}\n--- {}\n"} {
		if got, err := Format("r.yaml", []byte(text)); err != nil || !bytes.Contains(got, []byte("{}")) {
			t.Errorf("Format(%q) = %q, %v, want the object", text, got, err)
		}
	}
}

// TestFormat_RefusesToLoseAComment checks that Format refuses a file with a comment within empty
// brackets. The YAML library does not read such a comment.
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

// FuzzFormat checks that formatting changes no document and loses no comment, and that formatting
// again changes nothing.
func FuzzFormat(f *testing.F) {
	names := must.Get(filepath.Glob("testdata/format/*.txtar"))(f)
	for _, name := range names {
		a := must.Get(txtar.ParseFile(name))(f)
		for _, file := range a.Files {
			f.Add(file.Name, file.Data)
		}
	}
	for _, name := range []string{"../../examples/rules.yaml", "../../examples/policies/payments.yaml"} {
		data := must.Get(os.ReadFile(name))(f)
		f.Add(name, data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) { _, _ = formatted(t, name, data) }) // Format may also refuse the file
}
