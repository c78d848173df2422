package system

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/storage/datadir"
)

// block is a fenced block of commands. A sh block has only commands. A console block has commands
// after "$ " and their output.
type block struct {
	line     int
	commands []shown
	notRun   string // the reason, from a comment "not run: …" above the fence
}

// shown is a command and the output that the page shows for it. In the output, "…" stands for
// any text, an id for any id, and a time for any time.
type shown struct {
	command string
	output  []string
	checked bool // the block is a console block, so the output is compared
}

// maxNotRun is the maximum number of blocks that no test runs. Each such block must give a reason.
const maxNotRun = 4

// pages returns README.md and the pages of docs/.
func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 5 {
		t.Fatalf("found the pages %v, %v", names, err)
	}
	return append(names, "../../README.md")
}

// TestDocs_EveryCommandRuns runs each block of commands of each page unchanged. Each page has its
// own shell and its own server. The server runs as `make run` starts it, but on another address.
func TestDocs_EveryCommandRuns(t *testing.T) {
	t.Parallel()
	run, skipped := 0, 0
	for _, name := range pages(t) {
		var session []block
		for _, b := range blocksOf(t, name) {
			if b.notRun == "" {
				session = append(session, b)
				continue
			}
			skipped++
			t.Logf("NOT RUN %s:%d: %s", filepath.Base(name), b.line, b.notRun)
		}
		if len(session) > 0 {
			run += len(session)
			t.Run(filepath.Base(name), func(t *testing.T) { runSession(t, filepath.Base(name), session) })
		}
	}
	t.Logf("%d blocks of commands run, %d not", run, skipped)
	if skipped > maxNotRun {
		t.Errorf("%d blocks are not run, want at most %d", skipped, maxNotRun)
	}
	if run < 6 {
		t.Errorf("%d blocks were run, want those of README and docs", run)
	}
}

var (
	fence  = regexp.MustCompile("^```(sh|console)$")
	reason = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	// closed matches text in which a quote opens nothing.
	closed = regexp.MustCompile(`\\"|'[^']*'`)
	// loose matches a command outside of a fence, where no test would run it.
	loose = regexp.MustCompile("^((    |\t)(\\$ |bin/writ |curl |make |writ )| +```(sh|console)$)")
)

func blocksOf(t *testing.T, name string) []block {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	lines := strings.Split(string(text), "\n")
	var all []block
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			if strings.HasPrefix(lines[i], "```") { // a block of another language
				for i++; i < len(lines) && lines[i] != "```"; i++ {
				}
			} else if loose.MatchString(lines[i]) {
				t.Errorf("%s:%d: a command outside of a fenced block, or in one that is indented, which no test runs: %s", name, i+1, lines[i])
			}
			continue
		}
		b := block{line: i + 1}
		if i > 0 {
			if why := reason.FindStringSubmatch(lines[i-1]); why != nil {
				b.notRun = why[1]
			}
		}
		var body []string
		for i++; i < len(lines) && lines[i] != "```"; i++ {
			body = append(body, lines[i])
		}
		b.commands = commandsOf(m[1], body)
		all = append(all, b)
	}
	return all
}

