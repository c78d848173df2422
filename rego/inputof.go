package rego

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// A test derives the input of an intent by data.writ.input.of(intent): of an agent that is not
// registered, at the intent's issued_at, with counters that counted nothing before. OPA refuses a
// function called data.writ.input. In [RunTests] the function derives the input of every intent as
// [Input] does. An export has it in Rego, for intents whose resource and metadata values are plain and
// whose agent_id is in ASCII; for any other intent it is undefined.

// inputFile is the name of the file with the function, and derivesInput the name of the built-in
// function that the file calls in RunTests.
const (
	inputFile    = aliasPrefix + "input.rego"
	derivesInput = "writ.derives_input"
)

// runnersInput is the file of [RunTests].
var runnersInput = File{
	Name:   inputFile,
	Source: "package " + inputAlias + "\n\nof(intent) := " + derivesInput + "(intent)\n",
}

// deriving returns the built-in function that derives inputs for policy p.
func deriving(p *engine.ActionPolicy, counters []*condition.Counter) *tester.Builtin {
	decl := &ast.Builtin{Name: derivesInput, Decl: types.NewFunction(types.Args(types.A), types.A)}
	policy := policyTerm(p)
	of := func(_ opa.BuiltinContext, intent *ast.Term) (*ast.Term, error) {
		document, err := ast.JSON(intent.Value)
		if err != nil {
			return nil, fmt.Errorf("%s.of: %w", inputAlias, err)
		}
		text, err := indented(document)
		if err != nil {
			return nil, err
		}
		in, err := engine.DecodeIntent(text, "intent")
		if err == nil {
			err = in.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("%s.of: %w", inputAlias, err)
		}
		input, err := derivedOffline(policy, &engine.Input{Intent: in, Counts: engine.Alone(counters, in)})
		return ast.NewTerm(input), err
	}
	return &tester.Builtin{
		Decl: decl, Func: opa.Function1(&opa.Function{Name: decl.Name, Decl: decl.Decl}, of),
	}
}

// callOf returns the place of a call of the function called name, or nil.
func callOf(m *ast.Module, name string) (at *ast.Location) {
	calls(m, func(operator *ast.Term, _ []*ast.Term) {
		if operator.Value.String() == name {
			at = operator.Location
		}
	})
	return at
}

// exportedInput writes the function in Rego.
func exportedInput(p *engine.ActionPolicy, counters []*condition.Counter) (File, error) {
	parts := []string{
		"package " + inputAlias,
		`# METADATA
# description: The input of an intent that is plain. Of any other intent writ alone knows the input.
of(intent) := object.union_n([derived(intent), values(intent), counted(intent)])`,
		`derived(intent) := {
	"intent": intent,
	"decided_at": time.format(issued - (issued % 1000000)),
	"derived_from": {"decided_at": {"issued_at": intent.issued_at}},
	"agent": {
		"id": intent.agent_id, "status": "unregistered",
		"called": [intent.agent_id], "names": names(intent.agent_id),
	},
	"policy": ` + policyTerm(p).String() + `,
	"organization": {"stopped": false},
	"usage": {"exceeded": false},
	"require_registered_agents": false,
	"readings": data.` + PackageName(p.PolicyID) + `.plain_readings(intent.resource),
} if {
	regex.match("^[ -~]+$", intent.agent_id)
	issued := time.parse_rfc3339_ns(intent.issued_at)
}`,
		`names(id) := [id] if lower(id) == id

else := [id, lower(id)]`,
		`values(intent) := {} if not "metadata" in object.keys(intent)

values(intent) := {"values": read} if {
	read := {key: plain_value(text) | some key, text in intent.metadata}
	object.keys(read) == object.keys(intent.metadata)
}`,
		plainValue,
		"counted(intent) := " + countedBy(counters),
	}
	for i, c := range counters {
		parts = append(parts, countedAlone(i+1, c))
	}
	return formatted(inputFile, strings.Join(parts, "\n\n")+"\n")
}

// countedBy writes the input's members of counters.
func countedBy(counters []*condition.Counter) string {
	if len(counters) == 0 {
		return "{} if is_object(intent)"
	}
	var members strings.Builder
	for i, c := range counters {
		fmt.Fprintf(&members, "\t\t%s: count_%d(intent),\n", condition.Quote(c.Key), i+1)
	}
	keys := make([]string, len(countedMembers))
	for i, m := range countedMembers {
		keys[i] = fmt.Sprintf("%[1]v: object.get(intent, %[1]v, null)", m)
	}
	return "{\n\t\"counters\": {\n" + members.String() + "\t},\n\t\"derived_from\": {\"counters\": {" +
		strings.Join(keys, ", ") + "}},\n}"
}

// countedAlone writes the value of a counter that has counted no other intent: see [engine.Alone].
func countedAlone(n int, c *condition.Counter) string {
	amount, lines := "1", []string{fmt.Sprintf("counts_%d(intent.action_type)", n)}
	if c.Sum {
		amount = "intent.cost.amount_minor"
		lines = append(lines, "intent.cost.currency == "+condition.Quote(c.Currency))
	}
	if c.BySession {
		lines = append(lines, "false # an intent in a session is not in the tests")
	}
	return ruleOf(fmt.Sprintf("count_%d(intent) := %s", n, amount), lines) + "\n\nelse := null\n\n" +
		deniedAction(fmt.Sprintf("counts_%d(action)", n), "action", []string{c.ActionType})
}
