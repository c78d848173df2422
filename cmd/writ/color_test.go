package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestPaint_TerminalsOnly checks that a pseudo-terminal gets colour unless NO_COLOR is set. A
// file and a pipe never get colour.
func TestPaint_TerminalsOnly(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIPPED: there is no pseudo-terminal here: %v", err)
	}
	defer terminal.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer file.Close()
	t.Setenv("TERM", "xterm")
	for _, tt := range []struct {
		name    string
		out     io.Writer
		noColor string
		want    colors
	}{
		{"terminal", terminal, "", true},
		{"terminal with NO_COLOR", terminal, "1", false},
		{"file", file, "", false},
		{"no file", io.Discard, "", false},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		if got := colorsFor(tt.out); got != tt.want {
			t.Errorf("%s: colorsFor = %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := colors(true).decision("deny", "deny"); got != "\x1b[31mdeny\x1b[0m" {
		t.Errorf("a coloured deny = %q", got)
	}
	if got := colors(false).decision("deny", "deny"); got != "deny" {
		t.Errorf("a plain deny = %q", got)
	}
}
