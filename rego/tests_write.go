package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// The names of the files that [Tests] writes.
const (
	dataFile  = "data.json"
	testsFile = "policy_test.rego"
)

// InputJSON returns the document of [Input] as indented JSON. An intent without a DecidedAt is decided
// at its issued_at.
func InputJSON(p *engine.ActionPolicy, in *engine.Input) ([]byte, error) {
	v, err := derivedOffline(policyTerm(p), in)
	if err != nil {
		return nil, err
	}
	document, err := ast.JSON(v)
	if err != nil {
		return nil, fmt.Errorf("writing the input: %w", err)
	}
	return indented(document)
}

// indented writes a value of OPA, whose numbers are [json.Number].
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return b.Bytes(), nil
}

// Tests writes the files that `opa test` needs in addition to the files of [Lower]. The first is
// data.json with the data that [RunTests] describes. The second has a test for each intent. The test
// compares the decision and the codes with the result of [engine.Evaluate]. The others have the names
// for tests that RunTests describes. Authors may add tests.
func Tests(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, intents map[string]*engine.Input,
	libraries ...engine.Library,
) ([]File, error) {
	policy, err := engine.CompilePolicy(p)
	if err != nil {
		return nil, err
	}
	set, err := compileRules(rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	data, err := testData(p, rules, intents)
	if err != nil {
		return nil, err
	}
	text, err := indented(data)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport data.%s as policy\n", TestPackage(p.PolicyID), PackageName(p.PolicyID))
	tests := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(intents)) {
		test := "test_" + nameIn(name)
		for tests[test] { // otherwise one of the two could pass for both
			test += "_"
		}
		tests[test] = true
		writeTest(&b, test, name, engine.Evaluate(policy, set, decidedOffline(intents[name])))
	}
	file, err := formatted(testsFile, b.String())
	if err != nil {
		return nil, err
	}
	named, err := aliases(p, set)
	if err != nil {
		return nil, err
	}
	of, err := exportedInput(p, set.Counters())
	return append(append([]File{{Name: dataFile, Source: string(text)}, file}, named...), of), err
}

// writeTest writes the test of an intent with its result.
func writeTest(b *strings.Builder, test, name string, want engine.Result) {
	codes := make([]string, 0, len(want.Findings))
	for _, f := range want.Findings {
		codes = append(codes, condition.Quote(string(f.Code)))
	}
	slices.Sort(codes)
	input := "data.intents[" + condition.Quote(name) + "]"
	fmt.Fprintf(b, "\n%s if {\n\tpolicy.decision == %s with input as %s\n\tpolicy.codes == {%s} with input as %s\n}\n",
		test, condition.Quote(want.Decision.String()), input, strings.Join(slices.Compact(codes), ", "), input)
}
