package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// documentedFlag is a row of the table of flags in docs/configuration.md. The columns are the
// flag, its variables, its default and an explanation. A row with two flags gives an entry for
// each flag.
type documentedFlag struct{ variables, byDefault string }

var documentedCode = regexp.MustCompile("`([^`]+)`")

func documentedFlags(t *testing.T) map[string]documentedFlag {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	must(t, err)
	rows := make(map[string]documentedFlag)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `--") {
			continue
		}
		for _, flag := range documentedCode.FindAllStringSubmatch(cells[1], -1) {
			rows[strings.TrimPrefix(flag[1], "--")] = documentedFlag{cells[2], strings.TrimSpace(cells[3])}
		}
	}
	return rows
}

// TestConfiguration_HasEveryFlagOfServe checks that the table has exactly the flags of the
// command. The flags of Stripe share a row.
func TestConfiguration_HasEveryFlagOfServe(t *testing.T) {
	var c cli
	parser, err := kong.New(&c, kong.DefaultEnvars("WRIT"))
	must(t, err)
	rows := documentedFlags(t)
	verbs := parser.Model.Children
	serve := verbs[slices.IndexFunc(verbs, func(n *kong.Node) bool { return n.Name == "serve" })]
	for _, f := range serve.Flags {
		name := f.Name
		if strings.HasPrefix(name, "stripe-") {
			name = "stripe-…"
		}
		row, ok := rows[name]
		if !ok {
			t.Errorf("the table of docs/configuration.md of flags lacks --%s", f.Name)
			continue
		}
		if name != f.Name {
			continue
		}
		for _, variable := range f.Tag.Envs {
			if !strings.Contains(row.variables, "`"+variable+"`") {
				t.Errorf("docs/configuration.md's row of --%s has the variables %s, and lacks %s", f.Name, row.variables, variable)
			}
		}
		if want := "`" + f.Default + "`"; f.Default != "" && row.byDefault != want {
			t.Errorf("docs/configuration.md says that --%s is by default %s, it is %s", f.Name, row.byDefault, want)
		}
	}
	for name := range rows {
		known := slices.ContainsFunc(serve.Flags, func(f *kong.Flag) bool { return f.Name == name })
		if !known && name != "stripe-…" {
			t.Errorf("docs/configuration.md has a row for --%s, which serve does not take", name)
		}
	}
}
