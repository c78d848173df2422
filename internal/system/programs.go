package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/internal/pypi"
)

// debian is a program of a Debian package. The package need not be installed.
type debian struct {
	path string
	libs string // a directory of shared libraries that the program needs, or empty
}

// command returns the command that runs the program with arguments. It ends when the context
// ends.
func (d debian) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.path, args...)
	if d.libs != "" {
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+d.libs)
	}
	return cmd
}

// needDebian returns a program. If the program is not installed, apt-get downloads the
// packages, of which the first has the program. They are unpacked once into the user's cache
// directory. If there is no apt-get, the test is skipped. In CI, a failing apt-get fails the
// test.
func needDebian(t *testing.T, program string, packages ...string) debian {
	t.Helper()
	if path, err := exec.LookPath(filepath.Base(program)); err == nil {
		return debian{path: path}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skipf("SKIPPED: there is neither %s nor an apt-get to have it from", filepath.Base(program))
	}
	root, err := unpackDebian(packages)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("Debian's %v cannot be had: %v", packages, err)
		}
		t.Skipf("SKIPPED: Debian's %v cannot be had: %v", packages, err)
	}
	d := debian{path: filepath.Join(root, program)}
	if libs, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu")); err == nil && len(libs) == 1 {
		d.libs = libs[0]
	}
	return d
}

// unpackDebian returns a directory with the files of the packages.
func unpackDebian(packages []string) (string, error) {
	return pypi.Cached(filepath.Join("writ-debian", strings.Join(packages, "+")), func(dir string) error {
		debs, err := os.MkdirTemp("", "debs-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(debs)
		if err := downloadDebian(debs, packages); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if out, err := exec.Command("dpkg", "-x", file, dir).CombinedOutput(); err != nil {
				return fmt.Errorf("dpkg -x %s: %w: %.300s", file, err, out)
			}
		}
		return nil
	})
}

// downloadDebian puts the packages' files into a directory. A fresh image has no lists of
// packages, so the lists are updated before the second try.
func downloadDebian(dir string, packages []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	download := func() error {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"download", "-qq"}, packages...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get download: %w: %.300s", err, out)
		}
		return nil
	}
	err := download()
	if err == nil {
		return nil
	}
	if out, updated := exec.CommandContext(ctx, "apt-get", "update", "-qq").CombinedOutput(); updated != nil {
		return fmt.Errorf("%w; apt-get update: %w: %.300s", err, updated, out)
	}
	return download()
}

// buildTool builds a program of internal/tools. If the modules of the program cannot be
// downloaded, the test is skipped.
func buildTool(t *testing.T, name string) (bin string) {
	t.Helper()
	dir := filepath.Join("..", "tools", name)
	if out, err := exec.Command("go", "-C", dir, "list", "-deps", ".").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of internal/tools/%s cannot be had: %v: %.500s", name, err, out)
	}
	bin = filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "-C", dir, "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return bin
}
