package telemetry_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
)

func TestRegister_AllOrNone(t *testing.T) {
	reg := prometheus.NewRegistry()
	first, second := telemetry.Counter("first", "First."), telemetry.Gauge("second", "Second.")
	if _, err := telemetry.Register(reg, second); err != nil {
		t.Fatal(err)
	}
	undo, err := telemetry.Register(reg, first, second)
	if err == nil {
		t.Fatal("Register = nil for a metric that is registered, want an error")
	}
	undo()
	wantNames(t, reg, "second")

	undo, err = telemetry.Register(reg, first)
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, reg, "first", "second")
	undo()
	wantNames(t, reg, "second")
}

func TestRegister_Nowhere(t *testing.T) {
	undo, err := telemetry.Register(nil, telemetry.Counter("first", "First."))
	if err != nil {
		t.Fatal(err)
	}
	undo()
}

func wantNames(t *testing.T, reg prometheus.Gatherer, want ...string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != len(want) {
		t.Fatalf("%d metrics are registered, want %v", len(families), want)
	}
	for i, f := range families {
		if f.GetName() != want[i] {
			t.Errorf("metric %d is %q, want %q", i, f.GetName(), want[i])
		}
	}
}
