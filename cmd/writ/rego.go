package main

import (
	"context"
	"fmt"

	"writ/engine"
	"writ/rego"
)

type regoCmd struct {
	Policy string `required:"" placeholder:"FILE" help:"ActionPolicy to render; - is standard input."`
	Rules  string `placeholder:"FILE" help:"JSON array of rules to render with it."`
}

// Help says what the module is for.
func (c *regoCmd) Help() string {
	return `Prints the Rego v1 module that decides exactly as the policy does, to read, to
test with opa, or to load into an OPA server.

  writ rego --policy examples/policies/deploys.json > deploys.rego
  opa eval -d deploys.rego -i input.json data.writ`
}

// Run prints the module.
func (c *regoCmd) Run(_ context.Context, s streams) error {
	p, err := readDocument(s, c.Policy, "policy", engine.DecodePolicy)
	if err != nil {
		return err
	}
	if err := p.Validate(); err != nil {
		return &inputError{name: c.Policy, err: err}
	}
	var rules []engine.Rule
	if c.Rules != "" {
		if rules, err = readRules(s, c.Rules); err != nil {
			return err
		}
	}
	module, err := rego.Lower(p, rules)
	if err != nil {
		return &inputError{name: c.Policy, err: err}
	}
	fmt.Fprint(s.out, module)
	return nil
}
