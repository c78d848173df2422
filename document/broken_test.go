package document

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what is said of the broken documents")

// TestBroken holds what is said of broken documents, which were written before anybody
// looked at what is said of them. A message is good if it has the line and the word that
// leads to the mend.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("testdata/broken has %d files, %v, want at least 60", len(files), err)
	}
	for _, name := range files {
		if strings.HasPrefix(filepath.Base(name), "suite-") {
			continue // TestBroken_Suites
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%s has %d files, %v, want a document and want", name, len(archive.Files), err)
			}
			got := said(archive.Files[0])
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" || got == "" {
				t.Errorf("said of %s (-want +got):\n%s", archive.Files[0].Name, diff)
			}
		})
	}
}

// said returns every problem of the documents in a file, each with its line and a caret.
func said(f txtar.File) string {
	docs, err := Parse(f.Name, f.Data)
	var all []Problem
	var found *Error
	if errors.As(err, &found) {
		all = found.Problems
	}
	for _, d := range docs {
		if errors.As(d.Check(options), &found) {
			all = append(all, found.Problems...)
		}
	}
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.String() + "\n" + p.Caret() + "\n")
	}
	return b.String()
}
