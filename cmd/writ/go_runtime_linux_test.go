package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestUnmapProgram checks that the pages of the program's file leave the process.
func TestUnmapProgram(t *testing.T) {
	mapped := func() (kB int) {
		t.Helper()
		text, err := os.ReadFile("/proc/self/status")
		must(t, err)
		_, after, _ := strings.Cut(string(text), "RssFile:")
		if _, err := fmt.Sscan(after, &kB); err != nil {
			t.Fatal(err)
		}
		return kB
	}
	before := mapped()
	unmapProgram()
	if after := mapped(); after > before/2 {
		t.Errorf("%d of %d kB of the program's file are still in memory", after, before)
	}
}
