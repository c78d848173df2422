package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpacked makes an image of a program, and returns its digest, its settings and the folder of its files.
func unpacked(t *testing.T, program string) (digest v1.Hash, config v1.Config, root string) {
	t.Helper()
	dir, out, at := t.TempDir(), t.TempDir(), t.TempDir()
	r := release{tag: "v1.2.3", revision: "abc", time: time.Unix(1_700_000_000, 0).UTC()}
	digest, err := r.image(map[string]string{"amd64": program}, dir, out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output(exec.Command("tar", "-C", at, "-xf", filepath.Join(out, r.imageFile()))); err != nil {
		t.Fatal(err)
	}
	path, err := layout.FromPath(at)
	if err != nil {
		t.Fatal(err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		t.Fatalf("the archive lacks the digest that was printed: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != "amd64" {
		t.Fatalf("the archive has %+v, %v, want an image for amd64", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if err == io.EOF {
			return digest, file.Config, root
		} else if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			if h.Uid != imageUser || h.Mode != 0o700 {
				t.Errorf("%s is of %d with mode %o, want %d and 700", h.Name, h.Uid, h.Mode, imageUser)
			}
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(data))
		if err := os.Chmod(name, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImage unpacks an image, starts what its entry point names, and holds that it is reproducible, not of root, and has
// a health check.
func TestImage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "writ")
	write(t, program, "#!/bin/sh\necho started \"$@\"\n")
	one, config, root := unpacked(t, program)
	two, _, _ := unpacked(t, program)
	if one != two {
		t.Errorf("two images of one program have the digests %s and %s", one, two)
	}
	if config.User != "65532:65532" {
		t.Errorf("the image runs as %q", config.User)
	}
	if check := config.Healthcheck; check == nil || strings.Join(check.Test, " ") != "CMD /writ status --url http://127.0.0.1:3820" {
		t.Errorf("the health check is %+v", check)
	}
	out, err := output(exec.Command(filepath.Join(root, config.Entrypoint[0]), config.Cmd...))
	if err != nil || out != "started serve" {
		t.Errorf("the image starts %q, %v", out, err)
	}
	if roots := read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")); bytes.Count([]byte(roots), []byte("BEGIN CERTIFICATE")) < 50 {
		t.Error("the image lacks the certificates of authorities")
	}
}

// TestImage_Serves starts the program itself as the image does: in its files alone, as its user, until its health check
// passes.
func TestImage_Serves(t *testing.T) {
	r := soak(t, t.TempDir(), "v0.0.1")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: it wants root, for chroot")
	}
	program := filepath.Join(t.TempDir(), "writ")
	if err := r.build(t.Context(), target{"linux", "amd64"}, program); err != nil {
		t.Fatal(err)
	}
	serves(t, program)
}

func serves(t *testing.T, program string) {
	t.Helper()
	_, config, root := unpacked(t, program)
	if err := os.Chown(filepath.Join(root, "data"), imageUser, imageUser); err != nil {
		t.Fatal(err)
	}
	for dir := root; dir != os.TempDir(); dir = filepath.Dir(dir) { // the user gets there
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(command ...string) *exec.Cmd {
		cmd := exec.Command("chroot", append([]string{"--userspec=" + config.User, root}, command...)...)
		cmd.Env = config.Env
		return cmd
	}
	server := in(append(config.Entrypoint, config.Cmd...)...)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	healthy := func() bool { return in(config.Healthcheck.Test[1:]...).Run() == nil }
	for range 300 {
		if healthy() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the health check does not pass. The server says\n%s", &log)
}
