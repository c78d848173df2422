package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPlans_RulesAreOptional(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plans.json")
	text := `{"free":{"name":"free"},"pro":{"name":"pro","rules":7},"business":{"name":"business","rules":0},"own":{"name":"own"}}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := serveCmd{Plans: name}
	plans, err := c.plans()
	if err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string]int{"free": 100, "pro": 7, "business": 0, "own": 10_000} {
		if got := plans[plan].Rules; got != want {
			t.Errorf("rules of the plan %s = %d, want %d", plan, got, want)
		}
	}
}
