package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// ErrUnavailable means that a peer cannot do the work or is not available on this machine.
var ErrUnavailable = errors.New("cannot be had here")

// The versions of the peers. They are fetched if PATH has no such peer.
const (
	opaVersion    = "v1.22.0"
	cerbosVersion = "0.55.0"
)

// Peers starts the servers with which writ is compared.
type Peers struct {
	Binary     string   // the binary of this writ, which also serves the floor
	Serve      []string // flags of writ serve for another writ
	Processors []int
	Cache      string               // the directory of fetched binaries
	Say        func(string, ...any) // is called before long work
}

// Forms returns the peers that a name stands for. OPA and Cerbos are measured in several forms.
func Forms(name string) []string {
	switch name {
	case "opa":
		return []string{"opa-lean", "opa-log", "opa-exported"}
	case "cerbos":
		return []string{"cerbos", "cerbos-audit"}
	}
	return []string{name}
}

// Start starts the peer called name: floor, one of the [Forms] of opa and cerbos, or the path of another writ's
// binary. The peer does the same work as beside. The error is [ErrUnavailable] if the peer cannot
// do that work or is not available on this machine.
func (p Peers) Start(ctx context.Context, name string, w Work, beside *Subject) (*Subject, error) {
	switch {
	case name == "floor" && (w.Stream > 0 || w.Approvals):
		return nil, fmt.Errorf("%w: the floor answers requests, one or a batch", ErrUnavailable)
	case name == "floor":
		return startFloor(ctx, p.Binary, p.Processors, beside)
	case strings.ContainsRune(name, filepath.Separator):
		return Program{Name: filepath.Base(name), Binary: name, Args: p.Serve, Processors: p.Processors}.Start(ctx, w)
	case !slices.Contains(append(Forms("opa"), Forms("cerbos")...), name):
		return nil, fmt.Errorf("there is no peer %q: want floor, opa, cerbos or the path of a writ", name)
	case w.Rules+w.Rego+w.Batch+w.Stream > 0 || w.Approvals || w.Documents != "" || w.Organizations*w.Policies > 1:
		return nil, fmt.Errorf("%w: %s is compared by the reference policy alone, without rules, and by single "+
			"requests", ErrUnavailable, name)
	case strings.HasPrefix(name, "opa"):
		return p.opa(ctx, name)
	default:
		return p.cerbos(ctx, name)
	}
}

// find returns the path of a binary. If PATH does not have the binary, find takes it from the
// cache, and calls fetch if the cache does not have it either.
func (p Peers) find(
	ctx context.Context, name, version string, fetch func(ctx context.Context, dir string) (string, error),
) (string, error) {
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	dir := filepath.Join(p.Cache, name+"-"+version)
	kept := filepath.Join(dir, "bin", name)
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o750); err != nil {
		return "", err
	}
	p.Say("there is no %s in PATH: fetching %s, which may take minutes", name, version)
	fetched, err := fetch(ctx, dir)
	if err == nil {
		err = os.Rename(fetched, kept)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return kept, nil
}

// run runs a program from PATH in a directory.
func run(ctx context.Context, dir string, environ []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the programs are constants
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %.500s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// fetchOPA builds OPA from its Go module.
func fetchOPA(ctx context.Context, dir string) (string, error) {
	const module = "github.com/open-policy-agent/opa@" + opaVersion
	err := run(ctx, dir, []string{"GOBIN=" + dir}, "go", "install", "-tags=opa_no_oci", "-ldflags=-s -w", module)
	return filepath.Join(dir, "opa"), err
}

// fetchCerbos gets Cerbos from npm, where its makers publish the binary.
func fetchCerbos(ctx context.Context, dir string) (string, error) {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name := fmt.Sprintf("cerbos-%s-%s", runtime.GOOS, arch)
	err := run(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir,
		"@cerbos/"+name+"@"+cerbosVersion)
	return filepath.Join(dir, "node_modules", "@cerbos", name, name), err
}

// union returns a regular expression of RE2 that matches if any of the globs matches. It takes
// each glob as written, because peers read a resource in only one way.
func union(globs []string) string {
	var b strings.Builder
	for i, glob := range globs {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(expression(glob))
	}
	return "^(?:" + b.String() + ")$"
}

// expression returns a glob as a regular expression.
func expression(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			b.WriteString("(?:")
		case c == '}':
			b.WriteByte(')')
		case c == ',':
			b.WriteByte('|')
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String()
}
