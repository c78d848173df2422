package suite

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"writ.example/writ/authoring/report"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// TestRun_RegoAgrees decides generated cases with the engine and with the prepared Rego, and checks
// that the results agree.
func TestRun_RegoAgrees(t *testing.T) {
	report := runText(t, generated(2000), Options{Rego: true})
	decisions := map[string]int{}
	for _, r := range report.Results {
		decisions[r.Got]++
		for _, p := range r.Problems {
			if strings.Contains(p, "Rego") {
				t.Errorf("%s: %s", r.ID(), p)
			}
		}
	}
	if len(report.Results) != 2000 || len(decisions) != 3 {
		t.Errorf("%d cases are decided %v, want 2000 of every decision", len(report.Results), decisions)
	}
}

// TestRun_ADifferenceOfRegoFails replaces the prepared query by another policy's query, and checks
// that the case fails.
func TestRun_ADifferenceOfRegoFails(t *testing.T) {
	l := loaderOf(map[string]string{
		"s.yaml": head + "tests: [{name: a, intent: read, want: allow, codes: [policy.allowed]}]",
		"t.yaml": strings.Replace(head, "p.yaml", "q.yaml", 1) + "tests: [{name: a, intent: read, want: deny}]",
		"q.yaml": strings.Replace(policyText, "db.read, ", "", 1),
	})
	suites := must.Get(l.Load("s.yaml"))(t)
	others := must.Get(l.Load("t.yaml"))(t)
	if suites[0].subject.preparation = others[0].subject.prepared(); suites[0].subject.preparation.query == nil {
		t.Fatal(suites[0].subject.preparation.problems.Error())
	}
	report := must.Get(Run(t.Context(), suites, Options{Rego: true}))(t)
	const want = "the prepared Rego decides deny [action.not_allowed]"
	if failed := report.Failed(); len(failed) != 1 || fmt.Sprint(failed[0].Problems) != "["+want+"]" {
		t.Errorf("the report is %+v, want %s", report.Results, want)
	}
}

// runText runs a suite with the policy and the rules of this package's tests.
func runText(tb testing.TB, text string, o Options) *Report {
	tb.Helper()
	return run(tb, loaderOf(map[string]string{"s.yaml": text}), "s.yaml", o)
}

// run reads a suite and decides its cases.
func run(tb testing.TB, l *Loader, name string, o Options) *Report {
	tb.Helper()
	return must.Get(Run(tb.Context(), must.Get(l.Load(name))(tb), o))(tb)
}

// generated returns a suite of n cases.
func generated(n int) string {
	g := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[g.IntN(len(from))] }
	var b strings.Builder
	b.WriteString(strings.Replace(head, "policy: p.yaml", "policy: p.yaml\nrules: r.yaml", 1))
	b.WriteString("tests:\n  - name: generated\n    intent: read\n    want: allow\n    table:\n" +
		"      columns: [action_type, resource, agent, cost, metadata.env, metadata.window, usage_exceeded]\n      rows:\n")
	for range n {
		fmt.Fprintf(&b, "        - [%s, %s, %s, %s, %s, %s, %s]\n",
			pick("db.read", "db.write", "db.write", "db.drop"), pick("db://stage/a", "db://stage/b", "db://prod/x", "db://prod/y/../../z"),
			pick("active", "unregistered", "unregistered", "disabled"), pick("null", "null", "{amount_minor: 5, currency: EUR}", "{amount_minor: 500, currency: EUR}"),
			pick("null", "prod", "stage"), pick("null", "freeze", "none"), pick("false", "false", "true"))
	}
	return b.String()
}

// TestReport_JUnitIsXML writes a report with texts that XML must escape, and reads it back.
func TestReport_JUnitIsXML(t *testing.T) {
	ran := runText(t, head+`tests: [{name: "<&\" ]]> é\u0001", intent: read, set: {metadata.env: "<"}, want: deny}, {name: b, intent: read, want: allow}]`, Options{})
	var b bytes.Buffer
	if err := ran.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got report.Suites
	dec := xml.NewDecoder(&b)
	dec.Strict = true
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if got.Tests != 2 || got.Failures != 1 || len(got.Suites) != 1 || len(got.Suites[0].Cases) != 2 || got.Suites[0].Cases[0].Failure == nil ||
		!strings.HasPrefix(got.Suites[0].Cases[0].Name, `<&" ]]> é`) {
		t.Errorf("read back: %+v", got)
	}
}

// FuzzLoad checks that every suite is either read or refused, and that a suite that was read can
// run.
func FuzzLoad(f *testing.F) {
	text := must.Get(os.ReadFile("testdata/payments_test.yaml"))(f)
	f.Add(string(text))
	f.Add(head + "tests: [{name: a, intent: read, set: {cost: null, metadata: {a: b}, metadata.a: c}, each: {resource: [a, b]}, want: allow}]")
	f.Add(`{"policy": "p.yaml", "rules": ["r.yaml"], "intents": {"a": {"extends": "b"}}, "tests": [{"table": {"columns": ["want"], "rows": [["deny"], [null]]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		l := loaderOf(map[string]string{"s.yaml": text, "s.json": text})
		for _, name := range []string{"s.yaml", "s.json"} {
			suites, err := l.Load(name)
			if err != nil {
				continue
			}
			report := must.Get(Run(t.Context(), suites, Options{Coverage: true}))(t)
			if _, err := l.Update(t.Context(), suites, report); err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Case != nil && r.Holds() && r.Case.want.decision == engine.Decision(0) {
					t.Errorf("%s holds without a want", r.ID())
				}
			}
		}
	})
}

// BenchmarkRun reads and decides a suite of 1,000 cases.
func BenchmarkRun(b *testing.B) {
	text := generated(1000)
	for name, o := range map[string]Options{"cel": {}, "rego": {Rego: true}, "coverage": {Coverage: true}} {
		b.Run("cases=1000/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := len(runText(b, text, o).Results); got != 1000 {
					b.Fatalf("%d cases were run, want 1000", got)
				}
			}
		})
	}
}
