package embedded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// shutdownManifest is the name of the file in which Close lists the directory's files. Pebble
// treats a truncated manifest or log as a crash and silently drops its tail, which may hold a kill
// switch. After a clean Close any difference is damage. The file is removed before Pebble opens the
// directory. Therefore a directory that was not closed has no such file. After a crash Open
// compares only the tip: see inspect.
const shutdownManifest = "closed"

// fileState describes a file at shutdown. Sum is the SHA-256 of the file. It is empty if the file
// has checksums in its own format.
type fileState struct {
	Size int64  `json:"size"`
	Sum  string `json:"sha256,omitempty"`
}

var errDamaged = errors.New("the directory is not as it was when it was closed: restore it from a backup, " +
	"or remove its file \"" + shutdownManifest + "\" to open what is left of it")

// writeShutdownManifest writes the list of the files of dir. Nobody else may use dir meanwhile.
func writeShutdownManifest(dir string, fs vfs.FS) error {
	files, err := fileStates(dir, fs)
	if err != nil {
		return err
	}
	text, err := json.Marshal(files, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return err
	}
	return replaceFile(fs, fs.PathJoin(dir, shutdownManifest), text)
}

// replaceFile writes a file durably. After a crash the file has either its old or its new content.
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

// checkShutdownManifest returns errDamaged if dir was closed and has changed since.
func checkShutdownManifest(dir string, fs vfs.FS) error {
	name := fs.PathJoin(dir, shutdownManifest)
	if _, err := fs.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	text, err := readAll(fs, name)
	if err != nil {
		return err
	}
	var then map[string]fileState
	if err := json.Unmarshal(text, &then); err != nil {
		return fmt.Errorf("%w: reading %s: %w", errDamaged, shutdownManifest, err)
	}
	now, err := fileStates(dir, fs)
	if err != nil {
		return err
	}
	if differ := missing(then, now); len(differ) > 0 {
		return fmt.Errorf("%w: missing or changed: %q", errDamaged, differ)
	}
	return nil
}

// removeShutdownManifest removes the manifest. It must be called before any other file changes.
func removeShutdownManifest(dir string, fs vfs.FS) error {
	err := fs.Remove(fs.PathJoin(dir, shutdownManifest))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir, fs))
}

// missing returns the files of then that are missing in now or differ there.
func missing(then, now map[string]fileState) (differ []string) {
	for name, file := range then {
		if now[name] != file {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

// fileStates returns the states of all files in dir, by name.
func fileStates(dir string, fs vfs.FS) (map[string]fileState, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string]fileState, len(names))
	for _, name := range names {
		if name == shutdownManifest || name == shutdownManifest+".new" || index.IsTable(name) { // a table is made again
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		file := fileState{Size: info.Size()}
		if filepath.Ext(name) != ".sst" && !segment.IsFile(name) { // tables and segments have checksums
			content, err := readAll(fs, fs.PathJoin(dir, name))
			if err != nil {
				return nil, err
			}
			file.Sum = fmt.Sprintf("%x", sha256.Sum256(content))
		}
		files[name] = file
	}
	return files, nil
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
