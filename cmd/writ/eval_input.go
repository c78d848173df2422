package main

import (
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

func (c *evalCmd) load(s streams) (*engines, error) {
	policy, err := compiledPolicy(s, c.Policy)
	if err != nil {
		return nil, err
	}
	e := &engines{which: c.Engine, policy: policy}
	lists, err := readLists(s, c.Lists)
	if err != nil {
		return nil, err
	}
	o, libraries, err := conditionsWith(c.Libraries)
	if err != nil {
		return nil, err
	}
	var rules ruleFile
	if c.Rules != "" {
		if rules, err = readRules(s, c.Rules, o); err != nil {
			return nil, err
		}
		o.Lists = lists
		if e.rules = engine.CompileRules(rules.rules, o); len(e.rules.ListNames()) > len(e.rules.Lists()) {
			return nil, &inputError{name: c.Rules, err: errors.New(
				"a rule looks in a list that is not given: give its values with --lists",
			)}
		}
	}
	if c.Engine == "cel" {
		return e, nil
	}
	if e.query, err = rego.Prepare(policy.Document(), rules.rules, lists, libraries...); err != nil {
		return nil, rules.notRendered(c.Policy, err)
	}
	return e, nil
}

// namedInput is an intent with the state that the flags describe. name is its place in the
// file.
type namedInput struct {
	name string
	*engine.Input
}

// inputs reads the intents in files. Each intent must name the policy.
func (c *stateFlags) inputs(s streams, files []string, policyID string) ([]namedInput, error) {
	var inputs []namedInput
	var now time.Time
	if c.Now != "" {
		at, err := condition.ParseTime(c.Now)
		if err != nil {
			return nil, &usageError{"--now: " + err.Error()}
		}
		now = engine.ClockTime(at)
	}
	for _, file := range files {
		intents, err := readIntents(s, file)
		if err != nil {
			return nil, err
		}
		for i, intent := range intents {
			name := file
			if len(intents) > 1 {
				name = fmt.Sprintf("%s[%d]", file, i)
			}
			if intent.PolicyID != policyID {
				return nil, &inputError{name: name, err: fmt.Errorf(
					"intent.policy_id: got %s, want the policy's, %s", intent.PolicyID, policyID,
				)}
			}
			in := &engine.Input{Intent: intent, RequireRegistered: c.Registered, Stopped: c.Stopped,
				Usage: engine.Usage{Exceeded: c.UsageExceeded}}
			if in.DecidedAt = now; now.IsZero() {
				in.DecidedAt = intent.Issued()
			}
			if c.AgentStatus != "unregistered" {
				in.Agent = engine.AgentStatus(c.AgentStatus)
			}
			inputs = append(inputs, namedInput{name, in})
		}
	}
	return inputs, nil
}

// conditions returns the options for the languages of rules.
func conditions() engine.Options {
	return engine.Options{CompileRego: rego.CompileCondition, CompileLibraries: rego.CompileLibraries}
}
