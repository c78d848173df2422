package rego

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"

	"writ.example/writ/internal/must"
)

// TestDecision_Tests_FunctionsAreBounded checks this demand: test files may call every function without
// side effects, bounded in time.
func TestDecision_Tests_FunctionsAreBounded(t *testing.T) {
	for line, want := range map[string]TestOutcome{
		`sprintf("%5d|%-3s|%.2f", [7, "a", 1.5]) == "    7|a  |1.50"`: TestPassed,
		`sprintf("%*d", [3, 7]) == "  7"`:                             TestPassed,
		`sprintf("%*d", [999999, 7]) == ""`:                           TestErrored,
		`sprintf("` + strings.Repeat("%9999d", 100) + `", []) == ""`:  TestErrored,
		`units.parse("2Ki") == 2048`:                                  TestPassed,
		`units.parse("1e9") == 1000000000`:                            TestPassed,
		`units.parse("1e999999999") > 1`:                              TestErrored,
		`units.parse("1e99999999999999999999") > 1`:                   TestErrored,
		`units.parse("1e-999999999") > 1`:                             TestErrored,
		`units.parse("1e100000") > 1`:                                 TestPassed,
		`units.parse_bytes("1e999999999") > 1`:                        TestErrored,
		`bits.lsh(1, 4) == 16`:                                        TestPassed,
		`bits.lsh(1, 100000000000) > 1`:                               TestErrored,
		`sprintf("%d", [7]) == "mocked" with sprintf as "mocked"`:     TestPassed,
	} {
		files := []File{{Name: "a_test.rego", Source: "package a_test\n\ntest_a if " + line + "\n"}}
		got, err := RunModuleTests(t.Context(), nil, nil, files)
		if err != nil || len(got) != 1 || got[0].Outcome != want {
			t.Errorf("%s = %+v, %v, want %s", line, got, err, want)
		}
	}
}

// TestRunTests_EndsWhenACallDoesNot checks that a call that never returns ends the run with its place.
func TestRunTests_EndsWhenACallDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := must.Get(ast.ParseModuleWithOpts("a_test.rego", "package a\n\ntest_a if true\n", parserOptions()))(t)
		p := newProgress(map[string]*ast.Module{"a_test.rego": m})
		p.latest = place{"a_test.rego", 3, 11}
		_, err := p.collect(t.Context(), make(chan *tester.Result))
		if err == nil || !strings.Contains(err.Error(), "3:11") {
			t.Errorf("collect = %v, want an error with the place", err)
		}
	})
}
