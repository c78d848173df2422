package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/storagetest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, data datadir.Dir) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(data.Store(), embedded.Options{Log: slog.New(slog.DiscardHandler), MinFreeBytes: 1})
	must(t, err)
	return s
}

// filled makes a data directory with n records.
func filled(t testing.TB, n int) (data datadir.Dir, records []*storage.Record) {
	t.Helper()
	data = datadir.Dir(filepath.Join(t.TempDir(), "data"))
	must(t, data.Create())
	s, w := open(t, data), storagetest.NewWriter()
	for range n {
		r := w.Record("acme")
		_, err := w.Commit(t.Context(), s, r)
		must(t, err)
		records = append(records, r)
	}
	must(t, s.Close())
	return data, records
}

// wantRestored checks that a backup can be restored, and that it has the records.
func wantRestored(t *testing.T, dir string, records []*storage.Record) {
	t.Helper()
	data := datadir.Dir(filepath.Join(t.TempDir(), "restored"))
	_, err := Restore(t.Context(), dir, Restored{Data: data})
	must(t, err)
	wantRecords(t, data, records)
}

func wantRecords(t *testing.T, data datadir.Dir, records []*storage.Record) {
	t.Helper()
	s := open(t, data)
	for _, r := range records {
		if _, err := s.Decided(t.Context(), "acme", r.IntentID, r.ApprovalID); err != nil {
			t.Errorf("Decided(%s) = %v", r.IntentID, err)
		}
	}
	must(t, s.Close())
}

// wantNone checks that there is no backup with a name, and no part of one.
func wantNone(t *testing.T, dir, name string) {
	t.Helper()
	for _, left := range []string{name, "." + name + ".partial"} {
		if _, err := os.Lstat(filepath.Join(dir, left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left after a failure: %v", left, err)
		}
	}
}

func config(s Source, dir string) Config { return Config{Source: s, Dir: dir, Now: time.Now} }

// TestMake_AfterACrashBeforeTheRename makes a backup where one was whole, and not renamed yet.
func TestMake_AfterACrashBeforeTheRename(t *testing.T) {
	data, records := filled(t, 20)
	dir := filepath.Join(t.TempDir(), "backups")
	s := open(t, data)
	_, err := Make(t.Context(), config(s, dir), "one")
	must(t, err)
	must(t, os.Rename(filepath.Join(dir, "one"), filepath.Join(dir, ".one.partial")))
	if found := all(dir); len(found) != 0 {
		t.Errorf("a backup that was not renamed is found: %v", found)
	}
	_, err = Make(t.Context(), config(s, dir), "one")
	must(t, err)
	must(t, s.Close())
	wantRestored(t, filepath.Join(dir, "one"), records)
}

// TestRestore_AfterACrashWhilePlacing restores again where a restore was killed between two renames.
func TestRestore_AfterACrashWhilePlacing(t *testing.T) {
	data, records := filled(t, 20)
	dir := filepath.Join(t.TempDir(), "backups")
	s := open(t, data)
	_, err := Make(t.Context(), config(s, dir), "one")
	must(t, err)
	must(t, s.Close())
	to := datadir.Dir(filepath.Join(t.TempDir(), "restored"))
	_, err = Restore(t.Context(), filepath.Join(dir, "one"), Restored{Data: to})
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(string(to), ".restore.partial"), 0o700))
	must(t, os.Rename(to.Store(), filepath.Join(string(to), ".restore.partial", "store")))
	if s, err := embedded.Open(to.Store(), embedded.Options{Log: slog.New(slog.DiscardHandler), MinFreeBytes: 1}); err == nil {
		must(t, s.Close())
		t.Fatal("a start makes a new store where a restore was not finished")
	}
	must(t, os.RemoveAll(to.Store()))
	_, err = Restore(t.Context(), filepath.Join(dir, "one"), Restored{Data: to})
	must(t, err)
	wantRecords(t, to, records)
}

// FuzzParse gives texts as manifests. An accepted manifest names files of a backup
// alone.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":"writ-backup/1","files":[{"name":"store/x","size":1,"sha256":"00"},{"name":"keys.jwks"}]}`))
	for _, name := range []string{"../x", "store/../x", "/x", "store/", "store/.x", `store/a\b`, "store/a/b", "manifest.json", "store.tip/x"} {
		f.Add(fmt.Appendf(nil, `{"format":"writ-backup/1","files":[{"name":%q}]}`, name))
	}
	f.Add([]byte(`{"format":"writ-backup/1","files":[{"name":"store/x"},{"name":"store/x"}]}`))
	f.Add([]byte(`{"format":"writ-backup/2"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "%!") {
				t.Errorf("parse = %v", err)
			}
			return
		}
		seen := make(map[string]bool)
		for _, file := range m.Files {
			clean := filepath.ToSlash(filepath.Clean(filepath.FromSlash(file.Name)))
			if clean != file.Name || !filepath.IsLocal(file.Name) || seen[file.Name] || strings.Count(file.Name, "/") > 1 ||
				file.Name == manifestName || file.Name == sumName || strings.HasPrefix(filepath.Base(file.Name), ".") {
				t.Errorf("parse accepts the file %q", file.Name)
			}
			seen[file.Name] = true
		}
	})
}

// TestRead_Manifests checks the messages about manifests that are no use.
func TestRead_Manifests(t *testing.T) {
	for text, want := range map[string]string{
		`{"format":"writ-backup/2","files":[]}`:                                         `got "writ-backup/2"`,
		`{"format":"writ-backup/1","files":[{"name":"../evil"}]}`:                       `names "../evil", which no backup has`,
		`{"format":"writ-backup/1","files":[{"name":"store/a"},{"name":"store/a"}]}`:    `names "store/a" twice`,
		`{"format":"writ-backup/1","fils":[]}`:                                          `unknown object member name "fils"`,
		`{"format":"writ-backup/1","files":[{"name":"store/a","name":"operator-key"}]}`: "duplicate object member name",
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, sumName), fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte(text)), manifestName), 0o600))
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read of %s = %v, want %q", text, err, want)
		}
	}
}

// stepping is a context that counts how often it is asked whether it has ended. A backup and a restore ask before each
// file, and while they copy one.
type stepping struct {
	context.Context
	step func()
}

func (c stepping) Err() error {
	c.step()
	return c.Context.Err()
}

// steppingSource is a store whose snapshots are used in a stepping context.
type steppingSource struct {
	Source
	step func()
}

func (s steppingSource) Snapshot(ctx context.Context, f func(context.Context, string, embedded.Snapshot) error) error {
	return s.Source.Snapshot(ctx, func(ctx context.Context, dir string, at embedded.Snapshot) error {
		return f(stepping{ctx, s.step}, dir, at)
	})
}
