package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/diff"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
)

// Installation is a hook as a harness's settings have it.
type Installation struct {
	Hook    Hook
	Program string // the absolute path of writ
	Project string // the directory of a project, or "" for the user's own settings
	Record  bool   // calls that were made are recorded, too
}

// guard stands behind the command. A program that is missing is exit code 127, which lets a call run.
// A hook that exits with 2 has said why.
const guard = ` || { [ $? = 2 ] || echo "writ could not decide" >&2; exit 2; }`

// patience is how much longer than writ a harness waits.
const patience = 5 * time.Second

// File returns the file of the harness's settings.
func (i Installation) File() (string, error) {
	dirs := map[toolcall.Harness][2]string{
		toolcall.Claude: {".claude", "settings.json"}, toolcall.Codex: {".codex", "hooks.json"},
		toolcall.Gemini: {".gemini", "settings.json"}, toolcall.Cursor: {".cursor", "hooks.json"},
	}
	dir, name := dirs[i.Hook.Harness][0], dirs[i.Hook.Harness][1]
	if i.Project != "" {
		return filepath.Join(i.Project, dir, name), nil
	}
	elsewhere := map[toolcall.Harness]string{toolcall.Claude: "CLAUDE_CONFIG_DIR", toolcall.Codex: "CODEX_HOME"}
	variable := elsewhere[i.Hook.Harness]
	if at, set := os.LookupEnv(variable); set && at == "" && i.Hook.Harness == toolcall.Claude {
		return "", fmt.Errorf("%s is set and empty, so Claude Code reads other settings: unset it", variable)
	}
	if at := os.Getenv(variable); at != "" {
		return filepath.Join(at, name), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, dir, name), err
}

