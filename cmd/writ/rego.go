package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"writ/engine"
	"writ/rego"
)

type regoCmd struct {
	Policy string `required:"" placeholder:"FILE" help:"ActionPolicy to render; - is standard input."`
	Rules  string `placeholder:"FILE" help:"JSON array of rules to render with it."`
	Out    string `placeholder:"DIR" help:"Directory to write the modules to; needed when rules are written in Rego, each of which is a module of its own."`
}

// Help says what the module is for.
func (c *regoCmd) Help() string {
	return `Prints the Rego v1 module that decides exactly as the policy does, to read, to
test with opa, or to load into an OPA server.

  writ rego --policy examples/policies/deploys.json > deploys.rego
  opa eval -d deploys.rego -i input.json data.writ

A rule whose condition is Rego is a module of its own:

  writ rego --policy policy.json --rules rules.json --out modules
  opa eval -d modules -i input.json data.writ`
}

// Run prints the module, or writes all of them.
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
	modules, err := rego.Lower(p, rules)
	if err != nil {
		return &inputError{name: cmp.Or(c.Rules, c.Policy), err: err}
	}
	if c.Out != "" {
		return c.write(s, modules)
	}
	if len(modules) > 1 {
		return &usageError{fmt.Sprintf("%d of the rules are modules of their own: give --out DIR to write them to", len(modules)-1)}
	}
	fmt.Fprint(s.out, modules[0].Source)
	return nil
}

// write puts the modules into the directory and prints their names.
func (c *regoCmd) write(s streams, modules []rego.File) error {
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fmt.Errorf("making the directory of the modules: %w", err)
	}
	for _, m := range modules {
		name := filepath.Join(c.Out, m.Name)
		if err := os.WriteFile(name, []byte(m.Source), 0o666); err != nil {
			return fmt.Errorf("writing a module: %w", err)
		}
		fmt.Fprintln(s.out, name)
	}
	return nil
}
