// Package backup copies an embedded store while it serves, and puts a copy back.
//
// A backup is a directory NAME below the directory of all backups of one deployment:
//
//	NAME/manifest.json     the head at which the backup ends, and the SHA-256 of each other file
//	NAME/manifest.sha256   the SHA-256 of manifest.json, as sha256sum writes it
//	NAME/store/            the store
//	NAME/store.tip         how far it had come
//	NAME/keys.jwks         the public keys
//
// The secrets of a data directory (signing-key.pem, operator-secret, scrub-key) are in it if the server's settings
// ask for them. On the file system of the store a backup is made of hard links, and elsewhere of copies. Files that
// the backup before it has are linked from there. A backup is written under the name ".NAME.partial", and renamed
// once everything in it is durable.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
)

const (
	format       = "writ-backup/1"
	manifestName = "manifest.json"
	sumName      = "manifest.sha256"
	storeName    = "store"
	tipName      = "store.tip"
)

// File is a file of a backup. Its name is relative to the backup, with slashes.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Manifest says what a backup has.
type Manifest struct {
	Format   string    `json:"format"`
	Time     time.Time `json:"time"`
	Chain    string    `json:"chain"`
	Head     uint64    `json:"head"`
	HeadHash string    `json:"head_hash"`
	Frame    uint64    `json:"frame"`
	Change   uint64    `json:"change"`
	Files    []File    `json:"files"`
}

// Source is a store that can be copied while it is used.
type Source interface {
	Snapshot(ctx context.Context, f func(ctx context.Context, dir string, at embedded.Snapshot) error) error
}

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckName returns an error unless name can be the name of a backup. Such a name is no path.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("the name of a backup: want 1 to 100 letters, digits, dots, underscores and hyphens, the "+
			"first a letter or a digit, such as 2026-11-28; got %.110q", name)
	}
	return nil
}

// Config says what is backed up, and where.
type Config struct {
	Source Source
	// Dir is the directory of the backups. No other deployment may use it.
	Dir string
	// Files are further files of the deployment, by the names that they have in a data directory. A missing file is
	// left out.
	Files map[string]string
	Now   func() time.Time
}

// Make makes the backup with the given name. If it fails, there is no such backup. Calls must not overlap.
func Make(ctx context.Context, c Config, name string) (m Manifest, err error) {
	if err := CheckName(name); err != nil {
		return m, err
	}
	final, partial := filepath.Join(c.Dir, name), filepath.Join(c.Dir, "."+name+".partial")
	if _, err := os.Lstat(final); err == nil {
		return m, fmt.Errorf("there is a backup %s already: want another name", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return m, err
	}
	left, err := filepath.Glob(filepath.Join(c.Dir, ".*.partial"))
	if err != nil {
		return m, err
	}
	for _, dir := range left { // of backups that were not finished
		if err := os.RemoveAll(dir); err != nil {
			return m, err
		}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	if err := os.MkdirAll(filepath.Join(partial, storeName), 0o700); err != nil {
		return m, err
	}
	w := writer{to: partial}
	err = c.Source.Snapshot(ctx, func(ctx context.Context, dir string, at embedded.Snapshot) error {
		w.ctx = ctx
		m = Manifest{Format: format, Time: c.Now().UTC(), Chain: hex.EncodeToString(at.Chain[:]), Head: at.Head,
			HeadHash: hex.EncodeToString(at.Hash[:]), Frame: at.Frame, Change: at.Change}
		w.before(c.Dir, m)
		return w.store(dir, at.Text, c.Files)
	})
	if err != nil {
		return m, err
	}
	m.Files = w.files
	text, err := json.Marshal(m, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return m, err
	}
	sum := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(text), manifestName)
	if err := errors.Join(
		datadir.WriteFile(filepath.Join(partial, manifestName), text, os.Rename),
		datadir.WriteFile(filepath.Join(partial, sumName), sum, os.Rename),
		datadir.Sync(filepath.Join(partial, storeName)), datadir.Sync(partial),
	); err != nil {
		return m, err
	}
	if err := errors.Join(ctx.Err(), os.Rename(partial, final)); err != nil {
		return m, err
	}
	return m, datadir.Sync(c.Dir)
}

// writer writes the files of a backup.
type writer struct {
	ctx      context.Context
	to       string
	files    []File
	previous string          // the backup before, or ""
	had      map[string]File // its files by name
}

// before finds the last backup of the chain of m, whose files are linked rather than copied.
func (w *writer) before(dir string, m Manifest) {
	for name, other := range all(dir) {
		if other.Chain == m.Chain && (w.previous == "" || other.Time.After(m.Time)) {
			w.previous, m.Time = filepath.Join(dir, name), other.Time
			w.had = make(map[string]File)
			for _, f := range other.Files {
				w.had[f.Name] = f
			}
		}
	}
}

func (w *writer) store(dir string, tip []byte, more map[string]string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.add(filepath.Join(dir, e.Name()), storeName+"/"+e.Name()); err != nil {
			return err
		}
	}
	for name, path := range more {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = w.text(name, text)
		}
		if err != nil {
			return err
		}
	}
	return w.text(tipName, tip)
}

func (w *writer) text(name string, text []byte) error {
	w.files = append(w.files, File{Name: name, Size: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256(text))})
	return datadir.WriteFile(filepath.Join(w.to, name), text, os.Rename)
}

// add adds a file of the snapshot. It is durable already.
func (w *writer) add(from, name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", from)
	}
	to, had := filepath.Join(w.to, filepath.FromSlash(name)), w.had[name]
	earlier := filepath.Join(w.previous, filepath.FromSlash(name))
	if had.Name != "" && had.Size == info.Size() {
		if then, err := os.Stat(earlier); err == nil && os.SameFile(then, info) {
			w.files = append(w.files, had)
			return os.Link(earlier, to)
		}
	}
	if err := os.Link(from, to); err == nil {
		f, err := digest(to, name)
		w.files = append(w.files, f)
		return err
	}
	if had.Name != "" && had.Size == info.Size() {
		f, err := digest(from, name)
		if err != nil {
			return err
		}
		if f == had && os.Link(earlier, to) == nil {
			w.files = append(w.files, f)
			return nil
		}
	}
	f, err := copyFile(w.ctx, from, to, name)
	w.files = append(w.files, f)
	return err
}

func digest(path, name string) (File, error) {
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	n, err := io.Copy(h, in)
	return File{Name: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// copyFile copies a file durably, and returns its length and digest.
func copyFile(ctx context.Context, from, to, name string) (File, error) {
	in, err := os.Open(from)
	if err != nil {
		return File{}, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return File{}, err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), reader{ctx, in})
	if err == nil {
		err = out.Sync()
	}
	return File{Name: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, errors.Join(err, out.Close())
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
