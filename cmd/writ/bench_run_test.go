package main

import (
	"errors"
	"strings"
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

// TestCommandLine_HidesSecrets checks that the raw data have no credential and no header.
func TestCommandLine_HidesSecrets(t *testing.T) {
	got := commandLine([]string{"bench", "--api-key", "s1", "--header", "X: s2", "--header=X: s3", "--api-key=s4", "--rules", "5"})
	if want := "writ bench --api-key … --header … --header=… --api-key=… --rules 5"; got != want {
		t.Errorf("commandLine = %s, want %s", got, want)
	}
}

// TestBenchRun_Headers checks which headers are refused.
func TestBenchRun_Headers(t *testing.T) {
	c := &benchRunCmd{Header: []string{"x-team: payments", "X-Team:ops"}}
	if got, err := c.headers(); err != nil || len(got["X-Team"]) != 2 || got["X-Team"][0] != "payments" {
		t.Errorf("headers = %v, %v", got, err)
	}
	for _, text := range []string{"", "X", ": x", "a b: c", "X: a\r\nY: b", "authorization: Bearer x", "Content-Length: 1"} {
		c.Header = []string{text}
		if got, err := c.headers(); err == nil {
			t.Errorf("--header %q = %v, want an error", text, got)
		}
	}
}

// TestProgress_Line checks that the live line takes the place of the last one, and stands on terminals alone.
func TestProgress_Line(t *testing.T) {
	var out strings.Builder
	p := &progress{w: &out, shown: true}
	p.line("one")
	p.line("")
	if want := eraseLine + "one" + eraseLine; out.String() != want {
		t.Errorf("the terminal got %q, want %q", out.String(), want)
	}
	out.Reset()
	(&progress{w: &out}).line("one")
	if out.String() != "" {
		t.Errorf("a file got %q", out.String())
	}
}
