package rego

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/util"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

const testTimeout = 5 * time.Second

// loweredPrefix begins the file names of the modules under test. So they differ from the names of
// test files.
const loweredPrefix = "lowered:"

// TestOutcome is the outcome of a test.
type TestOutcome string

// The outcomes of a test. A test is skipped if its name begins with todo_test_.
const (
	TestPassed  TestOutcome = "pass"
	TestFailed  TestOutcome = "fail"
	TestErrored TestOutcome = "error"
	TestSkipped TestOutcome = "skip"
)

// TestResult is the result of one rule whose name begins with test_.
type TestResult struct {
	Name    string
	Outcome TestOutcome
	// File, Line and Column are the place of the test, from 1.
	File         string
	Line, Column int
	// Message names the expression that was not true, or the function that failed. It is "" if the
	// test passed.
	Message string
	// Output is the output of print in the test.
	Output string
}

// TestPackage returns the package of the tests of a policy.
func TestPackage(policyID string) string { return PackageName(policyID) + "_test" }

// RunTests runs the tests in files with OPA's tester. It tests the modules that [Lower] writes for
// a policy version, its rules and lists. It sorts the results by file, line and column.
//
// Each file is a Rego v1 module. Its package is [TestPackage] or a package below it. A test is a
// rule whose name begins with test_, as in OPA. It passes if it is true. A test sees
// data.<PackageName> and
//
//	data.writ.policy              the same: decision, allow, codes and reasons
//	data.writ.rules.<name>.match  whether an active rule matches; name is [NameOf] the rule's name
//	data.writ.input.of(intent)    the input document of an intent, derived as [Input] does, for an agent
//	                              that is not registered
//	data.intents   the input documents of intents, by name: see [Input]
//	data.policy    the policy
//	data.rules     the rules
//
// An intent without a DecidedAt is decided at its issued_at.
//
// An example of a test:
//
//	test_refund if policy.decision == "allow" with input as data.intents.refund
//
// A test can call print, and every function of OPA whose result depends on its arguments alone, also
// those that a condition may not call. If a function fails, the test ends with an error, even if Rego
// would make the call undefined. A test also ends with an error after 5 seconds. A function that would
// make a huge value of a short argument, such as sprintf with a large width, fails. If the call of
// another function does not end, the run ends with an error at the place of the call.
//
// The error is a [*condition.Error] if files are at fault. Files without a test give no results
// and no error.
func RunTests(
	ctx context.Context, p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists,
	intents map[string]*engine.Input, files []File, libraries ...engine.Library,
) ([]TestResult, error) {
	modules, err := testModules(p, files)
	if err != nil {
		return nil, err
	}
	traced := newProgress(modules)
	lowered, err := Lower(p, rules, lists, libraries...)
	if err != nil {
		return nil, err
	}
	set, err := compileRules(rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	named, err := aliases(p, set)
	if err != nil {
		return nil, err
	}
	for _, f := range append(append(lowered, named...), runnersInput) {
		name := loweredPrefix + f.Name
		if modules[name], err = ast.ParseModuleWithOpts(name, f.Source, parserOptions()); err != nil {
			return nil, explain(err)
		}
	}
	if err := checkData(modules, "intents", "policy", "rules"); err != nil {
		return nil, err
	}
	if err := checkIntents(modules, intents); err != nil {
		return nil, err
	}
	data, err := testData(p, rules, intents)
	if err != nil {
		return nil, err
	}
	store := inmem.NewFromObjectWithOpts(data, inmem.OptRoundTripOnWrite(false))
	return runTests(ctx, querySchema(), ast.MustParseRef("data."+TestPackage(p.PolicyID)), modules, store, traced,
		deriving(p, set.Counters()))
}

// RunModuleTests runs the tests in files as `opa test` does. It tests modules of rules' conditions in
// the packages that their authors gave them. A test may be in any package, and sees the modules and
// the input that it gives, and the lists as data.lists. Functions, errors and results are as in
// [RunTests].
func RunModuleTests(
	ctx context.Context, lists condition.Lists, modules, files []File,
) ([]TestResult, error) {
	tests, err := parseTests(files)
	if err != nil {
		return nil, err
	}
	traced := newProgress(tests)
	for _, f := range modules {
		name := loweredPrefix + f.Name
		if tests[name], err = ast.ParseModuleWithOpts(name, f.Source, parserOptions()); err != nil {
			return nil, explain(err)
		}
	}
	if err := checkData(tests, listsRule); err != nil {
		return nil, err
	}
	listed := make(map[string]any, len(lists))
	for name, l := range lists {
		v, err := documentOf(l)
		if err == nil {
			listed[name], err = ast.JSON(v)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
	}
	store := inmem.NewFromObjectWithOpts(map[string]any{listsRule: listed}, inmem.OptRoundTripOnWrite(false))
	return runTests(ctx, conditionSchema(), ast.DefaultRootRef, tests, store, traced)
}

// testModules parses files. Each must belong to the package of the tests, or to a package below it.
func testModules(p *engine.ActionPolicy, files []File) (map[string]*ast.Module, error) {
	own := ast.MustParseRef("data." + TestPackage(p.PolicyID))
	modules, err := parseTests(files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if m := modules[f.Name]; !m.Package.Path.HasPrefix(own) {
			return nil, refuse(
				m.Package.Loc(), "tests of policy %s are in package %s", p.PolicyID, TestPackage(p.PolicyID),
			)
		}
	}
	return modules, nil
}

// parseTests parses files with tests.
func parseTests(files []File) (map[string]*ast.Module, error) {
	modules := make(map[string]*ast.Module, len(files))
	for _, f := range files {
		opts := parserOptions()
		opts.Capabilities = testSandbox()
		m, err := ast.ParseModuleWithOpts(f.Name, f.Source, opts)
		if err != nil {
			return nil, explain(err)
		}
		if m == nil {
			return nil, refuse(ast.NewLocation(nil, f.Name, 1, 1), "the file is empty")
		}
		if at := callOf(m, derivesInput); at != nil {
			return nil, refuse(at, "undefined function %s: take data.%s.of", derivesInput, inputAlias)
		}
		if modules[f.Name] != nil {
			return nil, fmt.Errorf("two files are called %s", f.Name)
		}
		modules[f.Name] = m
	}
	return modules, nil
}

// checkIntents refuses references to unknown intents.
func checkIntents(modules map[string]*ast.Module, intents map[string]*engine.Input) error {
	var found condition.Error
	prefix := ast.MustParseRef("data.intents")
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		ast.WalkRefs(modules[file], func(ref ast.Ref) bool {
			if ref.HasPrefix(prefix) && len(ref) > len(prefix) {
				if name, ok := ref[len(prefix)].Value.(ast.String); ok && intents[string(name)] == nil {
					found.Add(mistake(ref[0].Location, "there is no intent %q, only %q", string(name),
						slices.Sorted(maps.Keys(intents))))
				}
			}
			return false
		})
	}
	return found.Err()
}

func testData(p *engine.ActionPolicy, rules []engine.Rule, intents map[string]*engine.Input) (map[string]any, error) {
	inputs := make(map[string]any, len(intents))
	for name, in := range intents {
		v, err := derivedOffline(policyTerm(p), in)
		if err != nil {
			return nil, fmt.Errorf("intent %s: %w", name, err)
		}
		if inputs[name], err = ast.JSON(v); err != nil {
			return nil, fmt.Errorf("intent %s: %w", name, err)
		}
	}
	if rules == nil {
		rules = []engine.Rule{}
	}
	data := map[string]any{"intents": inputs}
	for name, document := range map[string]any{"policy": p, "rules": rules} {
		text, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("encoding the %s: %w", name, err)
		}
		var v any
		if err := util.UnmarshalJSON(text, &v); err != nil {
			return nil, fmt.Errorf("encoding the %s: %w", name, err)
		}
		data[name] = v
	}
	return data, nil
}

