package main

import (
	"testing"
	"time"

	"writ.example/writ/api"
	"writ.example/writ/decision"
	"writ.example/writ/storage/ledger"
)

func TestDefaultServe_IgnoresTheEnvironment(t *testing.T) {
	t.Setenv("AUDIT_MODE", "full")
	t.Setenv("WRIT_ADDR", ":1")
	t.Setenv("RECEIPT_TTL", "1h")
	t.Setenv("EVALUATION_CORE_URL", "http://127.0.0.1:1/v1/data/x")
	c, err := defaultServe()
	must(t, err)
	if c.Audit != ledger.Minimal || c.Addr != ":3820" || c.ReceiptTTL != 300*time.Second || c.Core.URL != "" {
		t.Errorf("defaultServe() = %+v, want the defaults of the flags", c)
	}
	if want := api.DefaultLimits(); c.QueueDeadline != decision.DefaultQueue || c.CallerLimits.Connections != want.AddressConnections {
		t.Errorf("defaultServe() = a queue deadline of %v and %d connections, want %v and %d, which package api has",
			c.QueueDeadline, c.CallerLimits.Connections, decision.DefaultQueue, want.AddressConnections)
	}
}