// commandsOf splits a block into commands. In a console block, a command continues on the next line
// if it ends with a backslash or has an open quote.
func commandsOf(kind string, body []string) []shown {
	if kind == "sh" {
		return []shown{{command: strings.Join(body, "\n")}}
	}
	var all []shown
	for _, line := range body {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, shown{command: command, checked: true})
			continue
		}
		last := &all[len(all)-1]
		open := strings.Count(closed.ReplaceAllString(last.command, ""), `"`)%2 == 1
		if len(last.output) == 0 && (strings.HasSuffix(last.command, `\`) || open) {
			last.command += "\n" + line
			continue
		}
		last.output = append(last.output, line)
	}
	return all
}

// runSession runs the blocks of a page in one shell. The shell's directory is like a clone after
// make: it has bin/writ and examples/. A page that says systemctl starts and stops the server itself.
func runSession(t *testing.T, page string, session []block) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: there is no %s to run what the page shows", program)
		}
	}
	dir := t.TempDir()
	binary := released
	if page == "retention.md" {
		binary = faulty // days pass in it
	}
	writ, err := binary()
	must(t, err)
	examples, err := filepath.Abs("../../examples")
	must(t, err)
	for link, to := range map[string]string{"bin/writ": writ, "examples": examples} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755))
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	script := new(bytes.Buffer)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-s")
	cmd.WaitDelay = patience
	cmd.Dir, cmd.Stdin = dir, script
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
	var api, admin string
	if own := slices.ContainsFunc(session, block.stopsTheServer); own {
		api, admin = freeAddr(t), freeAddr(t)
		service(t, cmd, page, api, admin)
		script.WriteString("systemctl start writ || exit 1; trap 'systemctl stop writ' EXIT\n")
	} else {
		p := start(t, datadir.Dir(filepath.Join(dir, "data")), "--demo")
		defer p.stop(t)
		api, admin = hostOf(p.url), hostOf(p.admin)
	}
	addresses := strings.NewReplacer("localhost:3820", api, "localhost:3821", admin)
	var all []shown
	for _, b := range session {
		for _, c := range b.commands {
			command := addresses.Replace(c.command)
			fmt.Fprintf(script, "{ %s\n} >out.%d 2>&1 || echo \"exit code $?\" >>out.%d\n", command, len(all), len(all))
			all = append(all, c)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the shell = %v\n%s", err, out)
	}
	for i, c := range all {
		out, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", i)))
		must(t, err)
		c.compare(t, string(out))
	}
}

// stopsTheServer reports whether a block starts, stops or restarts the server.
func (b block) stopsTheServer() bool {
	return slices.ContainsFunc(b.commands, func(c shown) bool { return strings.Contains(c.command, "systemctl ") })
}

// systemctl starts and stops the server of a page, as systemd does. A supervising shell waits for the server, because
// one that ended stays until somebody waits for it. On the page of retention eleven days pass while the server is
// stopped.
const systemctl = `#!/bin/bash
set -eu
if [[ $1 = stop || $1 = restart ]]; then
    kill "$(cat writ.pid)"
    until [ -e writ.ended ]; do sleep 0.05; done
fi
if [[ $1 = start || $1 = restart ]]; then
    if [ -e writ.ended ] && [ "$PAGE" = retention.md ]; then export CLOCK_AHEAD=264h; fi
    demo=--demo; [ ! -e writ.ended ] || demo=
    rm -f writ.ended; : >writ.log
    (
        bin/writ serve --data data --addr "$ADDR" --admin-addr "$ADMIN" $demo $( [ ! -e plans.json ] || echo --plans plans.json ) &
        echo $! >writ.pid; wait $! || :; : >writ.ended
    ) </dev/null >writ.log 2>&1 &
    until grep -q "writ serves on" writ.log; do
        [ ! -e writ.ended ] || { cat writ.log; exit 1; }
        sleep 0.05
    done
fi
`

// service gives the shell of a page a systemctl. The data directory of the page about full disks is a small file system.
func service(t *testing.T, cmd *exec.Cmd, page, api, admin string) {
	t.Helper()
	bin := filepath.Join(cmd.Dir, "bin")
	must(t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte(systemctl), 0o700)) //nolint:gosec // it is run
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "ADDR="+api, "ADMIN="+admin, "PAGE="+page)
	if page != "disk-full.md" {
		return
	}
	data := filepath.Join(cmd.Dir, "data")
	must(t, os.Mkdir(data, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=384m,mode=0700", "tmpfs", data).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: a full disk needs root, to mount a small file system: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", data).CombinedOutput(); err != nil {
			t.Errorf("umount = %v %s", err, out)
		}
	})
}

// compare reports the places where the output differs from the shown output.
func (c shown) compare(t *testing.T, out string) {
	t.Helper()
	if strings.Contains(out, "exit code ") {
		t.Errorf("$ %s\n%s", c.command, out)
		return
	}
	if !c.checked {
		return
	}
	want := strings.Join(c.output, "\n")
	if !likeShown(want).MatchString(masked(strings.TrimRight(out, "\n"))) {
		t.Errorf("$ %s\nprints\n%s\nthe page shows\n%s", c.command, out, want)
	}
}

// varies matches the parts of an output that differ between runs.
var varies = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), // ids that writ makes
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`),
	regexp.MustCompile(`\b1[0-9]{9}\b`),      // Unix times
	regexp.MustCompile(`[A-Za-z0-9_-]{43,}`), // key ids, which may begin and end with -
}

// masked replaces each varying part of text by a fixed word.
func masked(text string) string {
	for _, v := range varies {
		text = v.ReplaceAllLiteralString(text, "<varies>")
	}
	return text
}

// likeShown returns a regular expression for the masked outputs that match the shown text of a
// page.
func likeShown(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(masked(text)), "…", ".*") + "$")
}

// TestREADME_HasAtMost900Words checks the length of README.md. Details belong in a page of docs/.
func TestREADME_HasAtMost900Words(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	if got := len(strings.Fields(string(text))); got > 900 {
		t.Errorf("README.md has %d words, want at most 900", got)
	}
}

// TestDocs_EachPageIsShort checks the length of each page of docs/. A word has a letter or a digit, so the lines of a
// table do not count.
func TestDocs_EachPageIsShort(t *testing.T) {
	word := regexp.MustCompile(`[\pL\pN]`)
	for _, name := range pages(t) {
		words := 0
		for field := range strings.FieldsSeq(readText(t, name)) {
			if word.MatchString(field) {
				words++
			}
		}
		if words >= 2000 {
			t.Errorf("%s has %d words, want fewer than 2,000: a page has one purpose", filepath.Base(name), words)
		}
	}
}
