package document

import (
	"os"
	"path/filepath"
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
	for _, name := range []string{"../examples/rules.yaml", "../examples/policies/payments.yaml"} {
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
			if strings.Contains(err.Error(), "a document would change") || strings.Contains(err.Error(), "cannot be formatted: testdata") {
				t.Errorf("Format(%q) = %v", data, err)
			}
			return
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
