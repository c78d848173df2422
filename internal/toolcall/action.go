package toolcall

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Action types of the tools that all harnesses have.
const (
	ShellExec = "shell.exec"
	FileWrite = "file.write"
	FileRead  = "file.read"
	HTTPGet   = "http_get"
)

// known has the action types of the tools that harnesses bring along.
var known = map[string]string{
	"Bash": ShellExec, "Shell": ShellExec, "PowerShell": ShellExec, "run_shell_command": ShellExec, "shell": ShellExec,
	"local_shell": ShellExec, "exec_command": ShellExec, "write_stdin": ShellExec,
	"Write": FileWrite, "Edit": FileWrite, "MultiEdit": FileWrite, "NotebookEdit": FileWrite, "write_file": FileWrite,
	"replace": FileWrite, "edit": FileWrite, "apply_patch": FileWrite, "StrReplace": FileWrite, "Delete": FileWrite,
	"Read": FileRead, "read_file": FileRead,
}

// paths are the arguments that name a file, in order. manyPaths are lists of files, and parts are lists of
// objects that may name a file each.
var (
	paths     = []string{"file_path", "path", "notebook_path", "absolute_path", "dir_path", "local_path"}
	manyPaths = []string{"file_paths", "paths"}
	parts     = []string{"edits", "files"}
)

// PromptResource returns the resource of a prompt of an MCP server.
func PromptResource(server, name string) string { return "mcp/" + server + "/prompts/" + name }

// beginsWithScheme matches a text that begins with the scheme of a URI and its colon (RFC 3986, 3.1).
var beginsWithScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// EntityResource returns the resource of an AuthZEN entity with this type and id. It is the id if that has a slash or
// begins with a scheme, otherwise type/id. The scheme is read by its characters, as package engine/resource reads it.
// The rest after the scheme need not be a URL: a pattern for cust:** must see cust:%zz too.
func EntityResource(kind, id string) string {
	if strings.Contains(id, "/") || beginsWithScheme.MatchString(id) {
		return id
	}
	return kind + "/" + id
}

// ActionType returns the type of the call's action.
func (c Call) ActionType() string {
	switch {
	case c.method != "": // no tool's name has a colon
		return "mcp." + c.Server() + ":" + c.method
	case c.mcp != "":
		return "mcp." + strings.ReplaceAll(c.mcp, "/", ".")
	case known[c.Tool] != "":
		return known[c.Tool]
	case (c.Tool == "WebFetch" || c.Tool == "web_fetch") && c.text("url") != "":
		return HTTPGet
	}
	return "tool." + strings.ToLower(c.Tool)
}

// Resource returns the one resource of the call: see Resources.
func (c Call) Resource() (string, error) {
	all, err := c.Resources()
	if len(all) > 1 {
		return "", fmt.Errorf("a call about %d files is not decided as one action: name one file in a call", len(all))
	}
	return strings.Join(all, ""), err
}

// Resources returns the resources of the call: the files that it names, a URL, the working directory of a shell,
// or the tool itself.
func (c Call) Resources() ([]string, error) {
	kind := c.ActionType()
	if kind == ShellExec {
		if c.CWD == "" {
			return nil, errors.New("cwd: is missing: a shell runs in a directory")
		}
		return []string{c.CWD}, nil
	}
	files, err := c.Files()
	switch {
	case err != nil:
		return nil, err
	case len(files) > 0:
		return files, nil
	case kind == FileWrite || kind == FileRead:
		return nil, fmt.Errorf("tool_input: %s names no file", c.Tool)
	case c.mcp != "" && c.text("uri") != "":
		return []string{c.text("uri")}, nil
	case c.text("url") != "":
		return []string{c.text("url")}, nil
	case c.mcp != "":
		return []string{"mcp/" + c.mcp}, nil
	}
	return []string{"tool/" + strings.ToLower(c.Tool)}, nil
}

