package main

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

type regoCmd struct {
	Policy     []string `required:"" sep:"none" placeholder:"FILE" help:"ActionPolicy to render; - is standard input. With --core it can be repeated."`
	Core       bool     `help:"Write the modules for an OPA that is writ's external evaluation core; needs --out."`
	Rules      string   `placeholder:"FILE" help:"Rules to render with it: YAML documents, or a JSON array."`
	Lists      string   `placeholder:"FILE" help:"Lists that the rules look in: a JSON object of arrays of strings by the lists' names. Needs --out."`
	Libraries  string   `placeholder:"DIR" help:"Libraries that the rules import: a directory for each, with its .rego files."`
	Input      []string `sep:"none" placeholder:"FILE" help:"Print instead the input that the module decides this ActionIntent by. With --out write the module, the inputs and a test of each for opa test; it can be repeated then."`
	Out        string   `placeholder:"DIR" help:"Directory to write the modules to; needed when rules are written in Rego, each of which is a module of its own."`
	stateFlags `embed:""`
}

func (c *regoCmd) Help() string {
	return `Prints the Rego v1 module that decides exactly as the policy does, to read, to
test with opa, or to load into an OPA server.

  writ rego --policy examples/policies/deploys.yaml > deploys.rego
  opa eval -d deploys.rego -i input.json data.writ

A rule whose condition is Rego is a module of its own:

  writ rego --policy policy.json --rules rules.json --out modules
  opa eval -d modules -i input.json data.writ

The input of an intent has how its resource is read, which the module needs and which
is not written by hand:

  writ rego --policy policy.json --input intent.json > input.json

With --out, opa test has the inputs as data.intents, by the names of their files, and
a test that holds the module to what the service decides:

  writ rego --policy policy.json --rules rules.json --input intent.json --out modules
  opa test modules

With --core, an OPA that holds the directory decides for writ serve, by exactly
these versions with exactly these rules and lists, which are all of the organization's:

  writ rego --core --policy a.json --policy b.json --rules rules.json --out core
  opa run --server core
  writ serve --evaluation-core-url http://127.0.0.1:8181/v1/data/writ/core/result`
}

func (c *regoCmd) Run(_ context.Context, s streams) error {
	o, libraries, err := conditionsWith(c.Libraries)
	if err != nil {
		return err
	}
	policies, rules, err := c.load(s, o)
	if err != nil {
		return err
	}
	lists, err := readLists(s, c.Lists)
	if err != nil {
		return err
	}
	if c.Core {
		modules, err := rego.LowerCore(policies, rules.rules, lists, libraries...)
		if err != nil {
			return rules.notRendered(c.Policy[0], err)
		}
		return c.write(s, modules)
	}
	intents, err := c.intents(s, policies[0])
	if err != nil {
		return err
	}
	counters := engine.CompileRules(rules.rules, o).Counters()
	for _, in := range intents {
		in.Counts = engine.Alone(counters, in.Intent)
	}
	if len(intents) > 0 && c.Out == "" {
		return c.printInput(s, policies[0], intents)
	}
	modules, err := rego.Lower(policies[0], rules.rules, lists, libraries...)
	if err != nil {
		return rules.notRendered(c.Policy[0], err)
	}
	if len(intents) > 0 {
		tests, err := rego.Tests(policies[0], rules.rules, lists, intents, libraries...)
		if err != nil {
			return err
		}
		modules = append(modules, tests...)
	}
	if c.Out != "" {
		return c.write(s, modules)
	}
	if len(modules) > 1 {
		return &usageError{fmt.Sprintf(
			"%d files belong to the module, of rules in Rego or of lists: give --out DIR to write them to",
			len(modules)-1,
		)}
	}
	fmt.Fprint(s.out, modules[0].Source)
	return nil
}

func (c *regoCmd) Validate() error {
	switch {
	case c.Core && c.Out == "":
		return errors.New("--core: give --out DIR to write the modules to")
	case !c.Core && len(c.Policy) > 1:
		return errors.New("--policy: more than one needs --core")
	case c.Core && len(c.Input) > 0:
		return errors.New("--input: there is none with --core, which gets its input from writ serve")
	case c.Out == "" && len(c.Input) > 1:
		return errors.New("--input: more than one needs --out")
	}
	return nil
}
