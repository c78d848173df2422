package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestComplete(t *testing.T) {
	parser, err := kong.New(new(cli), kong.Vars{"version": ""})
	must(t, err)
	for line, want := range map[string][]string{
		"ser":                         {"serve"},
		"compl":                       {"completion"}, // complete is hidden
		"keys ":                       {"generate", "list", "retire", "show"},
		"keys g":                      {"generate"},
		"serve --store ":              {"embedded", "mongodb"},
		"serve --store e":             {"embedded"},
		"serve --store=m":             {"--store=mongodb"},
		"serve --store = m":           {"mongodb"}, // as bash cuts it
		"serve --store =":             {"embedded", "mongodb"},
		"serve --demo --store ":       {"embedded", "mongodb"},
		"serve --addr :1 --sto":       {"--store"},
		"export -o a.ndjson --store ": {"embedded", "mongodb"},
		"completion ":                 {"bash", "zsh", "fish"},
		"completion bash ":            nil,
		"check ":                      nil, // a file
		"nothing --such":              nil,
		"serve --nothing=":            nil,
	} {
		var got []string
		for _, one := range complete(parser.Model.Node, strings.Split(line, " ")) {
			got = append(got, one.word)
		}
		if !slices.Equal(got, want) {
			t.Errorf("complete(%q) = %q, want %q", line, got, want)
		}
	}
}

// TestCompletion_InEachShell asks each shell how it completes.
func TestCompletion_InEachShell(t *testing.T) {
	bin := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(bin, "writ")))
	for shell, script := range map[string]string{
		"bash": `. $SCRIPT; COMP_WORDS=(writ keys g); COMP_CWORD=2; _writ; echo "${COMPREPLY[@]}"`,
		"zsh":  `compdef() { :; }; . $SCRIPT; _describe() { print -l $found; }; words=(writ keys g); CURRENT=3; _writ`,
		"fish": `source $SCRIPT; complete -C 'writ keys g'`,
	} {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("SKIPPED: there is no %s", shell)
			}
			file := filepath.Join(t.TempDir(), "script")
			text, err := completions.ReadFile("completion/writ." + shell)
			must(t, err)
			must(t, os.WriteFile(file, text, 0o600))
			cmd := exec.Command(program, "-c", script)
			cmd.Env = append(os.Environ(), "SCRIPT="+file, "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(got, "generate") || strings.Contains(got, "list") {
				t.Errorf("%s completes \"writ keys g\" to %q, %v, want generate", shell, got, err)
			}
		})
	}
}

// TestMan has man format each page, and holds that it has no warning.
func TestMan(t *testing.T) {
	parser, err := kong.New(new(cli), kong.Vars{"version": ""})
	must(t, err)
	page := manPage(childOf(childOf(parser.Model.Node, "keys"), "generate"))
	for _, want := range []string{".TH KEYS\\-GENERATE", "writ keys generate \\-\\-data ./data", ".B \\-\\-in=5m"} {
		if !strings.Contains(strings.ReplaceAll(page, "WRIT.TEST\\-", ""), want) {
			t.Errorf("the page of keys generate lacks %q:\n%s", want, page)
		}
	}
	program, err := exec.LookPath("man")
	if err != nil {
		t.Skip("SKIPPED the format of the pages: there is no man")
	}
	for _, node := range append(parser.Model.Leaves(true), parser.Model.Node) {
		file := filepath.Join(t.TempDir(), "page.1")
		must(t, os.WriteFile(file, []byte(manPage(node)), 0o600))
		cmd := exec.Command(program, "--warnings", "-l", file)
		cmd.Env = append(os.Environ(), "MANPAGER=cat", "LC_ALL=C.UTF-8")
		var errs strings.Builder
		cmd.Stderr = &errs
		if out, err := cmd.Output(); err != nil || errs.Len() > 0 || !strings.Contains(string(out), "EXIT STATUS") {
			t.Errorf("man says of the page of %s: %v\n%s", node.FullPath(), err, &errs)
		}
	}
}

// TestServe_RefusesSystemsWithoutATestedStore holds that serve names the system.
func TestServe_RefusesSystemsWithoutATestedStore(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		if err := serves(system); err == nil || !strings.Contains(err.Error(), "not tested on "+system) {
			t.Errorf("serves(%s) = %v, want an error that names it", system, err)
		}
	}
	if err := serves("linux"); err != nil {
		t.Error(err)
	}
}