// command returns the command line of the hook for a use.
func (i Installation) command(use Use) string {
	h := i.Hook
	words := []string{i.Program, "hook", string(h.Harness)}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	flag("--url", h.URL)
	flag("--api-key-file", h.APIKeyFile)
	flag("--policy-id", h.PolicyID)
	flag("--agent-id", h.AgentID)
	flag("--state", h.State)
	flag("--mapping", h.Mapping)
	flag("--verify-keys", h.Keys)
	flag("--ca", h.CA)
	flag("--timeout", h.Timeout.String())
	if h.Sources {
		words = append(words, "--sources")
	}
	if use != Decide {
		return quoted(append(words, string(use)))
	}
	if h.SessionTTL > 0 {
		flag("--session-ttl", h.SessionTTL.String())
		flag("--session-actions", strings.Join(h.SessionActions, ","))
	}
	flag("--held", h.Held)
	if h.Held == HeldWait {
		flag("--wait", h.Wait.String())
	}
	if h.AutoApprove {
		words = append(words, "--auto-approve")
	}
	return quoted(words) + guard
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted returns words for a shell.
func quoted(words []string) string {
	for i, w := range words {
		if !plainWord.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// seconds is how long the harness waits for the hook.
func (i Installation) seconds(use Use) int {
	d := i.Hook.Timeout + patience
	if i.Hook.Held == HeldWait && use == Decide {
		d += i.Hook.Wait
	}
	return int((d + time.Second - 1) / time.Second)
}

// entry is the hook of an event, in the form of the harness.
func (i Installation) entry(event string, use Use) any {
	type member = map[string]any
	command, seconds := i.command(use), i.seconds(use)
	one := member{"type": "command", "command": command, "timeout": seconds}
	switch i.Hook.Harness {
	case toolcall.Cursor:
		one = member{"command": command, "timeout": seconds}
		if use == Decide {
			one["failClosed"] = true
		}
		if event == "preToolUse" || event == "postToolUse" {
			one["matcher"] = "Write|Delete" // what the other events do not have
		}
		return one
	case toolcall.Gemini:
		one["timeout"] = 1000 * seconds
		if use == End {
			return member{"hooks": []any{one}}
		}
		return member{"matcher": ".*", "hooks": []any{one}}
	case toolcall.Codex:
		return member{"hooks": []any{one}}
	}
	if use == Decide {
		one["onFailure"] = "block"
	}
	if use == End || event == toolcall.Prompt(i.Hook.Harness) {
		return member{"hooks": []any{one}}
	}
	return member{"matcher": "*", "hooks": []any{one}}
}

// installedAfter has the events in which a hook records calls. Cursor has its events by the kind of call.
var installedAfter = map[toolcall.Harness][]string{
	toolcall.Claude: {"PostToolUse", "PostToolUseFailure"}, toolcall.Codex: {"PostToolUse"},
	toolcall.Gemini: {"AfterTool"}, toolcall.Cursor: {"afterShellExecution", "afterMCPExecution", "postToolUse"},
}

// events returns the events of the hook, with what it is used for there. The session of a deferred call stays
// open, so that the call is in it when the harness is resumed.
func (i Installation) events() iter.Seq2[string, Use] {
	return func(yield func(string, Use) bool) {
		var recorded, kept, ended []string
		if i.Hook.Sources {
			kept = []string{toolcall.Prompt(i.Hook.Harness)}
		}
		switch after := installedAfter[i.Hook.Harness]; {
		case i.Record:
			recorded = after
		case i.Hook.Sources:
			kept = append(kept, after...)
		}
		if (i.Hook.SessionTTL > 0 || i.Hook.Sources) && i.Hook.Held != HeldDefer {
			ended = []string{toolcall.End(i.Hook.Harness)}
		}
		for _, of := range []struct {
			use    Use
			events []string
		}{{Decide, toolcall.Before(i.Hook.Harness)}, {Record, recorded}, {Keep, kept}, {End, ended}} {
			for _, event := range of.events {
				if !yield(event, of.use) {
					return
				}
			}
		}
	}
}

// Change is a file before and after the installation.
type Change struct {
	File          string
	Before, After []byte
}

// Changes reports whether there is anything to write.
func (c Change) Changes() bool { return !bytes.Equal(c.Before, c.After) }

// Diff returns the change as a unified diff.
func (c Change) Diff() []byte { return diff.Diff(c.File, c.Before, c.File, c.After) }

// Write writes the file, whole or not at all. A new file is the user's alone.
func (c Change) Write() error {
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return err
	}
	at := real(c.File) // a link stays one
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(at); err == nil {
		mode = info.Mode().Perm()
	}
	return plug.WriteFile(at, c.After, mode, true)
}

// Plan returns how the installation changes the settings. Everything else in them stays.
func (i Installation) Plan() (Change, error) {
	file, err := i.File()
	if err != nil {
		return Change{}, err
	}
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Change{}, err
	}
	doc := jsontext.Value(bytes.TrimSpace(before))
	if len(doc) == 0 {
		doc = jsontext.Value("{}")
		if i.Hook.Harness == toolcall.Cursor {
			doc = jsontext.Value(`{"version":1}`)
		}
	}
	after, err := i.settings(doc)
	if err != nil {
		return Change{}, fmt.Errorf("%s: %w: change it by hand", file, err)
	}
	if old := doc.Clone(); old.Compact() == nil && after.Compact() == nil && bytes.Equal(old, after) {
		return Change{file, before, before}, nil
	}
	if err := after.Indent(jsontext.WithIndent("  ")); err != nil {
		return Change{}, err
	}
	return Change{file, before, append(after, '\n')}, nil
}

// settings returns the settings with the hook.
func (i Installation) settings(doc jsontext.Value) (jsontext.Value, error) {
	return withMember(doc, "hooks", "{}", func(hooks jsontext.Value) (_ jsontext.Value, err error) {
		for event, use := range i.events() {
			if hooks, err = i.withHook(hooks, event, use); err != nil {
				return nil, err
			}
		}
		return hooks, nil
	})
}

// withHook returns the hooks with writ's hook of an event. It takes the place of an earlier one.
func (i Installation) withHook(hooks jsontext.Value, event string, use Use) (jsontext.Value, error) {
	return withMember(hooks, event, "[]", func(list jsontext.Value) (jsontext.Value, error) {
		var old []json.RawMessage
		if err := json.Unmarshal(list, &old); err != nil {
			return nil, fmt.Errorf("hooks.%s is no list", event)
		}
		entry, err := encoded(i.entry(event, use))
		if err != nil {
			return nil, err
		}
		all, placed := []json.RawMessage{}, false
		for _, e := range old {
			if !i.own(e) {
				all = append(all, e)
				continue
			}
			if !placed {
				all, placed = append(all, entry), true
			}
		}
		if !placed {
			all = append(all, entry)
		}
		return encoded(all)
	})
}

// encoded returns the JSON of v. A > of a command stays one.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// own reports whether an entry is writ's own and nothing else.
func (i Installation) own(entry json.RawMessage) bool {
	commands := commandsOf(entry)
	return len(commands) == 1 && i.isWrit(commands[0])
}

// isWrit reports whether a command runs writ as a hook.
func (i Installation) isWrit(command string) bool {
	return regexp.MustCompile(`(^|[/'" ])writ[^/ ]* hook ` + string(i.Hook.Harness) + `( |$)`).MatchString(command)
}

// commandsOf returns the command of an entry and the commands of its hooks.
func commandsOf(entry json.RawMessage) (all []string) {
	var e struct {
		Command string
		Hooks   []struct{ Command string }
	}
	if json.Unmarshal(entry, &e) != nil {
		return nil
	}
	if e.Command != "" {
		all = append(all, e.Command)
	}
	for _, h := range e.Hooks {
		all = append(all, h.Command)
	}
	return all
}

// withMember returns an object with a member changed. The other members and their order stay.
func withMember(
	doc jsontext.Value, name, none string, change func(jsontext.Value) (jsontext.Value, error),
) (jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	if dec.PeekKind() != '{' {
		return nil, errors.New("want JSON without comments: an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	out, found := []byte("{"), false
	add := func(name string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendQuoted(out, name), ':'), v...)
	}
	for dec.PeekKind() == '"' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		at := tok.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if at == name {
			found = true
			if v, err = change(v); err != nil {
				return nil, err
			}
		}
		add(at, v)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("want JSON without comments: %w", err)
	}
	if !found {
		v, err := change(jsontext.Value(none))
		if err != nil {
			return nil, err
		}
		add(name, v)
	}
	return append(out, '}'), nil
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return strconv.AppendQuoteToASCII(dst, s)
	}
	return quoted
}

// Managed returns the settings with which an administrator installs the hook for all users, so that
// they cannot take it out.
func (i Installation) Managed() (string, error) {
	switch i.Hook.Harness {
	case toolcall.Claude:
		doc, err := i.settings(jsontext.Value(`{"allowManagedHooksOnly":true}`))
		if err == nil {
			err = doc.Indent(jsontext.WithIndent("  "))
		}
		return string(doc) + "\n", err
	case toolcall.Codex:
		var b strings.Builder
		b.WriteString("allow_managed_hooks_only = true\n\n[features]\nhooks = true\n")
		b.WriteString("\n[hooks]\nmanaged_dir = " + tomlText(filepath.Dir(i.Program)) + "\n")
		for event, use := range i.events() {
			fmt.Fprintf(&b, "\n[[hooks.%s]]\n[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
				event, event, tomlText(i.command(use)), i.seconds(use))
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("--managed: %s has no managed hooks that writ knows: want claude or codex", i.Hook.Harness)
}

// tomlText quotes a text for TOML, whose basic strings have JSON's escapes.
func tomlText(s string) string { return cmp.Or(string(appendQuoted(nil, s)), `""`) }