func runTests(
	ctx context.Context, schema any, tests ast.Ref, modules map[string]*ast.Module, store storage.Store,
	traced *progress, functions ...*tester.Builtin,
) ([]TestResult, error) {
	capabilities := *testSandbox()
	for _, f := range functions {
		capabilities.Builtins = append(slices.Clip(capabilities.Builtins), f.Decl)
	}
	compiler := newCompiler(&capabilities, schema).
		WithEnablePrintStatements(true).
		WithStageAfterID(ast.StageSetRuleTree,
			ast.CompilerStageDefinition{Name: "CheckDocuments", MetricName: "check_documents", Stage: checkDocuments}).
		WithStageAfterID(ast.StageBuildRequiredCapabilities,
			ast.CompilerStageDefinition{Name: "CallBounded", MetricName: "call_bounded", Stage: callBounded})
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the tests' data: %w", err)
	}
	defer store.Abort(ctx, txn)
	ran, err := tester.NewRunner().
		SetCompiler(compiler).
		SetStore(store).
		SetModules(modules).
		AddCustomBuiltins(append(functions, boundedFunctions()...)).
		SetPrefixMatchers(tests).
		SetTimeout(testTimeout).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(true).
		SetCoverageQueryTracer(traced).
		RunTests(ctx, txn)
	if err != nil {
		return nil, explain(err)
	}
	results, err := traced.collect(ctx, ran)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // tests that did not start have no result
		return nil, context.Cause(ctx)
	}
	slices.SortFunc(results, func(a, b TestResult) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return results, nil
}

// checkDocuments refuses references to documents that no module defines. Such a document is
// undefined, so a test that has a `not` before it would pass.
func checkDocuments(c *ast.Compiler) *ast.Error {
	var found *ast.Error
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		if strings.HasPrefix(name, loweredPrefix) {
			continue
		}
		ast.WalkRefs(c.Modules[name], func(ref ast.Ref) bool {
			for _, other := range c.Modules {
				path := other.Package.Path
				if found == nil && ref.HasPrefix(path) && len(ref) > len(path) &&
					ast.IsConstant(ref[len(path)].Value) &&
					!hasBelow(c, ref[:len(path)+1]) {
					found = ast.NewError(ast.TypeErr, ref[0].Location, "%v is not defined", ref[:len(path)+1])
				}
			}
			return false
		})
	}
	return found
}

// hasBelow reports whether a rule or a module is at ref or below it.
func hasBelow(c *ast.Compiler, ref ast.Ref) bool {
	if len(c.GetRulesForVirtualDocument(ref)) > 0 || len(c.GetRulesWithPrefix(ref)) > 0 {
		return true
	}
	for _, m := range c.Modules {
		if m.Package.Path.HasPrefix(ref) {
			return true
		}
	}
	return false
}
