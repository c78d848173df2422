package system

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRelease_ChecksSignsPacks runs the tests of internal/tools/release, a module of its own, that take seconds.
func TestRelease_ChecksSignsPacks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds what makes packages")
	}
	dir := filepath.Join("..", "tools", "release")
	if out, err := exec.Command("go", "-C", dir, "list", "-deps", ".").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of internal/tools/release cannot be had: %v: %.500s", err, out)
	}
	if out, err := exec.Command("go", "-C", dir, "test", "-short", "-vet=off", "./...").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
