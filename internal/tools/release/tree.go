package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// soakFile is what make soak writes: "revision" and the commit in the first line, "passed" in the last.
const soakFile = "bench/results/soak.txt"

// release is what is released: a commit with a tag.
type release struct {
	root     string
	tag      string // such as v1.2.3
	revision string
	time     time.Time // of the commit, which all files get
}

// identify reads which release the tree at root is. It refuses a tree with changes, and a commit without a tag.
func identify(ctx context.Context, root string) (release, error) {
	r := release{root: root}
	changes, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return r, err
	}
	if changes != "" {
		return r, fmt.Errorf("the tree has changes: commit or remove them\n%s", changes)
	}
	if r, err = r.describe(ctx); err != nil {
		return r, err
	}
	if r.tag, err = r.git(ctx, "describe", "--tags", "--exact-match", "--match", "v[0-9]*", "HEAD"); err != nil {
		return r, fmt.Errorf("the commit has no tag such as v1.2.3: %w", err)
	}
	return r, nil
}

// describe reads the commit and its time.
func (r release) describe(ctx context.Context) (release, error) {
	out, err := r.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return r, err
	}
	revision, seconds, _ := strings.Cut(out, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return r, fmt.Errorf("reading the time of the commit: %w", err)
	}
	r.revision, r.time = revision, time.Unix(unix, 0).UTC()
	return r, nil
}

// soaked refuses a tree unless make soak passed on it: at a commit from which this one differs in the output alone.
func (r release) soaked(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.root, soakFile))
	if err != nil {
		return fmt.Errorf("a release wants the output of make soak, committed: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	revision, ok := strings.CutPrefix(first, "revision ")
	if !ok || !strings.HasSuffix(string(text), "\npassed\n") {
		return fmt.Errorf("%s: want the first line \"revision COMMIT\" and the last \"passed\": run make soak", soakFile)
	}
	if _, err := r.git(ctx, "merge-base", "--is-ancestor", revision, "HEAD"); err != nil {
		return fmt.Errorf("%s is of commit %s, which this tree does not come from: run make soak", soakFile, revision)
	}
	out, err := r.git(ctx, "diff", "--name-only", revision, "HEAD")
	if err != nil {
		return err
	}
	changed := slices.DeleteFunc(strings.Fields(out), func(name string) bool { return name == soakFile })
	if len(changed) > 0 {
		return fmt.Errorf("%d files have changed since make soak passed at %s, such as %s: run make soak", len(changed), revision, changed[0])
	}
	return nil
}

// git returns the output of a git command, without space around it.
func (r release) git(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...))
}

// output returns what cmd prints to standard output. Its error has its standard error.
func output(cmd *exec.Cmd) (string, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
