package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// A server and `writ token operator` may both start in an empty directory: a
// token of the one must be good for the other.
func TestLoadSecretRacesToOne(t *testing.T) {
	for range 20 {
		d := dataDir(filepath.Join(t.TempDir(), "data"))
		var (
			wg      sync.WaitGroup
			secrets [8][]byte
			errs    [8]error
		)
		for i := range secrets {
			wg.Go(func() { secrets[i], errs[i] = d.loadSecret("") })
		}
		wg.Wait()
		for i := range secrets {
			if errs[i] != nil {
				t.Fatalf("loadSecret: %v", errs[i])
			}
			if !bytes.Equal(secrets[i], secrets[0]) {
				t.Fatalf("loadSecret gave %x to one and %x to another", secrets[0], secrets[i])
			}
		}
		left, err := filepath.Glob(filepath.Join(string(d), ".*"))
		if err != nil || len(left) > 0 {
			t.Fatalf("left behind: %v, %v", left, err)
		}
	}
}

// Replicas that share a directory may all start in an empty one: receipts of each
// must verify with the keys of any.
func TestLoadSignerRacesToOne(t *testing.T) {
	for range 20 {
		d := dataDir(filepath.Join(t.TempDir(), "data"))
		var (
			wg   sync.WaitGroup
			ids  [8]string
			made atomic.Int32
		)
		for i := range ids {
			wg.Go(func() {
				s, trusted, first, err := d.loadSigner("")
				if err != nil {
					t.Errorf("loadSigner: %v", err)
					return
				}
				if !slices.Contains(trusted.IDs(), s.KeyID()) {
					t.Errorf("loadSigner trusts %v, which lacks its own key %s", trusted.IDs(), s.KeyID())
				}
				if first {
					made.Add(1)
				}
				ids[i] = s.KeyID()
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("loadSigner gave the key %s to one and %s to another", ids[0], id)
			}
		}
		if n := made.Load(); n != 1 {
			t.Fatalf("%d callers made the key, want one", n)
		}
	}
}

func TestDataDir_ExposedNamesTheSecretsThatOthersCanRead(t *testing.T) {
	d := dataDir(filepath.Join(t.TempDir(), "data"))
	if _, err := d.loadSecret(""); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := d.loadSigner(""); err != nil {
		t.Fatal(err)
	}
	if got := (keyFiles{}).in(d).exposed(); len(got) > 0 {
		t.Errorf("exposed() of a fresh directory = %v, want none", got)
	}
	must(t, os.Chmod(d.secret(), 0o640))
	if got := (keyFiles{}).in(d).exposed(); len(got) != 1 || got[0] != d.secret() {
		t.Errorf("exposed() = %v, want %s", got, d.secret())
	}
}
