package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ/api"
	"writ/ledger"
)

func TestDefaultServe_IgnoresTheEnvironment(t *testing.T) {
	t.Setenv("AUDIT_MODE", "full")
	t.Setenv("WRIT_ADDR", ":1")
	t.Setenv("RECEIPT_TTL", "1h")
	t.Setenv("EVALUATION_CORE_URL", "http://127.0.0.1:1/v1/data/x")
	c, err := defaultServe()
	if err != nil {
		t.Fatal(err)
	}
	if c.Audit != ledger.Minimal || c.Addr != ":3820" || c.ReceiptTTL != 300*time.Second || c.Core.URL != "" {
		t.Errorf("defaultServe() = %+v, want the defaults of the flags", c)
	}
	if want := api.DefaultLimits(); c.QueueDeadline != want.Queue || c.Abuse.Connections != want.AddressConnections {
		t.Errorf("defaultServe() = a queue deadline of %v and %d connections, want %v and %d, which package api has",
			c.QueueDeadline, c.Abuse.Connections, want.Queue, want.AddressConnections)
	}
}

func TestPlans_RulesAndTokensAreOptional(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plans.json")
	text := `{"free":{"name":"free"},"pro":{"name":"pro","rules":7,"tokens":8},"business":{"name":"business","rules":0,"tokens":0},"own":{"name":"own"}}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := serveCmd{Plans: name}
	plans, err := c.plans()
	if err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string][2]int{"free": {100, 100}, "pro": {7, 8}, "business": {0, 0}, "own": {10_000, 10_000}} {
		if got := [2]int{plans[plan].Rules, plans[plan].Tokens}; got != want {
			t.Errorf("rules and tokens of the plan %s = %d, want %d", plan, got, want)
		}
	}
}
