package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// closedName is the file that says how Close left the directory. Pebble takes a
// manifest or a log that ends early for what a crash left, and opens without what
// was in the rest: a kill switch could be among that. After Close there is no
// such doubt. A directory that was not closed has no such file: it is removed
// before Pebble opens. What a crash left is held to the tip alone: see inspect.
const closedName = "closed"

// manifestMarker begins the name of the file that names the manifest. Every
// opening by Pebble replaces it by one of another name.
const manifestMarker = "marker.manifest."

// closedFile is how a file was left. Sum is the SHA-256 of what Pebble reads
// without a size or a checksum to hold it to.
type closedFile struct {
	Size int64  `json:"size"`
	Sum  string `json:"sha256,omitempty"`
}

var errDamaged = errors.New("the directory is not as it was when it was closed: restore it from a backup, " +
	"or remove its file \"" + closedName + "\" to open what is left of it")

// noteClosed says how the directory was left. Nothing else may use it meanwhile.
func noteClosed(dir string, fs vfs.FS) error {
	files, err := closedFiles(dir, fs)
	if err != nil {
		return err
	}
	text, err := json.Marshal(files, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return err
	}
	return replaceFile(fs, fs.PathJoin(dir, closedName), text)
}

// replaceFile writes a file whole or not at all, and durably.
func replaceFile(fs vfs.FS, name string, text []byte) error {
	temporary := name + ".new"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fs.Remove(temporary))
	}
	if err := fs.Rename(temporary, name); err != nil {
		return err
	}
	return syncDir(fs.PathDir(name), fs)
}

// checkClosed returns errDamaged when the directory was closed and is not as it
// was.
func checkClosed(dir string, fs vfs.FS) error {
	name := fs.PathJoin(dir, closedName)
	if _, err := fs.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	text, err := readAll(fs, name)
	if err != nil {
		return err
	}
	var then map[string]closedFile
	if err := json.Unmarshal(text, &then); err != nil {
		return fmt.Errorf("%w: reading %s: %w", errDamaged, closedName, err)
	}
	now, err := closedFiles(dir, fs)
	if err != nil {
		return err
	}
	if differ := missing(then, now); len(differ) > 0 {
		return fmt.Errorf("%w: missing or changed: %q", errDamaged, differ)
	}
	return nil
}

// forgetClosed takes the file closedName away, before anything changes.
func forgetClosed(dir string, fs vfs.FS) error {
	err := fs.Remove(fs.PathJoin(dir, closedName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir, fs))
}

// missing returns the files that are not as they were then. A new marker of the
// manifest says that a writ has opened the directory since that knows no
// closedName, and has left files of its own.
func missing(then, now map[string]closedFile) (differ []string) {
	for name := range now {
		if _, old := then[name]; !old && strings.HasPrefix(name, manifestMarker) {
			return nil
		}
	}
	for name, file := range then {
		if now[name] != file {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

// closedFiles returns how the files of Pebble are.
func closedFiles(dir string, fs vfs.FS) (map[string]closedFile, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string]closedFile, len(names))
	for _, name := range names {
		if name == closedName || name == closedName+".new" {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		file := closedFile{Size: info.Size()}
		if ext := filepath.Ext(name); ext != ".sst" && ext != blobExt { // whose blocks have checksums
			if file.Sum, err = sumOf(fs, fs.PathJoin(dir, name)); err != nil {
				return nil, err
			}
		}
		files[name] = file
	}
	return files, nil
}

func sumOf(fs vfs.FS, name string) (sum string, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

func readAll(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

func syncDir(dir string, fs vfs.FS) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
