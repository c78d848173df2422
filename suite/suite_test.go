package suite

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

// run reads a suite and decides its cases.
func run(t *testing.T, path string, o Options) *Report {
	t.Helper()
	suites, err := new(Loader).Load(path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), suites, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestRun_TheExample is the file of the documentation: 9 of 9 hold, in Rego too.
func TestRun_TheExample(t *testing.T) {
	report := run(t, "testdata/payments_test.yaml", Options{Rego: true})
	if got := len(report.Results); got != 9 {
		t.Errorf("there are %d cases, want 9", got)
	}
	for _, r := range report.Failed() {
		t.Errorf("%s: %s\n%q", r.ID(), r, r.Explained)
	}
}

// memory holds files by their names.
type memory map[string]string

func (m memory) read(name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (m memory) glob(pattern string) (names []string, err error) {
	for name := range m {
		if ok, err := filepath.Match(pattern, name); err != nil {
			return nil, err
		} else if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