// Files returns the absolute paths of the files that the call names, each once. Of a tool of an MCP server it is
// the first that is there.
func (c Call) Files() ([]string, error) {
	var named []string
	switch {
	case c.mcp != "":
		for _, name := range paths {
			if s := c.text(name); s != "" {
				named = append(named, s)
				break
			}
		}
	case c.Tool == "apply_patch":
		named = patched(c.text("command") + "\n" + c.text("input") + "\n" + c.text("patch"))
	default:
		var err error
		if named, err = c.named(); err != nil {
			return nil, err
		}
	}
	var files []string
	for _, f := range named {
		switch {
		case strings.HasPrefix(f, "~"):
			return nil, fmt.Errorf("the path %.200q can be read in two ways: write it in full", f)
		case filepath.IsAbs(f):
		case c.CWD == "":
			return nil, fmt.Errorf("cwd: is missing, and the path %.200q is relative", f)
		default:
			f = filepath.Join(c.CWD, f)
		}
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files, nil
}

// named returns the files that the arguments name, as they name them.
func (c Call) named() (files []string, err error) {
	for _, name := range paths {
		if s := c.text(name); s != "" {
			files = append(files, s)
		}
	}
	for _, name := range manyPaths {
		var list []string
		if v := c.Args[name]; v.Kind() == '[' && json.Unmarshal(v, &list) != nil {
			return nil, fmt.Errorf("tool_input.%s: want a list of texts", name)
		}
		files = append(files, list...)
	}
	for _, name := range parts {
		var list []jsontext.Value
		if v := c.Args[name]; v.Kind() == '[' && json.Unmarshal(v, &list) != nil {
			return nil, fmt.Errorf("tool_input.%s: want a list", name)
		}
		for _, v := range list {
			var part map[string]jsontext.Value
			if v.Kind() == '{' && json.Unmarshal(v, &part) != nil {
				return nil, fmt.Errorf("tool_input.%s: want objects without duplicate members", name)
			}
			for _, path := range paths {
				if s := (Call{Args: part}).text(path); s != "" {
					files = append(files, s)
				}
			}
		}
	}
	return files, nil
}

// patched returns the files that a patch of Codex adds, changes, deletes or moves to.
func patched(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			f, ok := strings.CutPrefix(strings.TrimSpace(line), mark)
			if f = strings.TrimSpace(f); ok && !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// text returns an argument that is a string.
func (c Call) text(name string) (s string) {
	if v := c.Args[name]; v.Kind() == '"' {
		_ = json.Unmarshal(v, &s) // it was read before
	}
	return s
}

// Texts yields the arguments that are strings, by name.
func (c Call) Texts() map[string]string {
	all := make(map[string]string)
	for name, v := range c.Args {
		if v.Kind() == '"' {
			all[name] = c.text(name)
		}
	}
	return all
}

// Bounds of the facts of a call. A server takes at most 64 keys of 128 bytes.
const (
	maxFacts = 64
	maxName  = 128
	maxValue = 1024
)

const (
	argPrefix   = "fact.arg."
	droppedFact = "fact.arg.dropped"
)

// Facts returns the metadata of the call: what is stated, fact.arg.NAME for each argument, as text or as JSON, with its
// sources if they are known, and the session's. A value of more than 1,024 bytes is fact.arg.NAME.sha256, in hex, and
// fact.arg.NAME.bytes. The arguments beyond 64 keys are left out, those that come later in the
// alphabet; then fact.arg.dropped says how many.
func (c Call) Facts() (map[string]string, error) {
	facts := make(map[string]string, len(c.Stated)+len(c.Args))
	maps.Copy(facts, c.Stated)
	for name, v := range map[string]string{"id": c.Session, "mode": c.Mode, "cwd": c.CWD} {
		if v != "" {
			facts["fact.session."+name] = v
		}
	}
	dropped := 0
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		value := string(c.Args[name])
		if c.Args[name].Kind() == '"' {
			value = c.text(name)
		}
		some := map[string]string{argPrefix + name: value}
		if len(value) > maxValue {
			some = map[string]string{
				argPrefix + name + ".sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(value))),
				argPrefix + name + ".bytes":  strconv.Itoa(len(value)),
			}
		}
		maps.Copy(some, c.Sources[name])
		if len(facts)+len(some) > maxFacts-1 || len(argPrefix+name+".sha256") > maxName {
			dropped++
			continue
		}
		for k, v := range some {
			if _, twice := facts[k]; twice {
				return nil, fmt.Errorf("tool_input: two arguments are called %.200q", strings.TrimPrefix(k, argPrefix))
			}
			facts[k] = v
		}
	}
	if dropped > 0 {
		if _, twice := facts[droppedFact]; twice {
			return nil, errors.New("tool_input: too many arguments, of which one is called dropped")
		}
		facts[droppedFact] = strconv.Itoa(dropped)
	}
	return facts, nil
}
