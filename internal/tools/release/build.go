package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// largest is how many bytes a file of a release may have.
const largest = 60_000_000

// target is a system that a release is for.
type target struct{ os, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// make writes the files of a release for each target into out, which must not exist.
func (r release) make(ctx context.Context, out string, targets []target, key minisign.PrivateKey) error {
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "writ-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// A clone has the committed files alone. The go command also stamps no commit in a second work tree.
	tree := filepath.Join(tmp, "tree")
	if _, err := r.git(ctx, "clone", "--quiet", "--local", r.root, tree); err != nil {
		return err
	}
	r.root = tree
	beside, _, err := r.beside(ctx, tmp)
	if err != nil {
		return err
	}
	programs := make(map[string]string) // for Linux, by processor
	for _, t := range targets {
		program := filepath.Join(tmp, t.os+"-"+t.arch, "writ")
		if err := r.build(ctx, t, program); err != nil {
			return err
		}
		if err := r.pack(ctx, t, program, beside, out); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
		if t.os == "linux" {
			programs[t.arch] = program
		}
	}
	if err := r.chart(filepath.Join(out, "writ-"+r.version()+".tgz")); err != nil {
		return err
	}
	digest, err := r.image(programs, tmp, out)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	fmt.Printf("image %s %s\n", r.imageFile(), digest)
	if err := r.sign(out, key); err != nil {
		return err
	}
	return report(out)
}

// build compiles the program for t. -s and -w leave out the symbols and what debuggers read: a third of the file. The
// go command stamps version and commit. Two builds of one commit with one version of Go have the same bytes.
func (r release) build(ctx context.Context, t target, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program, "./cmd/writ")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	_, err := output(cmd)
	return err
}

// pack writes the archive, the packages and the list of linked modules.
func (r release) pack(ctx context.Context, t target, program string, beside []file, out string) error {
	name := fmt.Sprintf("writ_%s_%s_%s", r.version(), t.os, t.arch)
	if err := r.bill(ctx, program, filepath.Join(out, name+".cdx.json")); err != nil {
		return err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if t.os == "windows" {
		return r.zip(filepath.Join(out, name+".zip"), name, append([]file{{"writ.exe", data, 0o755}}, beside...))
	}
	if t.os == "linux" {
		if err := r.packages(t.arch, program, beside, filepath.Dir(filepath.Dir(program)), out); err != nil {
			return err
		}
	}
	return r.tar(filepath.Join(out, name+".tar.gz"), name, append([]file{{"writ", data, 0o755}}, beside...))
}

// bill writes a list of the modules that a program links, in CycloneDX.
func (r release) bill(ctx context.Context, program, name string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=internal/tools/release/go.mod", "cyclonedx-gomod", "bin", "-json",
		"-noserial", "-notimestamp", "-std", "-version", r.tag, "-output", name, program)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -buildvcs=false") // the list has a digest of the tool
	_, err := output(cmd)
	return err
}

// version returns the tag without v, as packages want it.
func (r release) version() string { return strings.TrimPrefix(r.tag, "v") }

// beside returns the files that every archive has beside the program: licences, completions, manual. A program for
// this machine, which beside returns too, prints the last two.
func (r release) beside(ctx context.Context, tmp string) (all []file, program string, err error) {
	program = filepath.Join(tmp, "here")
	if err := r.build(ctx, target{runtime.GOOS, runtime.GOARCH}, program); err != nil {
		return nil, "", err
	}
	said, err := output(exec.CommandContext(ctx, program, "version"))
	if err != nil {
		return nil, "", err
	}
	if want := fmt.Sprintf("writ %s, revision %s, ", r.tag, r.revision); !strings.HasPrefix(said, want) {
		return nil, "", fmt.Errorf("the program says that it is %q, want %q", said, want)
	}
	for _, name := range []string{"LICENSE", "docs/licenses.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, "", err
		}
		all = append(all, file{filepath.Base(name), data, 0o644})
	}
	for _, c := range []struct{ shell, name string }{{"bash", "writ.bash"}, {"zsh", "_writ"}, {"fish", "writ.fish"}} {
		text, err := output(exec.CommandContext(ctx, program, "completion", c.shell))
		if err != nil {
			return nil, "", err
		}
		all = append(all, file{"completion/" + c.name, []byte(text + "\n"), 0o644})
	}
	man := filepath.Join(tmp, "man")
	if _, err := output(exec.CommandContext(ctx, program, "man", man)); err != nil {
		return nil, "", err
	}
	pages, err := os.ReadDir(man)
	if err != nil {
		return nil, "", err
	}
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(man, page.Name()))
		if err != nil {
			return nil, "", err
		}
		all = append(all, file{"man/" + page.Name(), data, 0o644})
	}
	return all, program, nil
}

// report prints the files with their sizes, the largest first. It refuses one that is too large.
func report(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var infos []os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b os.FileInfo) int { return int(b.Size() - a.Size()) })
	for _, info := range infos {
		fmt.Printf("%9d  %s\n", info.Size(), filepath.Join(dir, info.Name()))
	}
	if infos[0].Size() > largest {
		return fmt.Errorf("%s has %d bytes, want at most %d", infos[0].Name(), infos[0].Size(), largest)
	}
	return nil
}
