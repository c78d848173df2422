package embedded

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/storage/storagetest"
)

// TestGuardBlob_KnowsTheLastWrite: a Pebble whose files of values end otherwise
// needs another guard.
func TestGuardBlob_KnowsTheLastWrite(t *testing.T) {
	disk := vfs.NewMem()
	s := openTest(t, disk, nil)
	w := storagetest.NewWriter()
	if _, err := w.Commit(t.Context(), s, w.Record("a")); err != nil {
		t.Fatalf("Commit = %v", err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatalf("Flush = %v", err)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		if filepath.Ext(name) != blobExt {
			continue
		}
		found++
		f, err := disk.Open(disk.PathJoin("data", name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err != nil || len(content) < len(blobMagic) || string(content[len(content)-len(blobMagic):]) != blobMagic {
			t.Errorf("%s has %d bytes, %v, and does not end with blobMagic", name, len(content), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if found == 0 {
		t.Errorf("no file of values among %q", names)
	}
}
