package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Rego cannot fold a name. So the input has the names of the agent, as they were sent and
// registered, and the same names with their folded forms:
//
//	"agent": {"id": …, "status": …, "called": ["E9", "ext-9"], "names": ["E9", "ext-9", "e9"]}
//
// The first of both is the agent_id of the intent. See [condition.Names].

var keyCalled, keyNames = ast.StringTerm("called"), ast.StringTerm("names")

// namedAgentTerm returns the agent with its names.
func namedAgentTerm(in *engine.Input) *ast.Term {
	names := in.ConditionNames()
	return ast.ObjectTerm(
		ast.Item(keyID, ast.StringTerm(in.Intent.AgentID)),
		ast.Item(keyStatus, ast.StringTerm(in.Agent.String())),
		ast.Item(keyCalled, textsTerm(names.Called())),
		ast.Item(keyNames, textsTerm(names.Forms())),
	)
}

// namedAgentSchema is the schema of the agent with its names.
func namedAgentSchema() map[string]any {
	agent := texts("id", "status")
	agent["called"] = map[string]any{"type": "array", "items": typed("string")}
	agent["names"] = agent["called"]
	return closed(agent)
}

// namesOfInput defines a check that the input has the names of the agent.
const namesOfInput = `

names_read if {
	input.agent.called[0] == input.intent.agent_id
	texts_named(input.agent.called)
	texts_named(input.agent.names)
	every name in input.agent.called { name in input.agent.names }
}

texts_named(names) if {
	is_array(names)
	every name in names { is_string(name) }
}`

// someNamed is the first expression of a rule that is asked for each reading and each name.
const someNamed = "some reading in named_readings"

// namedReadings defines the readings of the resource for a block, once for each name of the agent.
const namedReadings = `named_readings := [object.union(reading, {"agent": name}) |
	some name in input.agent.called
	some reading in blocked_readings
]`

// names renders a comparison with every name of the agent. An expression that OPA's index of rules can
// read comes first, if there is one.
func (w *rendering) names(n *condition.Node) []line {
	w.readsNames = true
	test := n.Kids[0]
	if test.Op == condition.Eq && test.Kind == condition.Leaf {
		return []line{{text: condition.Quote(test.Values[0].Str) + " in " + namesOfAgent}}
	}
	affixes := affixesOf(test)
	var lines []line
	if affixes != nil {
		lines = append(lines, line{text: affixes.anyBegin(namesOfAgent)})
	}
	if affixes != nil && affixes.crosses() {
		return lines
	}
	return append(lines, w.rule(func(name string) string {
		outer := w.param
		w.param = paramItem
		var rules []string
		for _, body := range w.alternatives(test.Affirm()) {
			lines := []string{"some item in " + namesOfAgent}
			for _, l := range body {
				lines = append(lines, l.text)
			}
			rules = append(rules, ruleOf(name, lines))
		}
		w.param = outer
		return strings.Join(rules, "\n\n")
	}))
}

// namesOfAgent is a reference to the names of the agent and their folded forms.
const namesOfAgent = "input.agent.names"
