package rego

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// runTestsOf runs source as one file of tests. It adds the package clause.
func runTestsOf(t *testing.T, rules []engine.Rule, source string) ([]TestResult, error) {
	t.Helper()
	killed := evaluationInput()
	killed.Agent = engine.AgentDisabled
	intents := map[string]*engine.Input{"deploy": evaluationInput(), "killed": killed}
	header := fmt.Sprintf("package %s\nimport data.%s as policy\n", TestPackage(policyID), PackageName(policyID))
	return RunTests(t.Context(), samplePolicy(), rules, nil, intents, []File{{Name: "deploys_test.rego", Source: header + source}})
}

func TestRunTests(t *testing.T) {
	got, err := runTestsOf(t, sampleRules(), `
test_waits if policy.decision == "approval_required" with input as data.intents.deploy
test_killed if {
	policy.decision == "deny" with input as data.intents.killed
	policy.decision == "allow" with input as data.intents.killed
}
todo_test_later if false
test_data if {
	data.policy.version == 3
	count(data.rules) == 4
	print("the policy is", data.policy.policy_id)
}
test_cases[name] if {
	some name, want in {"deploy": "approval_required", "killed": "allow"}
	policy.decision == want with input as data.intents[name]
}
test_fails if to_number(data.policy.status) == 1
test_closed if policy.decision == "deny" with input as {}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []TestResult{
		{Name: "test_waits", Outcome: TestPassed, Line: 4, Column: 1},
		{Name: "test_killed", Outcome: TestFailed, Line: 5, Column: 1,
			Message: `7:2: not true: policy.decision == "allow" with input as data.intents.killed`},
		{Name: "todo_test_later", Outcome: TestSkipped, Line: 9, Column: 1},
		{Name: "test_data", Outcome: TestPassed, Line: 10, Column: 1, Output: "the policy is 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10\n"},
		{Name: "test_cases", Outcome: TestFailed, Line: 15, Column: 1,
			Message: `of its cases, killed: 17:2: not true: policy.decision == want with input as data.intents[name]`},
		{Name: "test_fails", Outcome: TestErrored, Line: 19, Column: 1, Message: `deploys_test.rego:19: eval_builtin_error: to_number: strconv.ParseFloat: parsing "active": invalid syntax`},
		{Name: "test_closed", Outcome: TestPassed, Line: 20, Column: 1},
	}
	for i := range want {
		want[i].File = "deploys_test.rego"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RunTests differs (-want +got):\n%s", diff)
	}
}

func TestRunTests_RefusesWhatIsNoTestOfThePolicy(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"a syntax error", "test_x if {", "deploys_test.rego:3:"},
		{"an unknown name", "test_x if polcy.decision == \"deny\"", "deploys_test.rego:3:11: polcy is never bound"},
		{"unknown data", "test_x if data.intnets.deploy", "deploys_test.rego:3:11: data.intnets.deploy is not defined here"},
		{"an unknown intent", "test_x if policy.decision == \"deny\" with input as data.intents.deplyo",
			`deploys_test.rego:3:51: there is no intent "deplyo", only ["deploy" "killed"]`},
		{"the network", `test_x if http.send({"method": "get", "url": "http://127.0.0.1"}).status == 1`, "the built-in function http.send cannot be called"},
		{"the clock", "test_x if time.now_ns() > 0", "the built-in function time.now_ns cannot be called"},
		{"an unknown document of the policy", "test_x if policy.verdict == \"deny\"", "deploys_test.rego:3:11: data." + PackageName(policyID) + ".verdict is not defined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runTestsOf(t, nil, tt.source)
			var mistakes *condition.Error
			if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("RunTests = %v, %v, want a *condition.Error with %q", got, err, tt.want)
			}
		})
	}
}

// TestRunTests_RefusesTheirOwnPackage checks that tests cannot be in the policy's own package,
// because they would become a part of the policy.
func TestRunTests_RefusesTheirOwnPackage(t *testing.T) {
	file := File{Name: "x_test.rego", Source: "package " + PackageName(policyID) + "\npermitting contains \"resource.blocked\"\ntest_x := true"}
	got, err := RunTests(t.Context(), samplePolicy(), nil, nil, nil, []File{file})
	if want := "x_test.rego:1:1: tests of policy " + policyID + " are in package " + TestPackage(policyID); err == nil || err.Error() != want {
		t.Errorf("RunTests = %v, %v, want %s", got, err, want)
	}
}

func TestRunTests_WithoutTests(t *testing.T) {
	if got, err := runTestsOf(t, nil, "helper := 1"); len(got) > 0 || err != nil {
		t.Errorf("RunTests of a file without tests = %v, %v, want neither", got, err)
	}
	// A condition's own rules are not tests, even if their names begin with test_.
	module := sampleRule("r", "r", `{"rego":"package a\n\nmatch if test_x\n\ntest_x := false"}`, `{"decision":"deny"}`)
	if got, err := runTestsOf(t, []engine.Rule{module}, "helper := 1"); len(got) > 0 || err != nil {
		t.Errorf("RunTests with a condition that has a test_x = %v, %v, want neither", got, err)
	}
}

// TestRunTests_EndsWithItsContext checks that a test that did not run does not count as passed.
func TestRunTests_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	file := File{Name: "x_test.rego", Source: "package " + TestPackage(policyID) + "\ntest_x := true"}
	if got, err := RunTests(ctx, samplePolicy(), nil, nil, nil, []File{file}); !errors.Is(err, gone) || got != nil {
		t.Errorf("RunTests after its context's end = %v, %v, want nothing and its cause", got, err)
	}
}
