package writ_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSize_NoLargeFileIsTracked refuses what a build made: a binary of 85 MB was
// once committed unseen.
func TestSize_NoLargeFileIsTracked(t *testing.T) {
	const most = 2 << 20
	larger := map[string]bool{} // tracked files above most, by path
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("SKIPPED: this is no checkout: %v", err)
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(paths) < 500 {
		t.Errorf("git tracks %d files, want more: is this test looking at them?", len(paths))
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err == nil && info.Size() > most && !larger[path] {
			t.Errorf("%s has %d bytes: a tracked file has at most %d", path, info.Size(), most)
		}
	}
}
