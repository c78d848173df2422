package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
)

// ErrBehind says that a backup ends before what is known to have been decided.
var ErrBehind = errors.New("the backup is older than what is known")

// beside are the names of the files that a backup can have beside the store.
var beside = []string{"keys.jwks", "signing-key.pem", "operator-secret", "scrub-key", tipName}

// ErrDamaged says that a backup is not as it was made.
var ErrDamaged = errors.New("the backup is damaged")

// Read returns the manifest of the backup in dir.
func Read(dir string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return m, fmt.Errorf("%s is no backup: %w", dir, err)
	}
	sum, err := os.ReadFile(filepath.Join(dir, sumName))
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if string(sum) != fmt.Sprintf("%x  %s\n", sha256.Sum256(text), manifestName) {
		return m, fmt.Errorf("%w: %s or %s has changed", ErrDamaged, manifestName, sumName)
	}
	if m, err = parse(text); err != nil {
		return m, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	return m, nil
}

// parse reads a manifest. Each name in it is of a file that a backup can have, and stands there once.
func parse(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		return m, fmt.Errorf("want a manifest of the format %s: %w", format, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("want a manifest of the format %s, got %.40q", format, m.Format)
	}
	seen := make(map[string]bool)
	for _, f := range m.Files {
		if seen[f.Name] {
			return m, fmt.Errorf("%w: %s names %q twice", ErrDamaged, manifestName, f.Name)
		}
		seen[f.Name] = true
		if name, ok := strings.CutPrefix(f.Name, storeName+"/"); !slices.Contains(beside, f.Name) &&
			(!ok || name == "" || name[0] == '.' || strings.ContainsAny(name, `/\`)) {
			return m, fmt.Errorf("%w: %s names %q, which no backup has", ErrDamaged, manifestName, f.Name)
		}
	}
	return m, nil
}

// all returns the manifests of the backups in dir by name. A backup that cannot be read is
// left out.
func all(dir string) map[string]Manifest {
	found := make(map[string]Manifest)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() || CheckName(e.Name()) != nil {
			continue
		}
		if m, err := Read(filepath.Join(dir, e.Name())); err == nil {
			found[e.Name()] = m
		}
	}
	return found
}

// Restored says where a backup is put, and which tips and backups are known.
type Restored struct {
	// Data is the data directory. It must have no store. Keys that it has stay.
	Data datadir.Dir
	// Tip is the recorded tip of the lost store, or nil. A store.tip in Data is looked at in any case.
	Tip *embedded.Tip
	// Accept is the head of a backup that may be restored although later ones are known. It may be nil.
	Accept *uint64
}

// Restore puts the backup in dir into an empty data directory, and compares each file with its digest. If it fails,
// the data directory has no store.
func Restore(ctx context.Context, dir string, r Restored) (m Manifest, err error) {
	if m, err = Read(dir); err != nil {
		return m, err
	}
	if _, err := os.Lstat(r.Data.Store()); err == nil {
		return m, fmt.Errorf("%s exists: want a data directory without a store", r.Data.Store())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if err := r.check(dir, m); err != nil {
		return m, err
	}
	if err := r.Data.Create(); err != nil {
		return m, err
	}
	partial := filepath.Join(string(r.Data), ".restore.partial")
	if err := os.RemoveAll(partial); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	if err := os.MkdirAll(filepath.Join(partial, storeName), 0o700); err != nil {
		return m, err
	}
	for _, want := range m.Files {
		name := filepath.FromSlash(want.Name)
		got, err := copyFile(ctx, filepath.Join(dir, name), filepath.Join(partial, name), want.Name)
		if err != nil {
			return m, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		if got != want {
			return m, fmt.Errorf("%w: %s is not as the manifest says", ErrDamaged, filepath.Join(dir, name))
		}
	}
	if err := errors.Join(datadir.Sync(filepath.Join(partial, storeName)), datadir.Sync(partial)); err != nil {
		return m, err
	}
	return m, r.place(partial)
}

// place moves the files to their names, the store last. A start that finds the tip and no store refuses.
func (r Restored) place(partial string) error {
	for _, name := range beside {
		from, to := filepath.Join(partial, name), filepath.Join(string(r.Data), name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if name == tipName {
			if err := os.Rename(from, to); err != nil {
				return err
			}
			continue
		}
		if err := os.Link(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := datadir.Sync(string(r.Data)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(partial, storeName), r.Data.Store()); err != nil {
		return err
	}
	return datadir.Sync(string(r.Data))
}

// check compares a backup with what is known: the other backups beside it, and recorded tips.
func (r Restored) check(dir string, m Manifest) error {
	if r.Accept != nil {
		if *r.Accept != m.Head {
			return fmt.Errorf("%w: it ends at head %d, and head %d was to be accepted", ErrBehind, m.Head, *r.Accept)
		}
		return nil
	}
	text, err := os.ReadFile(filepath.Join(string(r.Data), tipName))
	if err == nil {
		left, err := embedded.ParseTip(text)
		if err != nil {
			return fmt.Errorf("%s %w: remove it if it is of no use", filepath.Join(string(r.Data), tipName), err)
		}
		if err := m.reaches(left); err != nil {
			return fmt.Errorf("%w (%s)", err, filepath.Join(string(r.Data), tipName))
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.Tip != nil {
		if err := m.reaches(*r.Tip); err != nil {
			return err
		}
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for name, other := range all(filepath.Dir(full)) {
		if other.Chain == m.Chain && (other.Head > m.Head || other.Change > m.Change) {
			return fmt.Errorf("%w: it ends at head %d and change %d, and backup %s ends at head %d and change %d: "+
				"restore that one, or give --accept-rollback %d", ErrBehind, m.Head, m.Change, name, other.Head,
				other.Change, m.Head)
		}
	}
	return nil
}

// reaches returns an error if a store of the backup would end before a tip.
func (m Manifest) reaches(t embedded.Tip) error {
	if m.Head < t.Head || m.Frame < t.Frame || m.Change < t.Change {
		return fmt.Errorf("%w: it ends at head %d and change %d, and the store had come to head %d and change %d: "+
			"restore a later one, or give --accept-rollback %d", ErrBehind, m.Head, m.Change, t.Head, t.Change, m.Head)
	}
	if m.Head == t.Head && m.HeadHash != fmt.Sprintf("%x", t.Hash) {
		return fmt.Errorf("%w: its head %d is another one than the store had", ErrBehind, m.Head)
	}
	return nil
}
