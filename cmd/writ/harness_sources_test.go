package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestHarness_Sources holds that a hook with --sources knows the user's words and what tools returned, from events of
// the harness, and erases them when the session ends.
func TestHarness_Sources(t *testing.T) {
	for _, harness := range []string{"claude", "codex"} {
		t.Run(harness, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, harness, "--sources")
			s.post("/v1/rules", members{
				"name": "sources", "condition": `{"metadata.fact.source.command":{"$in":["text","user"]}}`, "action": `{"decision":"deny"}`,
			})
			// The session's user says go.
			heard := s.session(touch("a"), wanted{shell: "echo touch b"}, touch("b"), touch("c"), wanted{shell: "go"})
			for name, want := range map[string]bool{"a": true, "b": false, "c": true} {
				if s.made(name) != want {
					t.Errorf("%s: made = %t, want %t; the model heard %q", name, !want, want, heard)
				}
			}
			if !strings.Contains(heard[4], "writ denied this (decision ") {
				t.Errorf("of what the user said the model heard %q, want a deny", heard[4])
			}
			left, err := filepath.Glob(filepath.Join(s.home, ".local/state/writ/hook", "sources-*"))
			if must(t, err); len(left) > 0 {
				t.Errorf("%v is left of a session that has ended", left)
			}
		})
	}
}
