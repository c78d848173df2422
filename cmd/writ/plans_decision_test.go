package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

func TestDecision_Plans_AllOfItIsConfiguration(t *testing.T) {
	c := serveCmd{Plans: filepath.Join(t.TempDir(), "plans.json")}
	text := `{"free":{"name":"free","evaluations":1,"agents":2,"policies":3,"rules":4,"tokens":6,"retention_days":5,"csv_export":true}}`
	must(t, os.WriteFile(c.Plans, []byte(text), 0o600))
	got, err := plansIn(c.Plans)
	must(t, err)
	want := engine.Plan{Name: "free", Evaluations: 1, Agents: 2, Policies: 3, Rules: 4, Tokens: 6, RetentionDays: 5, CSVExport: true}
	if diff := cmp.Diff(want, got["free"]); diff != "" || len(got) != 1 {
		t.Errorf("%d plans, free (-want +got):\n%s", len(got), diff)
	}
}
