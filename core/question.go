package core

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"writ/engine"
)

// document is the body of a question: see the package documentation.
type document struct {
	Input input `json:"input"`
}

type input struct {
	Policy            *engine.ActionPolicy `json:"policy"`
	Intent            *engine.Intent       `json:"intent"`
	Agent             agent                `json:"agent"`
	Rules             []engine.Rule        `json:"rules"`
	Readings          readings             `json:"readings"`
	Usage             usage                `json:"usage"`
	RequireRegistered bool                 `json:"require_registered_agents"`
	Digests           digests              `json:"digests"`
}

type agent struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

type readings struct {
	Blocked []string `json:"blocked"`
	Allowed []string `json:"allowed"`
}

type usage struct {
	Exceeded bool `json:"exceeded"`
}

type digests struct {
	Policy string `json:"policy"`
	Rules  string `json:"rules"`
}

// question encodes what the core is asked.
func question(set engine.Set, in *engine.Input) ([]byte, error) {
	if set.Policy == nil || in == nil || in.Intent == nil {
		return nil, errors.New("there is nothing to decide")
	}
	read, err := in.Intent.Readings()
	if err != nil {
		return nil, fmt.Errorf("reading the resource: %w", err)
	}
	q := document{input{
		Policy:            set.Policy.Document(),
		Intent:            in.Intent,
		Agent:             agent{in.Intent.AgentID, in.Agent.String()},
		Rules:             activeRules(set.Rules),
		Usage:             usage{in.Usage.Exceeded},
		RequireRegistered: in.RequireRegistered,
		Digests:           digests{set.Policy.Digest(), set.Rules.Digest()},
	}}
	for i := range read.Len() {
		q.Input.Readings.Blocked = append(q.Input.Readings.Blocked, read.At(i))
	}
	for i := range read.NormalLen() {
		q.Input.Readings.Allowed = append(q.Input.Readings.Allowed, read.NormalAt(i))
	}
	body, err := json.Marshal(&q)
	if err != nil {
		return nil, fmt.Errorf("encoding the question: %w", err)
	}
	return body, nil
}

func activeRules(set *engine.RuleSet) []engine.Rule {
	if set == nil {
		return nil
	}
	rules := make([]engine.Rule, 0, len(set.Rules()))
	for _, r := range set.Rules() {
		rules = append(rules, r.Rule())
	}
	return rules
}
