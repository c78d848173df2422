package main

import (
	"errors"
	"testing"
	"time"

	"writ.example/writ/bench"
)

// TestBenchRun_Judge checks the exit code of each outcome of --fail-if.
func TestBenchRun_Judge(t *testing.T) {
	row := &bench.Row{Subject: "writ", Load: "closed"}
	row.Scheduled.Record(20 * time.Millisecond)
	for _, c := range []struct {
		failIf    string
		disturbed bool
		code      int
	}{
		{"", false, exitOK},
		{"", true, exitOK},
		{"p99>30ms", false, exitOK},
		{"p99>10ms", false, exitExceeded},
		{"p99>10ms", true, exitDisturbed},
		{"p99>30ms", true, exitDisturbed},
	} {
		run := new(benchRunCmd)
		if c.failIf != "" {
			run.FailIf = make([]bench.Threshold, 1)
			if err := run.FailIf[0].UnmarshalText([]byte(c.failIf)); err != nil {
				t.Fatal(err)
			}
		}
		code, coded := exitOK, new(codeError)
		if err := run.judge(&bench.Summary{Rows: []*bench.Row{row}, OnlyDropped: c.disturbed}); errors.As(err, &coded) {
			code = coded.code
		}
		if code != c.code {
			t.Errorf("%+v: exit code %d", c, code)
		}
	}
}
