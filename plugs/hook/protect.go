package hook

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"writ.example/writ/internal/toolcall"
)

// settingsOf returns the files in which a harness looks for hooks, for the user, for the project and for the
// machine.
func settingsOf(harness toolcall.Harness, home, cwd string) []string {
	switch harness {
	case toolcall.Claude:
		user := cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude"))
		return []string{
			filepath.Join(user, "settings.json"), filepath.Join(user, "settings.local.json"),
			filepath.Join(cwd, ".claude", "settings.json"), filepath.Join(cwd, ".claude", "settings.local.json"),
			"/etc/claude-code",
		}
	case toolcall.Codex:
		user := cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex"))
		return []string{
			filepath.Join(user, "hooks.json"), filepath.Join(user, "config.toml"),
			filepath.Join(cwd, ".codex", "hooks.json"), filepath.Join(cwd, ".codex", "config.toml"), "/etc/codex",
		}
	case toolcall.Gemini:
		return []string{
			filepath.Join(home, ".gemini", "settings.json"),
			filepath.Join(cwd, ".gemini", "settings.json"), "/etc/gemini-cli",
		}
	}
	return []string{
		filepath.Join(home, ".cursor", "hooks.json"), filepath.Join(cwd, ".cursor", "hooks.json"), "/etc/cursor",
	}
}

// protected returns the file on which the hook rests and about which the call is, or nothing. A
// shell's command is not looked into: who has a shell reaches these files anyway.
func (h *Hook) protected(call toolcall.Call) string {
	if call.ActionType() == toolcall.ShellExec {
		return ""
	}
	home, _ := os.UserHomeDir() // without one there are no settings of the user's
	named := make(map[string]bool)
	for _, text := range call.Texts() {
		named[text] = true
	}
	if files, err := call.Files(); err == nil {
		for _, f := range files {
			named[f] = true
		}
	}
	for text := range named {
		if len(text) > 4096 || strings.ContainsRune(text, '\n') {
			continue
		}
		at := located(text, home, call.CWD)
		for _, file := range settingsOf(h.Harness, home, call.CWD) {
			if dir := real(filepath.Dir(file)); dir != "/etc" && strings.EqualFold(real(at), dir) {
				return dir // who moves the directory takes the settings along
			}
		}
		for _, own := range h.own(home, call.CWD) {
			if own = real(own); within(at, own) || within(real(at), own) || sameFile(at, own) {
				return own
			}
		}
	}
	return ""
}

// own returns the files on which the hook rests.
func (h *Hook) own(home, cwd string) []string {
	all := append(settingsOf(h.Harness, home, cwd), h.State)
	if program, err := os.Executable(); err == nil {
		all = append(all, program)
	}
	for _, f := range []string{h.APIKeyFile, h.Keys, h.Mapping, h.CA} {
		if f == "" {
			continue
		}
		if at, err := filepath.Abs(f); err == nil {
			all = append(all, at)
		}
	}
	return all
}

// located returns the absolute path that a text may name.
func located(text, home, cwd string) string {
	text = strings.TrimPrefix(text, "file://")
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(cwd, text)
}

// real resolves the symbolic links of a path, as far as it exists.
func real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(real(dir), filepath.Base(path))
	}
	return path
}

// within reports whether a path is own or below it. Some file systems do not tell case apart.
func within(path, own string) bool {
	path, own = strings.ToLower(path), strings.ToLower(own)
	return path == own || strings.HasPrefix(path, own+string(filepath.Separator))
}

// sameFile finds hard links.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
